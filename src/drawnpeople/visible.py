"""The visible points of an image: what is drawn of the head, of clothes and of things before they are lit."""

from typing import NamedTuple

import numpy as np


class Visible(NamedTuple):
    """N visible points: float32 (N, 3) or (N,), and int32 ``material`` (N,). Kernels of skin.py and shading.py fill it.

    A kernel reads each array once, because each access counts references.
    """

    points: np.ndarray
    normal: np.ndarray
    place: np.ndarray  # on the template
    material: np.ndarray
    occlusion: np.ndarray  # share of the light from all around that reaches the point
    albedo: np.ndarray  # linear color
    tilt: np.ndarray  # what the unevenness of the skin adds to the normal
    gloss: np.ndarray
