"""Anonymize the test split of one dataset with one variant of one method."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

    method = program.build_method(given)
    batch = given.params["measure.batch"]
    anonymization.anonymize(
        FaceArchive(given.faces), given.outputs[0], method, given.variant, "test", given.seed, batch
    )
    program.record_sample(run, given, method)


if __name__ == "__main__":
    program.main(f"anonymize {given.method}/{given.variant} seed {given.seed}", given, work)
