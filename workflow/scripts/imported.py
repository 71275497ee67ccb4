"""Take in the pictures that another program made of the test split of one dataset."""

from masquerade import anonymization, steps
from masquerade.images import FaceArchive
from masquerade.imported import pictures
from masquerade.imported.settings import ImportedSet

given = steps.arguments(__doc__, files=("faces", "pictures"), words=("dataset", "method", "variant", "seed"))


def work(run) -> None:
    block = f"imported.{given.method}"
    knobs = ImportedSet(**given.params[f"{block}.variants.{given.variant}.{given.dataset}"])
    about = {"method": given.method, "variant": given.variant, "seed": int(given.seed)}
    pictures.take_in(
        FaceArchive(given.faces), given.pictures, given.outputs[0], knobs, given.params[f"{block}.source"], about
    )
    sample = anonymization.sample(given.faces, given.outputs[0])
    if sample is not None:
        run.picture("sample", sample)
    run.tag({"imported": f"sha256:{knobs.sha256}"})


if __name__ == "__main__":
    steps.main(f"import {given.method}/{given.variant}", given, work)
