"""The colors of hair, eyes and lipsticks; those of skin are in skin.py."""

import numpy as np

from drawnpeople.labels import linear

HAIR = {
    "black": (0.095, 0.085, 0.082),
    "dark brown": (0.190, 0.138, 0.110),
    "brown": (0.310, 0.215, 0.155),
    "light brown": (0.450, 0.335, 0.235),
    "blond": (0.740, 0.610, 0.430),
    "red": (0.480, 0.235, 0.120),
    "gray": (0.560, 0.545, 0.530),
    "white": (0.765, 0.755, 0.735),
}
"""sRGB of hair as it looks in soft light."""
IRIS = {
    "dark brown": (0.175, 0.110, 0.080),
    "brown": (0.285, 0.175, 0.105),
    "hazel": (0.360, 0.275, 0.155),
    "green": (0.345, 0.400, 0.290),
    "blue": (0.345, 0.450, 0.570),
    "gray": (0.420, 0.460, 0.490),
}
LIPSTICK = ((0.66, 0.13, 0.17), (0.72, 0.30, 0.33), (0.54, 0.16, 0.24), (0.74, 0.40, 0.37), (0.45, 0.12, 0.16))
"""sRGB of lipsticks: red, pink, berry, coral, dark red."""


def hair_color(rng: np.random.Generator, name: str, gray: float) -> np.ndarray:
    """Linear light of a head of hair of the named color, mixed with white by the share ``gray``. float32 (3,)."""
    brightness, warmth = rng.normal(0.0, [0.18, 0.05])
    own = linear(HAIR[name]) * float(np.clip(1.0 + brightness, 0.6, 1.5))
    own = own * np.array([1.0 + np.clip(warmth, -0.1, 0.1), 1.0, 1.0 - np.clip(warmth, -0.1, 0.1)], np.float32)
    white = linear(HAIR["white"])
    return np.clip(own + (white - own) * np.float32(0.85 * gray), 0.004, 0.9).astype(np.float32)
