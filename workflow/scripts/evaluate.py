"""Compute every metric of one cell from its measurements."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__,
    files=("source", "derived", "target"),
    optional=("attributes", "recoveries", "key_attacks", "attack_results", "downstream_utility", "distractors"),
    words=("dataset", "method", "variant", "seed"),
)


def work(run) -> None:
    from dataclasses import fields

    from masquerade.core import face_tables, files
    from masquerade.pipeline import evaluation
    from masquerade.pipeline.evaluation import CellFiles

    params, cell_files = (
        arguments.params,
        CellFiles(**{field.name: getattr(arguments, field.name) for field in fields(CellFiles)}),
    )
    metrics = {name: params.build("metrics", name) for name in params["metrics"]}
    measured = evaluation.collect_evidence(cell_files, params["matrix.calibrate_on"], params["bootstrap.draws"])
    values, attempts = evaluation.evaluate(metrics, measured), evaluation.evaluate_attempts(metrics, measured)
    statement = face_tables.read_statement(arguments.derived) | evaluation.count_faces(measured.derived)
    row = evaluation.make_row(program.select_cell(arguments), statement, values, attempts, cell_files.list_own())
    files.write_json(arguments.outputs[0], row)
    run.log(0, evaluation.list_numbers(values))


if __name__ == "__main__":
    program.main(f"metrics {arguments.method}/{arguments.variant} on {arguments.dataset}", arguments, work)
