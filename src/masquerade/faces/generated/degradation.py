"""What happens to an image on its way to a dataset of the web: a loose crop, few pixels, noise, compression."""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from masquerade.core.settings import Settings

ZOOM, LEAST_ZOOM, MOST_ZOOM = 1.5, 0.85, 1.18
"""The deviation of the size of a crop, in those of its place, and where it is clipped: as for rendered faces."""
LEAST_NOISE = 0.2
"""The weakest noise, as a share of the strongest one: as for rendered faces."""

Quality = Annotated[int, Field(ge=1, le=100)]


class Degradation(Settings):
    """How images of generated people are made similar to photographs of the web. Each image draws its own values."""

    smallest: Annotated[int, Field(ge=16)]
    """Smallest side in pixels to which an image is reduced, before it is enlarged again. The logarithm of the side is
    uniform. Our choice."""
    largest: Annotated[int, Field(ge=16)]
    """Largest side in pixels to which an image is reduced. Our choice."""
    lowest_quality: Quality
    """Lowest quality of JPEG, by the scale of libjpeg. The quality is uniform. Our choice."""
    highest_quality: Quality
    """Highest quality of JPEG. Our choice."""
    noise: Annotated[float, Field(ge=0, le=0.5)]
    """Largest standard deviation of the sensor noise in the reduced image, as a share of the value range; the smallest
    one is a fifth of it. Our choice."""
    jitter: Annotated[float, Field(ge=0, le=0.1)]
    """Error of the crop: the standard deviation of its place, as a share of its side. That of its size is 1.5 times as
    large. Our choice."""
    roll: Annotated[float, Field(ge=0, le=30)]
    """Standard deviation of the angle by which the crop is turned, in degrees. Our choice."""

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        for least, most in (("smallest", "largest"), ("lowest_quality", "highest_quality")):
            if getattr(self, least) > getattr(self, most):
                raise ValueError(f"{least} is {getattr(self, least)}, and {most} is {getattr(self, most)}")
        return self


def crop_loosely(
    picture: np.ndarray, points: np.ndarray, degradation: Degradation, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Another crop of an aligned image uint8 (S, S, 3), moved, turned and resized by chance: uint8 (S, S, 3).

    With it come the points (N, 2) in its pixels. Beyond the edge the image is mirrored, as by FFHQ's alignment.
    """
    from masquerade.faces.photographs import alignment

    side = picture.shape[0]
    center = (side - 1) / 2.0 + side * draws.normal(0.0, degradation.jitter, 2)
    zoom = np.clip(1.0 + draws.normal(0.0, ZOOM * degradation.jitter), LEAST_ZOOM, MOST_ZOOM)
    angle = np.radians(draws.normal(0.0, degradation.roll))
    face = alignment.Square(center, side / 2.0 * zoom * np.array([np.cos(angle), np.sin(angle)]))
    return alignment.crop(picture, face, side), alignment.into_crop(points, face, side)


def degrade(picture: np.ndarray, degradation: Degradation, draws: np.random.Generator) -> np.ndarray:
    """An image uint8 (S, S, 3) reduced, with noise, compressed as JPEG and enlarged again: uint8 (S, S, 3)."""
    import cv2

    side = round(np.exp(draws.uniform(np.log(degradation.smallest), np.log(degradation.largest))))
    small = cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA)
    deviation = 255.0 * degradation.noise * draws.uniform(LEAST_NOISE, 1.0)
    noisy = np.clip(np.rint(small + draws.normal(0.0, deviation, small.shape)), 0, 255).astype(np.uint8)
    quality = int(draws.integers(degradation.lowest_quality, degradation.highest_quality, endpoint=True))
    file = cv2.imencode(".jpg", cv2.cvtColor(noisy, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    read = np.asarray(cv2.imdecode(file, cv2.IMREAD_COLOR_RGB))
    return cv2.resize(read, picture.shape[1::-1], interpolation=cv2.INTER_CUBIC)
