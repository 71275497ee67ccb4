"""Compute every metric of one cell from its measurements."""

from masquerade import discovery, evaluation, steps
from masquerade.images import index_facts

given = steps.arguments(
    __doc__,
    files=("source", "derived", "index", "target"),
    lists=("attributes", "attempts"),
    words=("dataset", "method", "variant", "seed"),
)


def work(run) -> None:
    metrics = {}
    for key, params in given.params.items():
        room, name = key.split(".")
        if room != "metrics":
            continue
        cls = discovery.load(room, name)
        metrics[name] = cls(cls.Params(**params))
    seen = evaluation.evidence(
        given.source,
        given.derived,
        given.params["matrix.calibrate_on"],
        given.target,
        next(iter(given.attributes), None),
        next(iter(given.attempts), None),
    )
    values, attempts = evaluation.evaluate(metrics, seen), evaluation.evaluate_attempts(metrics, seen)
    cell = {
        "dataset": given.dataset,
        "method": given.method,
        "variant": given.variant,
        "seed": int(given.seed),
    }
    statement = index_facts(given.index)["statement"] | evaluation.counts(seen.derived)
    steps.write_json(given.outputs[0], evaluation.row(cell, statement, values, attempts))
    numbers = {
        f"{name}.{judge}".strip("."): value["value"] for name, of in values.items() for judge, value in of.items()
    }
    run.log(0, {name: value for name, value in numbers.items() if value is not None})


if __name__ == "__main__":
    steps.main(f"metrics {given.method}/{given.variant} on {given.dataset}", given, work)
