"""Anonymize the test split, or a part of the train split, of one dataset with one variant of one method."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__, files=("faces",), lists=program.METHOD_FILES, words=("split", "method", "variant", "seed")
)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

    method = program.method(given)
    anonymization.anonymize(
        FaceArchive(given.faces), given.outputs[0], method, given.variant, given.split, int(given.seed),
        given.params["measure.batch"], most=given.params.get("attributes.train_pictures", 0),
    )  # fmt: skip
    sample = anonymization.sample(given.faces, given.outputs[0])
    if sample is not None:
        run.picture("sample", sample)
    run.tag({f"statement.{key}": str(value) for key, value in method.statement().items()})


if __name__ == "__main__":
    program.main(f"anonymize {given.method}/{given.variant} seed {given.seed}", given, work)
