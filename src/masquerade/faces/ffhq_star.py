"""FFHQ*: faces that a StyleGAN generated, in place of photographs that are not available."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt
from tqdm import tqdm

from masquerade.core import process, seeding
from masquerade.core.errors import ParameterError
from masquerade.core.settings import Settings
from masquerade.faces import Dataset, Record

BATCH = 32  # images that are generated at a time


class FFHQStar(Dataset):
    """70,000 images of a StyleGAN that was trained on FFHQ, 90 % of them for training: iFADIT, section 4.1.

    The published set is not read: the generator of the pipeline generates the faces. Each face counts as a person of
    its own. See docs/datasets.md.
    """

    title = "FFHQ*"
    shows = "images that a generator draws, of people who do not exist; no photographs"
    synthetic = True

    class Params(Settings):
        generator: str
        """The checkpoint of the backbone ``generator``, which the pipeline builds if it is missing. An empty text means
        that there is none."""
        pictures: PositiveInt
        """Number of generated faces (70,000: ifadit section 4.1)."""
        train_pictures: NonNegativeInt
        """Number of faces, counted from the first, that form the train split and, at its end, the validation split
        (63,000: ifadit section 4.1)."""
        validation_pictures: NonNegativeInt
        """Number of these faces, counted from the last, that form the validation split, on which verification
        thresholds are set. Our choice: the paper has none."""
        psi: Annotated[float, Field(gt=0, le=1)]
        """Truncation psi. Our choice, as for the fakes (0.7: falco's published code); the paper does not give it."""

    params: Params

    def available(self) -> tuple[bool, str]:
        if self.params.generator:
            return True, ""
        return False, (
            "no generator is named to draw them (params.yaml: set datasets.ffhq_star.generator to "
            "checkpoints/<scale>/backbones/generator.safetensors)"
        )

    def sources(self) -> list[Path]:
        return [Path(self.params.generator)]

    def count(self, seed: int) -> dict[str, int]:
        p = self.params
        train = p.train_pictures - p.validation_pictures
        return {"train": train, "validation": p.validation_pictures, "test": p.pictures - p.train_pictures}

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Yield every face. Raises CheckpointError if the checkpoint does not load, ParameterError for another size."""
        from masquerade.backbones.generator import training
        from masquerade.networks.inputs import device

        generator = training.load(Path(self.params.generator))
        if generator.size != size:
            raise ParameterError(
                f"{self.params.generator} draws {generator.size} pixels, and image.size is {size}: generated faces are "
                "not resized. Set image.size to the size of the generator, or name another generator."
            )
        generator = generator.to(device())
        pool = process.open_pool(workers) if workers > 1 else nullcontext()
        bar = tqdm(total=self.params.pictures, unit="face", desc=self.title, mininterval=5, disable=None)
        with bar, pool as beside:
            for start in range(0, self.params.pictures, BATCH):
                numbers = range(start, min(start + BATCH, self.params.pictures))
                pictures = _generate(generator, numbers, seed, self.params.psi)
                for record in (beside.map if beside else map)(self._record, numbers, pictures):
                    bar.update()
                    yield record

    def _record(self, number: int, picture: np.ndarray) -> Record:
        from masquerade.faces.photographs import alignment

        points, detected = alignment.detect_landmarks(picture)
        name = f"ffhq_star-{number:05d}"
        row = {"id": name, "identity": name, "split": self._split(number)}
        return Record(picture, {**row, "landmarks": points.astype(np.float32).ravel().tolist(), "detected": detected})

    def _split(self, number: int) -> str:
        if number >= self.params.train_pictures:
            return "test"
        return "validation" if number >= self.params.train_pictures - self.params.validation_pictures else "train"


def _generate(generator, numbers: range, seed: int, psi: float) -> np.ndarray:
    """Faces, uint8 (N, S, S, 3), N up to BATCH. Each depends on the seed and its number alone.

    BATCH faces are always drawn: a processor rounds the sums of a smaller batch in another order.
    """
    import torch

    from masquerade.backbones.generator import training
    from masquerade.core.images import to_uint8

    draws = [seeding.make_generator(seed, "ffhq_star", number) for number in numbers]
    z = torch.zeros(BATCH, generator.style_width)
    for row, draw in enumerate(draws):
        z[row] = torch.from_numpy(draw.standard_normal(generator.style_width, dtype=np.float32))
    return to_uint8(training.draw_faces(generator, z, psi)[: len(draws)].numpy())
