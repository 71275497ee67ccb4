"""The face region that the classical methods hide, and their unit of length."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from PIL import Image

from masquerade.core.annotations import compute_boxes
from masquerade.core.errors import ParameterError, PictureError
from masquerade.core.images import Faces

REFERENCE_SIZE = 256
"""IdentityDP states its sizes for images of 256 x 256 pixels (section V.A)."""

Area = Literal["face", "picture"]
"""The area to hide: the face region (IdentityDP, section V.E) or the whole image (cao21, Figure 1)."""


def find_boxes(faces: Faces) -> np.ndarray:
    """The face region of each face, int (N, 4): left, top, right, bottom in pixels; right and bottom are exclusive.

    It is the box around the 68 landmarks, extended over the forehead and clipped to the image. Raises PictureError,
    which names the faces, if landmarks are not known or lie outside of the image.
    """
    points = faces.landmarks
    lost = "the face region cannot be found"
    refuse(faces, np.isnan(points).any(axis=(1, 2)), f"its 68 landmarks are not known; {lost}")
    corners = compute_boxes(points, faces.images.shape[-2:])
    outside = (corners[:, 2:] <= corners[:, :2]).any(axis=1)
    refuse(faces, outside, f"its landmarks lie outside of the image; {lost}")
    return corners


def edit(faces: Faces, change: Callable[[np.ndarray, str], np.ndarray], area: Area = "face") -> np.ndarray:
    """A copy of the images with ``change(region, id)``, float32 (3, h, w), in place of the region."""
    if area == "picture":
        return np.stack([change(image, name) for image, name in zip(faces.images, faces.ids, strict=True)])
    images = faces.images.copy()
    for image, name, (left, top, right, bottom) in zip(images, faces.ids, find_boxes(faces), strict=True):
        image[:, top:bottom, left:right] = change(image[:, top:bottom, left:right], name)
    return images


def in_pixels(size: float, images: np.ndarray, at_least: float = 0.0) -> float:
    """A length in pixels of ``images``, from a length in pixels of a 256-pixel image.

    Raises ParameterError if the result is less than ``at_least``, because the method would hide nothing.
    """
    scale = images.shape[-1] / REFERENCE_SIZE
    if size * scale < at_least:
        raise ParameterError(
            f"A size of {size:g} (pixels of a {REFERENCE_SIZE}-pixel image) is {size * scale:g} pixels of these "
            f"{images.shape[-1]}-pixel images and would hide nothing. Take at least {at_least / scale:g}."
        )
    return size * scale


def resample(picture: np.ndarray, block: float, enlarging: Image.Resampling) -> np.ndarray:
    """The image, float32 (3, H, W), as one sample for each ``block`` x ``block`` pixels, enlarged again."""
    height, width = picture.shape[-2:]
    small = (max(1, round(width / block)), max(1, round(height / block)))
    planes = [Image.fromarray(plane).resize(small, Image.Resampling.BOX) for plane in picture]
    return np.stack([np.asarray(plane.resize((width, height), enlarging)) for plane in planes])


def refuse(faces: Faces, unusable: Any, reason: str) -> None:
    """Raises PictureError, which names the unusable faces, bool (N,), if there are any."""
    if unusable.any():
        names = [name for name, bad in zip(faces.ids, unusable, strict=True) if bad]
        raise PictureError(f"{', '.join(names)}: {reason}.")
