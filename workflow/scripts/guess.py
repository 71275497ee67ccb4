"""Try random keys on some anonymized pictures of one set."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__,
    files=("anonymized", "source"),
    lists=(*program.METHOD_FILES, "judged"),
    words=("method", "variant", "dataset", "seed"),
)


def work(run) -> None:
    from masquerade.core import discovery, files
    from masquerade.core.images import FaceArchive
    from masquerade.params import blocks
    from masquerade.pipeline import guessing

    settings = blocks.GuessingSettings(**program.block(given.params, "guessing"))
    cls = discovery.load("judges", settings.judge)
    judge = cls(cls.Params(**given.params[f"judges.{settings.judge}"]), {path.stem: path for path in given.judged})
    anonymized, calibrate_on = FaceArchive(given.anonymized), given.params["matrix.calibrate_on"]
    counts = guessing.guess(anonymized, program.method(given), judge, given.source, calibrate_on, settings)
    files.write_json(given.outputs[0], {"cell": program.cell(given), "guessing": counts})
    run.log(0, {name: value for name, value in counts.items() if isinstance(value, int | float)})


if __name__ == "__main__":
    program.main(f"guess the key of {given.method}/{given.variant} seed {given.seed}", given, work)
