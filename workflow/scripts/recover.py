"""Try to recover the faces of one anonymized set, with the right key and with wrong ones."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces", "anonymized"), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import RecoverySettings
    from masquerade.pipeline import recovery

    settings = given.params.settings("recovery", RecoverySettings, given.method, given.variant)
    originals, anonymized, output = FaceArchive(given.faces), FaceArchive(given.anonymized), given.outputs[0]
    batch = given.params["measure.batch"]
    recovery.recover_all(originals, anonymized, output, program.build_method(given), settings, batch)
    sample = recovery.draw_sample(originals, FaceArchive(output))
    if sample is not None:
        run.log_image("attempts", sample)


if __name__ == "__main__":
    program.main(f"recover {given.method}/{given.variant} seed {given.seed}", given, work)
