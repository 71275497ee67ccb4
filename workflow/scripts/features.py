"""Take the test faces of one dataset apart with one variant of one method, and keep the features."""

from masquerade import features, steps
from masquerade.images import FaceArchive

given = steps.arguments(__doc__, files=("faces",), lists=steps.METHOD_FILES, words=("method", "variant", "seed"))


def work(_) -> None:
    import torch

    torch.set_num_threads(given.threads)
    cell = {"method": given.method, "variant": given.variant, "seed": int(given.seed)}
    batch = given.params["measure.batch"]
    features.write(FaceArchive(given.faces), given.outputs[0], steps.method(given), "test", batch, cell)


if __name__ == "__main__":
    steps.main(f"features {given.method}/{given.variant} seed {given.seed}", given, work)
