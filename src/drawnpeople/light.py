"""The light on a face: a key light with a depth map of what stands in its way, and light from above and below."""

import math

import numpy as np

from drawnpeople.kernels import EMPTY, blur, kernel, raster
from drawnpeople.shape import Head
from drawnpeople.shot import Shot

F = np.float32
SIDE = 112
"""Side of the depth maps in texels."""
REACH = 0.46
"""Side of the depth maps in metres, around the eyes."""
_BIAS = F(0.007)  # metres that a surface may lie behind the depth map and still be lit
_FADE = F(1 / 0.006)  # share of the light that a shadow takes for each metre of depth: dark after 6 mm


class Light:
    """The light of an image. ``direction``, ``key``, ``sky``, ``ground``: float32 (3,), as `Shot` has them.

    ``surface`` and ``hair``: float32 (SIDE, SIDE), depth in metres of the surfaces and of the hair, seen from the key
    light. Rendering of hair: Yuksel and Keyser 2008, with one layer.
    """

    def __init__(self, shot: Shot, head: Head, triangles: np.ndarray):
        self.direction, self.key = shot.light.astype(F), shot.key.astype(F)
        self.sky, self.ground = shot.sky.astype(F), shot.ground.astype(F)
        x, y, z = (float(v) for v in shot.light)
        across = math.hypot(x, y) or 1.0
        self.right = np.array([y / across, -x / across, 0.0], F)
        a = [float(v) for v in self.right]
        self.up = np.array([a[1] * z - a[2] * y, a[2] * x - a[0] * z, a[0] * y - a[1] * x], F)
        self._axes = np.stack([self.right, self.up, -self.direction])
        self.middle = (head.eyes[0] + head.eyes[1]) * F(0.5)
        self.surface = np.full((SIDE, SIDE), EMPTY, F)
        self.block(head.points, triangles)
        self.hair = np.full((SIDE, SIDE), F(1), F)

    @property
    def rows(self) -> np.ndarray:
        """Direction, key, sky and ground, float32 (4, 3)."""
        return np.stack([self.direction, self.key, self.sky, self.ground])

    @property
    def maps(self) -> np.ndarray:
        """``surface`` and ``hair``, float32 (2, SIDE, SIDE)."""
        return np.stack([self.surface, self.hair])

    def block(self, points: np.ndarray, triangles: np.ndarray) -> None:
        """Put a mesh with points (n, 3) into the map ``surface``: it throws a shadow."""
        numbers, shares = np.full((SIDE, SIDE), -1, np.int32), np.zeros((SIDE, SIDE, 3), F)
        raster(self.project(points), triangles, 0, numbers, shares, self.surface)

    def project(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) in the maps: column and row in texels, and depth in metres."""
        out = np.empty(points.shape, F)
        _project(
            np.ascontiguousarray(points, F).reshape(-1, 3),
            self._axes,
            self.middle,
            F(SIDE / REACH),
            F(SIDE / 2),
            out.reshape(-1, 3),
        )
        return out

    def shade_with(self, strands: list[np.ndarray]) -> None:
        """Put the points (..., 3) of hair into the map ``hair``."""
        for points in strands:
            _splat(self.project(points).reshape(-1, 3), self.hair)
        self.hair = blur(self.hair, 0.8)


@kernel
def _project(points, axes, middle, scale, half, out):
    for i in range(points.shape[0]):
        x, y, z = points[i, 0] - middle[0], points[i, 1] - middle[1], points[i, 2] - middle[2]
        for k in range(3):
            out[i, k] = x * axes[k, 0] + y * axes[k, 1] + z * axes[k, 2]
        out[i, 0] = out[i, 0] * scale + half
        out[i, 1] = out[i, 1] * scale + half


@kernel
def _splat(seen, depth):
    side = depth.shape[0]
    for i in range(seen.shape[0]):
        x, y = int(seen[i, 0]), int(seen[i, 1])
        if 0 <= x < side and 0 <= y < side and seen[i, 2] < depth[y, x]:
            depth[y, x] = seen[i, 2]


@kernel
def measure_shadow(x, y, z, surface, hair):
    """At a point of the maps: share of eight nearby texels that the key light reaches, and metres of hair before it."""
    side = surface.shape[0]
    lit, deep = F(0), F(0)
    for k in range(8):
        reach = F(0.55) if k < 4 else F(1.35)
        if k % 4 == 0:
            dx, dy = reach, F(0.35) * reach
        elif k % 4 == 1:
            dx, dy = -F(0.35) * reach, reach
        elif k % 4 == 2:
            dx, dy = -reach, -F(0.35) * reach
        else:
            dx, dy = F(0.35) * reach, -reach
        i, j = min(max(int(x + dx), 0), side - 1), min(max(int(y + dy), 0), side - 1)
        lit += F(0.125) * min(max(F(1) - (z - surface[j, i] - _BIAS) * _FADE, F(0)), F(1))
        deep += F(0.125) * min(max(z - hair[j, i] - F(0.006), F(0)), F(0.2))
    return lit, deep
