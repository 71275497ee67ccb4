"""The face region that the classical methods hide, and their unit of length."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from masquerade.errors import ParameterError, PictureError
from masquerade.images import Faces

REFERENCE_SIZE = 256
"""IdentityDP states its sizes for pictures of 256 x 256 pixels (section V.A)."""

Where = Literal["face", "picture"]
"""What is hidden: the face region (IdentityDP, section V.E), or the whole picture (cao21, Figure 1)."""

FOREHEAD = 0.5
"""The 68 landmarks end at the brows. Hairline to brows, brows to nose base and nose base to chin are about one third
of a face each (the neoclassical canon), so the forehead adds half of the height from brows to chin."""


def boxes(faces: Faces) -> np.ndarray:
    """The face region of each face, int (N, 4): left, top, right, bottom in pixels, the last two exclusive.

    The box around the 68 landmarks, extended over the forehead and clipped to the picture. Raises PictureError,
    naming the faces, where the landmarks are not known or lie outside of the picture.
    """
    height, width = faces.images.shape[-2:]
    points = faces.landmarks
    _refuse(faces, np.isnan(points).any(axis=(1, 2)), "its 68 landmarks are not known")
    low, high = points.min(axis=1), points.max(axis=1)
    low[:, 1] -= FOREHEAD * (high[:, 1] - low[:, 1])
    corners = np.concatenate([np.floor(low), np.ceil(high) + 1], axis=1)
    corners = np.clip(corners, 0, [width, height, width, height]).astype(int)
    _refuse(faces, (corners[:, 2:] <= corners[:, :2]).any(axis=1), "its landmarks lie outside of the picture")
    return corners


def edit(faces: Faces, change: Callable[[np.ndarray, str], np.ndarray], where: Where = "face") -> np.ndarray:
    """A copy of the pictures in which ``change(region, id)``, float32 (3, h, w), replaces the region."""
    if where == "picture":
        return np.stack([change(image, name) for image, name in zip(faces.images, faces.ids, strict=True)])
    images = faces.images.copy()
    for image, name, (left, top, right, bottom) in zip(images, faces.ids, boxes(faces), strict=True):
        image[:, top:bottom, left:right] = change(image[:, top:bottom, left:right], name)
    return images


def in_pixels(size: float, images: np.ndarray, at_least: float = 0.0) -> float:
    """A length given in pixels of a 256-pixel picture, in pixels of ``images``; so results scale with resolution.

    Raises ParameterError where that is less than ``at_least``: the method would hand back the original.
    """
    scale = images.shape[-1] / REFERENCE_SIZE
    if size * scale < at_least:
        raise ParameterError(
            f"A size of {size:g} (pixels of a {REFERENCE_SIZE}-pixel picture) is {size * scale:g} pixels of these "
            f"{images.shape[-1]}-pixel pictures and would hide nothing: take at least {at_least / scale:g}."
        )
    return size * scale


def _refuse(faces: Faces, unusable: np.ndarray, reason: str) -> None:
    if unusable.any():
        names = [name for name, bad in zip(faces.ids, unusable, strict=True) if bad]
        raise PictureError(f"{', '.join(names)}: {reason}; the face region cannot be found.")
