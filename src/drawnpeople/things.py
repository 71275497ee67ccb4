"""Meshes that a person wears, and how they are shaped on the template: rings and shells around neck and skull."""

import math
from dataclasses import dataclass

import numpy as np

from drawnpeople.kernels import kernel
from drawnpeople.shape import Body, share_of_head
from drawnpeople.template import CELL, GRID0, template

F = np.float32


@dataclass(frozen=True)
class Thing:
    """A mesh on a person without expression, whose triangles are counter-clockwise from outside."""

    vertices: np.ndarray  # float32 (n, 3)
    triangles: np.ndarray  # int32 (m, 3)
    color: np.ndarray  # float32 (n, 3), linear light
    share: np.ndarray  # float32 (n,): how far a vertex turns with the head: 1 as a hat does, 0 as the chest does
    gloss: float
    label: int  # of LABEL


def fit(points: np.ndarray, body: Body, triangles: np.ndarray, color, gloss: float, label: int, rigid: bool) -> Thing:
    """A thing with ``points`` (n, 3) on the template, on the person ``body``.

    ``rigid``: it turns with the head; otherwise it bends with the neck.
    """
    flat = np.ascontiguousarray(points.reshape(-1, 3), F)
    share = np.ones(len(flat), F) if rigid else share_of_head(flat).astype(F)
    color = np.ascontiguousarray(np.broadcast_to(np.asarray(color, F), flat.shape))
    return Thing(body.carry(flat), triangles, color, share, gloss, label)


def sheet(rows: int, columns: int, closed: bool) -> np.ndarray:
    """Triangles int32 (m, 3) of a grid of vertices (rows, columns); ``closed`` joins the last column to the first."""
    i, j = np.mgrid[: rows - 1, : columns if closed else columns - 1]
    a, b = i * columns + j, i * columns + (j + 1) % columns
    c, d = a + columns, b + columns
    return np.stack([a, b, d, a, d, c], -1).reshape(-1, 3).astype(np.int32)


def circle(count: int, first: float = 0.0, last: float = 2 * math.pi, closed: bool = True) -> np.ndarray:
    """Angles between ``first`` and ``last``, float64 (count,)."""
    return first + (last - first) * np.arange(count) / (count if closed else count - 1)


def sine(angles) -> np.ndarray:
    """Sines by the C library's scalar function, which does not depend on the processor's vectors."""
    flat = np.asarray(angles, np.float64)
    return np.array([math.sin(a) for a in flat.ravel()]).reshape(flat.shape)


def cosine(angles) -> np.ndarray:
    """Cosines, as `sine`."""
    return sine(np.asarray(angles, np.float64) + 0.5 * math.pi)


def surface(origin: np.ndarray, direction: np.ndarray, reach: float) -> np.ndarray:
    """Metres from ``origin`` (n, 3) along the unit vectors ``direction`` (n, 3) to where the head ends, float32 (n,).

    The head is taken at its first exit from the skin, at most ``reach`` away.
    """
    head = template()
    return _march(origin.astype(F), direction.astype(F), F(reach), head.distance, GRID0, CELL)


@kernel
def _march(origin, direction, reach, distance, first, cell):
    out = np.empty(len(origin), np.float32)
    step = F(0.0015)
    size0, size1, size2 = distance.shape
    for i in range(len(origin)):
        before, t = F(-1), F(0)
        while t < reach:
            x = (origin[i, 0] + t * direction[i, 0] - first[0]) / cell
            y = (origin[i, 1] + t * direction[i, 1] - first[1]) / cell
            z = (origin[i, 2] + t * direction[i, 2] - first[2]) / cell
            a, b, c = min(max(int(x), 0), size0 - 2), min(max(int(y), 0), size1 - 2), min(max(int(z), 0), size2 - 2)
            u, v, w = x - F(a), y - F(b), z - F(c)
            value = F(0)
            for k in range(8):
                p, q, r = k & 1, k >> 1 & 1, k >> 2
                weight = (u if p else F(1) - u) * (v if q else F(1) - v) * (w if r else F(1) - w)
                value += weight * distance[a + p, b + q, c + r]
            if value > F(0) and t > F(0):
                t -= step * value / (value - before) if value > before else F(0)
                break
            before = value
            t += step
        out[i] = min(t, reach)
    return out
