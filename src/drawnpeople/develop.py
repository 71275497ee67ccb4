"""From linear light to an image: averaging, exposure, tone curve, blur, sRGB, noise."""

import numpy as np

from drawnpeople.kernels import blur, exponential, power, reduce
from drawnpeople.seeding import generator
from drawnpeople.shot import Shot

F = np.float32
_KNEE = F(0.6)  # linear light above which highlights are compressed
_MIDDLE = 0.36  # linear light of the face after exposure
_METERED = 0.75  # share of the difference to _MIDDLE that exposure takes away


def develop(image: np.ndarray, shot: Shot, size: int, supersampling: int) -> np.ndarray:
    """uint8 (size, size, 3) from linear light float32 (n, n, 3), n = size * supersampling."""
    light = image
    if supersampling > 1:
        light = reduce(blur(light, 0.36 * supersampling), supersampling)
    if shot.blur * size > 0.25:
        light = blur(light, shot.blur * size)
    middle = light[size // 4 : size - size // 4, size // 4 : size - size // 4]
    luma = (middle[..., 0] * F(0.2) + middle[..., 1] * F(0.7) + middle[..., 2] * F(0.1)).ravel()
    rank = int(0.75 * (len(luma) - 1))
    metered = np.partition(luma, rank)[rank]
    exposure = float(shot.exposure) * float((_MIDDLE / max(float(metered), 1e-4)) ** _METERED)
    light = np.maximum(light * F(exposure), F(0))
    top = np.maximum(np.maximum(light[..., :1], light[..., 1:2]), light[..., 2:])
    bright = _KNEE + (1 - _KNEE) * (1 - exponential(np.maximum(top - _KNEE, 0) / -(1 - _KNEE)))
    light = light * np.where(top > _KNEE, bright / np.maximum(top, F(1e-6)), F(1))
    picture = power(light, 1 / 2.2)
    picture = picture + F(0.28) * (picture * picture * (3 - 2 * picture) - picture)  # contrast of a camera's curve
    if shot.noise > 0:
        picture = picture + generator(shot.texture, "sensor", size).normal(0, shot.noise, picture.shape).astype(F)
    return np.rint(np.clip(picture, 0, 1) * F(255)).astype(np.uint8)
