"""The parsing labels of the masks, and linear light."""

import numpy as np

CLASSES = (
    "background", "skin", "l_brow", "r_brow", "l_eye", "r_eye", "eye_g", "l_ear", "r_ear", "ear_r", "nose", "mouth",
    "u_lip", "l_lip", "neck", "neck_l", "cloth", "hair", "hat",
)  # fmt: skip
"""Parsing classes: label -> name, in the order of CelebAMask-HQ's published networks."""
LABEL = {name: number for number, name in enumerate(CLASSES)}
"""Parsing class -> its number in a mask; in names with l_ and r_, l_ is the side on the left of the image."""


def linear(srgb) -> np.ndarray:
    """sRGB [0, 1] to linear light, by a power of 2.2, which is exact enough for paint."""
    return np.asarray(srgb, dtype=np.float32) ** np.float32(2.2)
