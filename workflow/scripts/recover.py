"""Try to recover the faces of one anonymized set, with the right key and with wrong ones."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("faces", "anonymized"), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import RecoverySettings
    from masquerade.pipeline import recovery

    settings = arguments.params.settings("recovery", RecoverySettings, arguments.method, arguments.variant)
    originals, anonymized, output = (
        FaceArchive(arguments.faces),
        FaceArchive(arguments.anonymized),
        arguments.outputs[0],
    )
    batch = arguments.params["measure.batch"]
    recovery.recover_all(originals, anonymized, output, program.build_method(arguments), settings, batch)
    sample = recovery.draw_sample(originals, FaceArchive(output))
    if sample is not None:
        run.log_image("attempts", sample)


if __name__ == "__main__":
    program.main(f"recover {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work)
