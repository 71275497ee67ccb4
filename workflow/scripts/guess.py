"""Try random keys on some anonymized pictures of one set."""

from masquerade import discovery, guessing, steps
from masquerade.images import FaceArchive

given = steps.arguments(
    __doc__,
    files=("anonymized", "source"),
    lists=(*steps.METHOD_FILES, "judged"),
    words=("method", "variant", "dataset", "seed"),
)


def work(run) -> None:
    settings = guessing.GuessingSettings(**steps.block(given.params, "guessing"))
    cls = discovery.load("judges", settings.judge)
    judge = cls(cls.Params(**given.params[f"judges.{settings.judge}"]), {path.stem: path for path in given.judged})
    anonymized, calibrate_on = FaceArchive(given.anonymized), given.params["matrix.calibrate_on"]
    found = guessing.guess(anonymized, steps.method(given), judge, given.source, calibrate_on, settings)
    cell = {name: getattr(given, name) for name in ("dataset", "method", "variant")} | {"seed": int(given.seed)}
    steps.write_json(given.outputs[0], {"cell": cell, "guessing": found})
    run.log(0, {name: value for name, value in found.items() if isinstance(value, int | float)})


if __name__ == "__main__":
    steps.main(f"guess the key of {given.method}/{given.variant} seed {given.seed}", given, work)
