"""FFHQ*: faces that a StyleGAN drew, in the place of photographs that cannot be had."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from tqdm import tqdm

from masquerade import seeding
from masquerade.errors import ParameterError
from masquerade.faces import Dataset, Record
from masquerade.settings import Settings

BATCH = 32  # pictures that are drawn at a time


class FFHQStar(Dataset):
    """70,000 pictures of a StyleGAN that learnt from FFHQ, 90 % to train on: iFADIT, section 4.1.

    The published set is not read: its faces are drawn here, by the generator that the pipeline built. Each is a person
    of its own. docs/datasets.md.
    """

    title = "FFHQ*"

    class Params(Settings):
        generator: str
        """The checkpoint of the backbone ``generator``, which the pipeline builds where it is not there; '' = none."""
        pictures: Annotated[int, Field(ge=1)]
        """Faces (70,000: ifadit section 4.1)."""
        train_pictures: Annotated[int, Field(ge=0)]
        """The first faces, which are the train split but for its last ones (63,000: ifadit section 4.1)."""
        validation_pictures: Annotated[int, Field(ge=0)]
        """The last of them, which set verification thresholds. Ours: the paper has none."""
        psi: Annotated[float, Field(gt=0, le=1)]
        """Truncation. Ours, as that of the fakes (0.7: falco's published code); the paper does not say it."""

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
        """Raises CheckpointError for a checkpoint that does not load, ParameterError where it draws another size."""
        import torch

        from masquerade.backbones import _generator

        generator = _generator.load(Path(self.params.generator))
        if generator.size != size:
            raise ParameterError(
                f"{self.params.generator} draws {generator.size} pixels, and image.size is {size}: faces that a "
                "generator drew are not resized."
            )
        generator = generator.to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        # Spawned, because a fork would inherit the threads of PyTorch.
        pool = ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else nullcontext()
        bar = tqdm(total=self.params.pictures, unit="face", desc=self.title, mininterval=5, disable=None)
        with bar, pool as others:
            for start in range(0, self.params.pictures, BATCH):
                numbers = range(start, min(start + BATCH, self.params.pictures))
                pictures = _drawn(generator, numbers, seed, self.params.psi)
                for record in (others.map if others else map)(self._record, numbers, pictures):
                    bar.update()
                    yield record

    def _record(self, number: int, picture: np.ndarray) -> Record:
        from masquerade.faces import _alignment

        points, detected = _alignment.known_place(picture)
        name = f"ffhq_star-{number:05d}"
        row = {"id": name, "identity": name, "split": self._split(number)}
        return Record(picture, {**row, "landmarks": points.astype(np.float32).ravel().tolist(), "detected": detected})

    def _split(self, number: int) -> str:
        if number >= self.params.train_pictures:
            return "test"
        return "validation" if number >= self.params.train_pictures - self.params.validation_pictures else "train"


def _drawn(generator, numbers: range, seed: int, psi: float) -> np.ndarray:
    """uint8 (N, S, S, 3): each face depends on the seed and its number alone."""
    import torch

    from masquerade.backbones import _generator
    from masquerade.images import to_uint8

    draws = [seeding.generator(seed, "ffhq_star", number) for number in numbers]
    z = np.stack([draw.standard_normal(generator.style_width, dtype=np.float32) for draw in draws])
    return to_uint8(_generator.faces(generator, torch.from_numpy(z), psi).numpy())
