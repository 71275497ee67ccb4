"""Anonymize the test split, or a part of the train split, of one dataset with one variant of one method."""

from masquerade import anonymization, steps
from masquerade.images import FaceArchive

given = steps.arguments(
    __doc__, files=("faces",), lists=steps.METHOD_FILES, words=("split", "method", "variant", "seed")
)


def work(run) -> None:
    method = steps.method(given)
    anonymization.anonymize(
        FaceArchive(given.faces), given.outputs[0], method, given.variant, given.split, int(given.seed),
        given.params["measure.batch"], most=given.params.get("attributes.train_pictures", 0),
    )  # fmt: skip
    sample = anonymization.sample(given.faces, given.outputs[0])
    if sample is not None:
        run.picture("sample", sample)
    run.tag({f"statement.{key}": str(value) for key, value in method.statement().items()})


if __name__ == "__main__":
    steps.main(f"anonymize {given.method}/{given.variant} seed {given.seed}", given, work)
