"""Hair that is tied together at the back of the head: the strands of a bun and of a ponytail."""

import numpy as np

from drawnpeople.kernels import sin32
from drawnpeople.person import Person
from drawnpeople.roots import unit

GUIDES, POINTS = 36, 14
QUARTER = np.pi / 2


def bun(person: Person, knot: np.ndarray, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Guides (g, k, 3) that wind around a ball, and the directions away from its center (g, k, 3)."""
    radius = 0.020 + 0.012 * min(1.4, person.length)
    axis = unit(np.array([0.0, 0.55, 0.8]) if knot[2] > 0.8 else np.array([0.0, 1.0, 0.1])).astype(np.float64)
    across, up = np.array([1.0, 0.0, 0.0]), np.array([0.0, axis[2], -axis[1]])
    turn = draw.uniform(0, 6.28, GUIDES)[:, None] + np.linspace(0, 2.6, POINTS)[None]
    height = np.broadcast_to(draw.uniform(-0.95, 0.95, GUIDES)[:, None], turn.shape)
    ring = np.sqrt(1 - height * height)
    away = (ring * sines(turn + QUARTER))[..., None] * across + (ring * sines(turn))[..., None] * up
    away = away + height[..., None] * axis
    return (knot + axis * (0.75 * radius) + radius * away).astype(np.float32), away.astype(np.float32)


def tail(person: Person, knot: np.ndarray, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Guides (g, k, 3) that leave the knot backwards and fall over one shoulder; the directions away (g, k, 3)."""
    side = 1.0 if draw.random() < 0.5 else -1.0
    t = np.linspace(0, 1, POINTS)[None, :, None]
    spread = draw.normal(0, 1, (GUIDES, 1, 3)) * np.array([0.007, 0.005, 0.005])
    path = knot + np.array([0, 0.030, 0.012]) * np.minimum(t * 4, 1) + np.array([0.055 * side, -0.01, 0.0]) * t * t
    path = path - np.array([0, 0, 0.22 + 0.04 * person.length]) * np.clip(t - 0.10, 0, 1)
    points = path + spread * (0.35 + np.minimum(t * 3, 1) * 0.9)
    away = np.broadcast_to(unit(spread + np.array([0, 0.004, 0.0])), points.shape)
    return np.ascontiguousarray(points, np.float32), np.ascontiguousarray(away, np.float32)


def sines(angles: np.ndarray) -> np.ndarray:
    """Sine of an array of angles, the same on every processor."""
    return np.array([sin32(np.float32(a)) for a in angles.ravel()], np.float64).reshape(angles.shape)
