"""The colours of skin, hair, eyes and lips, in linear light."""

import numpy as np

from masquerade.faces._drawn.labels import linear

SKIN_LAB = np.array(
    [
        [77.0, 10.5, 14.0],
        [72.5, 12.5, 18.0],
        [66.5, 14.0, 21.0],
        [58.5, 15.0, 23.0],
        [49.5, 15.0, 21.5],
        [40.5, 13.0, 17.5],
        [32.0, 9.5, 12.0],
    ]
)
"""CIELAB of skin from the lightest to the darkest.

Real skin has L* of about 65 to 41, a* of 9 to 12 and b* of 15 to 20. The hues here are those; the chroma is a sixth
higher, as cameras show it, and the ends are lighter and darker than usual.
"""
HAIR = {
    "black": (0.095, 0.085, 0.082),
    "dark brown": (0.190, 0.138, 0.110),
    "brown": (0.310, 0.215, 0.155),
    "light brown": (0.450, 0.335, 0.235),
    "blond": (0.740, 0.610, 0.430),
    "red": (0.480, 0.235, 0.120),
    "grey": (0.560, 0.545, 0.530),
    "white": (0.835, 0.825, 0.805),
}
"""sRGB of hair as it looks in soft light."""
IRIS = {
    "dark brown": (0.175, 0.110, 0.080),
    "brown": (0.285, 0.175, 0.105),
    "hazel": (0.360, 0.275, 0.155),
    "green": (0.345, 0.400, 0.290),
    "blue": (0.345, 0.450, 0.570),
    "grey": (0.420, 0.460, 0.490),
}
LIPSTICK = ((0.66, 0.13, 0.17), (0.72, 0.30, 0.33), (0.54, 0.16, 0.24), (0.74, 0.40, 0.37), (0.45, 0.12, 0.16))
"""sRGB of lipsticks: red, pink, berry, coral, dark red."""


def skin_tone(melanin: float) -> np.ndarray:
    """Linear light of skin with this share of melanin, 0 the lightest to 1 the darkest. float32 (3,)."""
    place = min(max(melanin, 0.0), 1.0) * (len(SKIN_LAB) - 1)
    low = min(int(place), len(SKIN_LAB) - 2)
    lightness, a, b = SKIN_LAB[low] + (SKIN_LAB[low + 1] - SKIN_LAB[low]) * (place - low)
    y = (lightness + 16.0) / 116.0
    x, y, z = (_unlab(y + a / 500.0) * 0.9505, _unlab(y), _unlab(y - b / 200.0) * 1.089)
    rgb = (
        3.2406 * x - 1.5372 * y - 0.4986 * z,
        -0.9689 * x + 1.8758 * y + 0.0415 * z,
        0.0557 * x - 0.2040 * y + 1.0570 * z,
    )
    return np.array(rgb, np.float32)


def _unlab(value: float) -> float:
    """CIELAB's inverse cube-root function."""
    return value * value * value if value > 6.0 / 29.0 else 3.0 * (6.0 / 29.0) ** 2 * (value - 4.0 / 29.0)


def hair_colour(rng: np.random.Generator, name: str, grey: float) -> np.ndarray:
    """Linear light of a head of hair of the named colour, mixed with white by the share ``grey``. float32 (3,)."""
    brightness, warmth = rng.normal(0.0, [0.18, 0.05])
    own = linear(HAIR[name]) * float(np.clip(1.0 + brightness, 0.6, 1.5))
    own = own * np.array([1.0 + np.clip(warmth, -0.1, 0.1), 1.0, 1.0 - np.clip(warmth, -0.1, 0.1)], np.float32)
    white = linear(HAIR["white"])
    return np.clip(own + (white - own) * np.float32(0.85 * grey), 0.004, 0.9).astype(np.float32)
