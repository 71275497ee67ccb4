"""The base class of the generated datasets: how many images each person has, their order, and the processes."""

import hashlib
import inspect
import json
import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tqdm import tqdm

from masquerade.assets.packaged import packaged
from masquerade.core import discovery, files, fingerprints, process
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive
from masquerade.faces import Dataset, Record
from masquerade.faces.generated import Conditions, Recipe, find_weights

logger = logging.getLogger(__name__)

PART = 5  # people in a part
SIZE = 256
DIRECTION_IMAGES = 400  # from whose measures the directions of W are regressed; our choice


class GeneratedDataset(Dataset):
    """A dataset of people who do not exist, drawn by the generator of the package random-face: docs/datasets.md.

    Processors draw, one thread each, also where there is a GPU. An image depends on the seed, its person and its
    number, and on whether the processor has bfloat16.
    """

    shows = "images that a published generator draws, of people who do not exist; no photographs"
    synthetic = True
    labeled_by = ("dlib_face", "age_gender")
    terms = "research, non-commercial"
    conditions: Conditions

    @abstractmethod
    def count_images(self, seed: int, split: str, person: int) -> int:
        """Number of images of a person."""

    def available(self) -> tuple[bool, str]:
        try:
            packaged("random_face", "data", "SynthesisNetwork.bin", install="random-face")
        except CheckpointError as error:
            return False, str(error)
        return True, ""

    def sources(self) -> list[Path]:
        return [find_weights(weights) for weights in (self.params.head, self.params.parser) if weights]

    def count(self, seed: int) -> dict[str, int]:
        people = {split: range(getattr(self.params.identities, split)) for split in self.splits}
        return {split: sum(self.count_images(seed, split, person) for person in people[split]) for split in people}

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Yield every face, split by split and person by person. Raises ParameterError for another size than 256.

        Processes draw parts of PART people into archives in ``parts_folder``; an interrupted run finds them again.
        """
        recipe = Recipe(discovery.find_name(type(self)), self.params, self.conditions, seed)
        if size != SIZE:
            raise ParameterError(
                f"datasets.{recipe.dataset} draws {SIZE} pixels, and image.size is {size}: generated faces are not "
                f"resized. Set image.size to {SIZE}."
            )
        place = (
            TemporaryDirectory()
            if self.parts_folder is None
            else nullcontext(self.parts_folder / self._hash_settings(seed))
        )
        with place as folder, process.open_pool(workers) as pool:
            yield from self._draw(pool, Path(folder), recipe)

    def _draw(self, pool: ProcessPoolExecutor, folder: Path, recipe: Recipe) -> Iterator[Record]:
        from masquerade.faces.generated import drawing

        directions = self._directions(pool, folder / "directions.npy", recipe)
        parts = {}
        for split in self.splits:
            people = range(getattr(self.params.identities, split))
            for first in people[::PART]:
                part = folder / f"{split}-{first:06d}.zip"
                images = {number: self.count_images(recipe.seed, split, number) for number in people[first:][:PART]}
                shared = recipe, directions, split, images, part
                parts[part] = None if part.is_file() else pool.submit(drawing.draw_part, *shared)
        rejected: Counter[str] = Counter()
        faces = sum(self.count(recipe.seed).values())
        with tqdm(total=faces, unit="face", desc=self.title, mininterval=5, disable=None) as bar:
            for part, future in parts.items():
                if future:
                    future.result()
                archive = FaceArchive(part)
                rejected.update(archive.metadata["rejected"])
                for row, picture in zip(archive.index.to_dict("records"), archive.pictures(archive.index), strict=True):
                    bar.update()
                    yield Record(picture, row | {"landmarks": row["landmarks"].tolist()})
        logger.info("%s: rejected draws: %s", self.title, dict(rejected))

    def _directions(self, pool: ProcessPoolExecutor, path: Path, recipe: Recipe) -> np.ndarray:
        from masquerade.faces.generated import drawing

        if not path.is_file():
            measured = pool.map(partial(drawing.measure_image, recipe), range(DIRECTION_IMAGES), chunksize=4)
            directions = pool.submit(drawing.regress_directions, recipe, list(measured)).result()
            with files.write_atomically(path) as temporary, temporary.open("wb") as out:
                np.save(out, directions)
        return np.load(path)

    def _hash_settings(self, seed: int) -> str:
        """A name for all that the images depend on: the parameters, the seed, the head, and the code."""
        import torch

        from masquerade.training.precision import bfloat16_pays

        module = Path(inspect.getfile(type(self)))
        code = [fingerprints.fingerprint(path) for path in fingerprints.find_closure(module)]
        weights = [fingerprints.sha256(path) for path in self.sources()]
        settings = [self.params.model_dump(), seed, weights, code, bfloat16_pays(torch.device("cpu"))]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
