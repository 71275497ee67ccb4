"""Try to recover the faces of one anonymized set, with the right key and with wrong ones."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__, files=("faces", "anonymized"), lists=program.METHOD_FILES, words=("method", "variant", "seed")
)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.params import blocks
    from masquerade.pipeline import recovery

    own = f"recovery.own.{given.method}.{given.variant}"
    shared = {name: value for name, value in program.block(given.params, "recovery").items() if "." not in name}
    settings = blocks.RecoverySettings(**shared | given.params.get(own, {}))
    recovery.attempt_all(
        FaceArchive(given.faces), FaceArchive(given.anonymized), given.outputs[0], program.method(given), settings,
        given.params["measure.batch"],
    )  # fmt: skip
    sample = recovery.sample(FaceArchive(given.faces), FaceArchive(given.outputs[0]))
    if sample is not None:
        run.picture("attempts", sample)


if __name__ == "__main__":
    program.main(f"recover {given.method}/{given.variant} seed {given.seed}", given, work)
