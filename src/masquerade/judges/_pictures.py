"""Helpers of the judges: pictures at the size that a judge wants, and files that lie inside installed packages."""

import importlib.util
from pathlib import Path

import numpy as np

from masquerade.errors import CheckpointError
from masquerade.images import to_uint8

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def resized(images: np.ndarray, size: int) -> np.ndarray:
    """float32 (N, 3, H, W) in [-1, 1] -> uint8 RGB (N, size, size, 3); bicubic upwards, area average downwards."""
    import cv2

    pictures = to_uint8(images)
    if pictures.shape[1:3] == (size, size):
        return pictures
    how = cv2.INTER_CUBIC if pictures.shape[1] < size else cv2.INTER_AREA
    return np.stack([cv2.resize(picture, (size, size), interpolation=how) for picture in pictures])


def standardised(images: np.ndarray, size: int, mean: tuple[float, ...], std: tuple[float, ...]) -> np.ndarray:
    """float32 (N, 3, H, W) in [-1, 1] -> float32 (N, 3, size, size): RGB in [0, 1], minus ``mean``, over ``std``."""
    scaled = resized(images, size).astype(np.float32) / 255.0
    scaled = (scaled - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))


def inside_package(package: str, file: str) -> Path:
    """A file inside an installed package, found without importing it. Raises CheckpointError where it is not there."""
    found = importlib.util.find_spec(package)
    path = Path(found.submodule_search_locations[0]) / file if found else None
    if path is None or not path.is_file():
        raise CheckpointError(f"{file} of the package {package} is not installed. Run `make environment`.")
    return path
