"""Attack one anonymized set without any training: guessed and averaged keys, a flipped sign, linked pictures."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__,
    files=("faces", "anonymized", "source"),
    lists=(*program.METHOD_FILES, "judged"),
    words=("method", "variant", "dataset", "seed"),
)


def work(run) -> None:
    from masquerade.core import discovery, files, measurements
    from masquerade.core.images import FaceArchive
    from masquerade.params import blocks
    from masquerade.pipeline import attacks

    settings = blocks.AttackSettings(**program.block(given.params, "attacks"))
    cls = discovery.load("judges", settings.judge)
    judge = cls(cls.Params(**given.params[f"judges.{settings.judge}"]), {path.stem: path for path in given.judged})
    attacker = attacks.Attacker(
        FaceArchive(given.faces), FaceArchive(given.anonymized), program.method(given), judge,
        measurements.read(given.source), given.params["matrix.calibrate_on"], settings, given.params["bootstrap.draws"],
    )  # fmt: skip
    results = attacker.attack()
    files.write_json(given.outputs[0], {"cell": program.cell(given), "attacks": results})
    shares = {name: each["person"]["value"] for name, each in results["found"].items()}
    run.log(0, {name: value for name, value in shares.items() if value is not None})


if __name__ == "__main__":
    program.main(f"attack {given.method}/{given.variant} seed {given.seed}", given, work)
