"""Bring the faces of one anonymized set back, by right and by wrong means."""

from masquerade import recovery, steps
from masquerade.images import FaceArchive

given = steps.arguments(
    __doc__, files=("faces", "anonymized"), lists=steps.METHOD_FILES, words=("method", "variant", "seed")
)


def work(run) -> None:
    settings = recovery.RecoverySettings(**steps.block(given.params, "recovery"))
    recovery.attempt_all(
        FaceArchive(given.faces), FaceArchive(given.anonymized), given.outputs[0], steps.method(given), settings,
        given.params["measure.batch"],
    )  # fmt: skip
    sample = recovery.sample(FaceArchive(given.faces), FaceArchive(given.outputs[0]))
    if sample is not None:
        run.picture("attempts", sample)


if __name__ == "__main__":
    steps.main(f"recover {given.method}/{given.variant} seed {given.seed}", given, work)
