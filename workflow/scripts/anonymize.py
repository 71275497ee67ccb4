"""Anonymize the test split, or a part of the train split, of one dataset with one variant of one method."""

from masquerade import anonymization, discovery, steps
from masquerade.images import FaceArchive
from masquerade.methods import Resources

given = steps.arguments(
    __doc__,
    files=("faces",),
    lists=("checkpoint", "backbones", "gallery", "fakes", "latents"),
    words=("split", "method", "variant", "seed"),
)


def work(run) -> None:
    cls = discovery.load("methods", given.method)
    block = f"methods.{given.method}"
    resources = Resources(
        checkpoint=next(iter(given.checkpoint), None),
        backbones={path.stem: path for path in given.backbones},
        gallery=FaceArchive(given.gallery[0]) if given.gallery else None,
        fakes=next(iter(given.fakes), None),
        latents=next(iter(given.latents), None),
    )
    method = cls(
        cls.Params(**given.params[f"{block}.params"]),
        cls.Variant(**given.params[f"{block}.variants.{given.variant}"]),
        resources,
    )
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
