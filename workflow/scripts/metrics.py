"""Compute every metric of one cell from its measurements."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__,
    files=("source", "derived", "target"),
    lists=("attributes", "attempts", "keys_attacked", "attacked", "twins"),
    words=("dataset", "method", "variant", "seed"),
)


def work(run) -> None:
    from masquerade.core import files, measurements
    from masquerade.pipeline import evaluation

    metrics = evaluation.build_metrics(given.params)
    measured = evaluation.evidence(
        given.source,
        given.derived,
        given.params["matrix.calibrate_on"],
        given.target,
        next(iter(given.attributes), None),
        next(iter(given.attempts), None),
        next(iter(given.attacked), None),
        next(iter(given.twins), None),
        given.params["bootstrap.draws"],
        next(iter(given.keys_attacked), None),
    )
    values, attempts = evaluation.evaluate(metrics, measured), evaluation.evaluate_attempts(metrics, measured)
    statement = measurements.statement(given.derived) | evaluation.counts(measured.derived)
    read = [
        given.derived, *given.attempts, *given.keys_attacked, *given.attacked, *given.twins, given.source,
    ]  # fmt: skip
    files.write_json(given.outputs[0], evaluation.row(program.cell(given), statement, values, attempts, read))
    run.log(0, evaluation.numbers(values))


if __name__ == "__main__":
    program.main(f"metrics {given.method}/{given.variant} on {given.dataset}", given, work)
