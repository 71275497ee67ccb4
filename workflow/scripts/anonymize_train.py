"""Anonymize the pictures of the methods' people from which a classifier of attributes learns."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

    method, params = program.build_method(given), given.params
    anonymization.anonymize(
        FaceArchive(given.faces), given.outputs[0], method, given.variant, "methods", given.seed,
        params["measure.batch"], most=params["attributes.train_pictures"],
    )  # fmt: skip
    program.record_sample(run, given, method)


if __name__ == "__main__":
    program.main(f"anonymize train faces with {given.method}/{given.variant} seed {given.seed}", given, work)
