"""Draws people who do not exist: their codes, the filter of bad draws, and the rows of their images.

A person is a code w. An image of a person has codes near w: moved along directions of W (pose, expression, light), and
with a share of other codes in each group of layers. The layers are those of StyleGAN2 (`MobileStyleGAN`).
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from masquerade.backbones.generator import random_face
from masquerade.backbones.parsing import training as parsing
from masquerade.core import seeding
from masquerade.core.annotations import FACE_BOX
from masquerade.core.errors import ParameterError
from masquerade.core.images import ArchiveWriter, to_float, to_uint8
from masquerade.faces.generated import Recipe, detection, find_weights, labels
from masquerade.faces.photographs import alignment
from masquerade.networks.age_gender import AgeAndGender
from masquerade.networks.mobile_stylegan import LARGE, SIZE, STYLE

MEAN_OF = 10_000  # codes whose mean and principal axes are taken: Karras et al. 2019, appendix B
AXES = 40  # principal axes of W: 0.72 of its variance
RIDGE = 5.0  # of the regression on these axes, in units of an image
MOVED = {
    "yaw": range(5), "pitch": range(5), "smile": range(3, 6), "mouth": range(3, 6), "eyes": range(4, 7),
    "light": range(6, 14), "side": range(6, 14),
}  # fmt: skip
"""Direction -> the layers whose codes it moves. Our choices; `Conditions` has the distances."""
SHARED = {"outline": (range(3), 0.1), "features": (range(3, 7), 0.05), "colors": (range(7, 14), 0.5)}
"""Group of layers -> its layers, and the share t of another person's code in them: sqrt(1 - t^2) w + t w' keeps the
variance. Our choices."""
FARTHEST = 1.2
"""Largest distance of a person's code to the mean of W, not truncated, as a multiple of the usual distance. Our choice,
as the next three: an image outside of these limits is drawn again."""
OFFSET = 0.12
"""Largest distance of the middle of the detected box to that of an aligned face, as a share of the image's side."""
DARKEST, BRIGHTEST = 0.15, 0.85
"""Least and largest mean brightness of the face, of the range."""
CLIPPED = 0.05
"""Largest share of the face's pixels that are white in all colors."""
ATTEMPTS = 5  # draws of an image, after which another person is drawn
PEOPLE = 50  # draws of a person, after which something is wrong


class Studio:
    """The generator with what is needed to draw people. Everything that it draws depends on the recipe alone."""

    def __init__(self, recipe: Recipe):
        self.recipe, params = recipe, recipe.params
        self.generator = (
            random_face.load_with_head(find_weights(params.head)) if params.head else random_face.build_without_head()
        )
        self.networks = AgeAndGender()
        self.parser = parsing.load(find_weights(params.parser))
        draws = self._make_generator("mean")
        codes = self._map(draws.standard_normal((MEAN_OF, STYLE), dtype=np.float32)).astype(np.float64)
        self.mean = codes.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(codes - self.mean, rowvar=False))
        self.axes = (vectors[:, -AXES:] * np.sqrt(values[-AXES:])).T
        self.usual = float(np.sqrt(values.sum()))
        self.rejected: Counter[str] = Counter()

    def _make_generator(self, *purpose: object) -> np.random.Generator:
        return seeding.make_generator(self.recipe.seed, self.recipe.dataset, *purpose)

    def draw_code(self, *purpose: object) -> np.ndarray:
        """A code of W, not truncated: float64 (STYLE,)."""
        draws = self._make_generator(*purpose)
        return self._map(draws.standard_normal((1, STYLE), dtype=np.float32))[0].astype(np.float64)

    def truncate(self, w: np.ndarray) -> np.ndarray:
        return self.mean + self.recipe.params.psi * (w - self.mean)

    @torch.inference_mode()
    def _map(self, z: np.ndarray) -> np.ndarray:
        return self.generator.map(torch.from_numpy(z)).numpy()

    @torch.inference_mode()
    def draw_image(self, codes: np.ndarray) -> np.ndarray:
        """Codes (layers, STYLE) -> uint8 (SIZE, SIZE, 3). One at a time, so no image depends on its neighbors."""
        w_plus = torch.from_numpy(codes[None].astype(np.float32))
        if self.recipe.params.head:
            image = self.generator.synthesize(w_plus)
        else:
            image = functional.avg_pool2d(self.generator.synthesize_large(w_plus), LARGE // SIZE)
        return to_uint8(image.numpy())[0]

    def measure_image(self, number: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Of an image: its code along the axes (AXES,), and its measures. None if it does not pass the filter."""
        w = self.truncate(self.draw_code("direction", number))
        picture = self.draw_image(np.tile(w, (self.generator.layers, 1)))
        points, fault = self.find_landmarks(picture)
        if fault:
            return None
        along = self.axes @ (w - self.mean) / (self.axes**2).sum(axis=1)
        return along, labels.measure(picture, points)

    def find_landmarks(self, picture: np.ndarray) -> tuple[np.ndarray, str]:
        """The 68 points of an image, (68, 2) in pixels, and its fault: '' if it passes the filter."""
        side, by_hog = picture.shape[0], self.recipe.conditions.detector == "hog"
        boxes = alignment.detect(picture, side, 0.0) if by_hog else detection.detect(picture)
        if len(boxes) != 1:
            return np.zeros((68, 2)), "no face" if not len(boxes) else "several faces"
        middle = boxes[0].reshape(2, 2).mean(axis=0) / side
        if np.linalg.norm(middle - np.reshape(FACE_BOX, (2, 2)).mean(axis=0)) > OFFSET:
            return np.zeros((68, 2)), "not in the middle"
        points = alignment.points(picture, boxes[0] if by_hog else np.array(FACE_BOX) * side)
        if points.min() < 0 or points.max() > side - 1:
            return points, "landmarks outside"
        pixels = labels.face_pixels(picture, points)
        brightness = pixels.mean() / 255.0
        if not DARKEST <= brightness <= BRIGHTEST or (pixels.min(axis=1) > 250).mean() > CLIPPED:
            return points, "light"
        return points, ""

    def vary(self, w: np.ndarray, directions: np.ndarray, *purpose: object) -> np.ndarray:
        """The codes (layers, STYLE) of an image of the person w (truncated).

        The amounts are uniform with deviation 1: normal ones would turn one head in twenty too far.
        """
        codes = np.tile(w, (self.generator.layers, 1))
        for group, (layers, share) in SHARED.items():
            other = self.truncate(self.draw_code(*purpose, group))
            codes[layers] = self.mean + np.sqrt(1 - share**2) * (w - self.mean) + share * (other - self.mean)
        amounts = self._make_generator(*purpose, "amounts").uniform(-(3**0.5), 3**0.5, len(MOVED))
        for (name, layers), direction, amount in zip(MOVED.items(), directions, amounts, strict=True):
            codes[layers] += getattr(self.recipe.conditions, name) * amount * direction
        return codes

    def draw_person(
        self, directions: np.ndarray, split: str, number: int, count: int
    ) -> Iterator[tuple[dict, np.ndarray]]:
        """The rows of a person and the ``count`` images. Raises ParameterError if no draw passes the limits."""
        dataset = self.recipe.dataset
        for draw in range(PEOPLE):
            images = self._draw_images(directions, split, number, draw, count)
            if images:
                break
        else:
            raise ParameterError(f"datasets.{dataset}: no image of {PEOPLE} people passes the filter of bad draws.")
        ages, males = self.networks.measure([picture for picture, _ in images])
        identity = f"{dataset}-{split}-{number:04d}"
        shared = labels.label_person(float(ages.mean()), float(males.mean()))
        for take, (picture, points) in enumerate(images):
            row = {"id": f"{identity}-{take:02d}", "identity": identity, "split": split, "detected": True}
            row |= {"landmarks": points.astype(np.float32).ravel().tolist()}
            mask = self.parser.labels(torch.from_numpy(to_float(picture[None]))).numpy()[0]
            yield row | labels.label_image(picture, points, mask, shared, formal=number % 2 == 1), picture

    def _draw_images(self, directions: np.ndarray, split: str, number: int, draw: int, count: int) -> list:
        """``count`` images and points of a draw of a person; none if the filter rejects the person."""
        w = self.draw_code(split, number, draw)
        if np.linalg.norm(w - self.mean) > FARTHEST * self.usual:
            self.rejected["far from the mean"] += 1
            return []
        images = []
        for take in range(count):
            for attempt in itertools.count():
                if attempt == ATTEMPTS:
                    self.rejected["people"] += 1
                    return []
                codes = self.vary(self.truncate(w), directions, split, number, draw, take, attempt)
                picture = self.draw_image(codes)
                points, fault = self.find_landmarks(picture)
                if not fault:
                    images.append((picture, points))
                    break
                self.rejected[fault] += 1
        return images


open_studio = lru_cache(maxsize=1)(Studio)
"""The studio of this process for a recipe."""


def measure_image(recipe: Recipe, number: int) -> tuple[np.ndarray, np.ndarray] | None:
    """`Studio.measure_image` in this process."""
    return open_studio(recipe).measure_image(number)


def regress_directions(recipe: Recipe, pictures: Sequence) -> np.ndarray:
    """The directions of W, float64 (7, STYLE), in the order of `labels.NAMES`; one deviation of W long.

    Each is the ridge regression of a measure on the principal axes, from what `measure_image` gave of images.
    """
    passed = [picture for picture in pictures if picture]
    if len(passed) < len(pictures) / 2:
        raise ParameterError(
            f"datasets.{recipe.dataset}: most images fail the filter of bad draws. Raise or lower psi."
        )
    along, values = (np.stack(part) for part in zip(*passed, strict=True))
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    weights = np.linalg.solve(along.T @ along + RIDGE * np.eye(AXES), along.T @ values)
    return (weights / np.linalg.norm(weights, axis=0)).T @ open_studio(recipe).axes


def draw_part(recipe: Recipe, directions: np.ndarray, split: str, images: Mapping[int, int], part: Path) -> None:
    """Draw some people of a split into an archive. ``images``: number of a person -> number of images."""
    studio = open_studio(recipe)
    studio.rejected.clear()
    with ArchiveWriter(part) as out:
        for number, count in images.items():
            for row, picture in studio.draw_person(directions, split, number, count):
                out.add(picture, row)
        out.metadata["rejected"] = dict(studio.rejected)
