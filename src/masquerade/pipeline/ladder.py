"""Recovers faces from ever less than what the method saved, to see at which step the person is lost.

Each rung is one step further from the exact representation: the representation itself, with noise, the anonymized image
before it was rounded, rounded to 8 bits as a PNG file has it, as JPEG, and reduced to half and enlarged again.
"""

import dataclasses
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from masquerade.core import seeding
from masquerade.core.images import Faces, to_float, to_uint8
from masquerade.methods import Method
from masquerade.pipeline import anonymization

NOISE = 0.1
"""Deviation of the noise, as a share of that of the numbers of each part of the representation."""
QUALITY = 90
"""Of the JPEG file."""


def climb(method: Method, faces: Faces, seed: int) -> dict[str, np.ndarray]:
    """Rung -> the faces that the right keys recover: float32 (N, 3, H, W) in [-1, 1]. Originals: ``faces``.

    The rungs are ``saved`` and ``noised``, for a method that saves a representation, and ``exact``, ``png``, ``jpeg``
    and ``resized``, for one that recovers from an image.
    """
    able = method.capabilities
    keys = anonymization.experiment_keys(able.keys, seed)(faces) if able.keys else None
    rungs: dict[str, np.ndarray] = {}
    if able.saves:
        saved = method.save(faces, seed, keys)
        draw = seeding.make_generator(seed, "noise of a ladder")
        rungs["saved"] = method.recover_saved(saved, keys)
        rungs["noised"] = method.recover_saved(add_noise(saved, NOISE, draw), keys)
    if able.invertible:
        images = method.anonymize(faces, seed, keys)
        rungs |= {rung: method.recover(change(images), keys) for rung, change in CHANGES.items()}
    return rungs


def add_noise(saved: Any, share: float, draw: np.random.Generator) -> Any:
    """A copy in which each array of floats has normal noise, whose deviation is ``share`` of that of its numbers.

    Arrays of integers, such as images, stay as they are.
    """
    import torch

    if dataclasses.is_dataclass(saved) and not isinstance(saved, type):
        changed = {
            field.name: add_noise(getattr(saved, field.name), share, draw) for field in dataclasses.fields(saved)
        }
        return dataclasses.replace(saved, **changed)
    if isinstance(saved, Mapping):
        return {name: add_noise(part, share, draw) for name, part in saved.items()}
    if isinstance(saved, tuple | list):
        return type(saved)(add_noise(part, share, draw) for part in saved)
    values = np.asarray(saved)
    if values.dtype.kind != "f":
        return saved
    noised = (values + share * values.std() * draw.standard_normal(values.shape)).astype(values.dtype)
    return torch.from_numpy(noised) if isinstance(saved, torch.Tensor) else noised


def _compress(images: np.ndarray) -> np.ndarray:
    """The images after a JPEG file of `QUALITY`."""

    def save(picture: np.ndarray) -> np.ndarray:
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "JPEG", quality=QUALITY)
        return np.asarray(Image.open(file))

    return _change_each(images, save)


def _resize(images: np.ndarray) -> np.ndarray:
    """The images after they were reduced to half of their side and enlarged again."""

    def resize(picture: np.ndarray) -> np.ndarray:
        image = Image.fromarray(picture)
        half = image.resize((image.width // 2, image.height // 2), Image.Resampling.BOX)
        return np.asarray(half.resize(image.size, Image.Resampling.BICUBIC))

    return _change_each(images, resize)


def _change_each(images: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    pictures: Sequence[np.ndarray] = [change(picture) for picture in to_uint8(images)]
    return to_float(np.stack(pictures))


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exact": lambda images: images,
    "png": lambda images: to_float(to_uint8(images)),
    "jpeg": _compress,
    "resized": _resize,
}
"""Rung -> how the image is changed that is recovered."""
