"""The seam between a new face and its photograph, and the colors of the new face at the seam.

Both images show one square, float32 (S, S, 3). The seam runs around the old face where they agree best, as in
Efros and Freeman 2001 (image quilting); the colors are interpolated from the seam, as in Farbman et al. 2009
(coordinates for instant image cloning).
"""

from dataclasses import dataclass

import cv2
import numpy as np

ANGLES, RADII = 256, 48
WIDTH = 0.015
"""Half of the width over which the images are mixed at the seam, as a share of the square's side."""
MARGIN = 3.0  # pixels between the face and the inner edge of the seam
SMOOTH = 0.02  # share of the side: differences of colors are averaged over this spread
MOST = 50.0
"""The largest correction of a color in gray levels. A larger difference is not one of light."""
REACH = 0.35  # share of the side: farther from the seam, the common difference counts more than those at the seam
COARSE = 64  # the grid on which the correction is computed


@dataclass(frozen=True)
class Seam:
    """A closed curve around ``center``: its distance to it at each of ANGLES angles, in pixels. ``width``: as WIDTH."""

    center: np.ndarray
    radii: np.ndarray
    width: float

    @property
    def points(self) -> np.ndarray:
        """The curve, (ANGLES, 2)."""
        return self.center + self.radii[:, None] * _directions()

    def opacity(self, size: int) -> np.ndarray:
        """How much of the new image is shown, float32 (size, size): 1 inside the seam, falling to 0 across it."""
        rows, columns = np.mgrid[:size, :size].astype(np.float32)
        x, y = columns - self.center[0], rows - self.center[1]
        turns = (np.arctan2(y, x) / (2 * np.pi) % 1.0) * ANGLES
        radius = np.interp(turns.ravel(), np.arange(ANGLES + 1), [*self.radii, self.radii[0]]).reshape(size, size)
        share = np.clip((radius - np.hypot(x, y)) / (2 * self.width) + 0.5, 0.0, 1.0)
        return (share * share * (3 - 2 * share)).astype(np.float32)


def best(old: np.ndarray, new: np.ndarray, beside: np.ndarray, outline: np.ndarray) -> Seam:
    """The seam along which two images agree best, between the ``outline`` (M, 2) of the face and the square's edge.

    ``beside``: bool (S, S), the pixels that count. Where the face leaves the square, the seam runs along its edge.
    """
    from skimage.graph import route_through_array

    size = old.shape[0]
    width = max(1.0, WIDTH * size)
    center = np.clip(outline.mean(axis=0), 0.25 * size, 0.75 * size)
    far = _to_edge(center, size) - width
    near = np.minimum(_to_outline(outline, center) + width + MARGIN, far)
    shares = np.linspace(0.0, 1.0, RADII)
    radii = near[:, None] + (far - near)[:, None] * shares
    places = center + radii[..., None] * _directions()[:, None]
    apart = cv2.GaussianBlur(_mismatch(old, new, beside), (0, 0), width)
    x, y = np.moveaxis(places.astype(np.float32), -1, 0)
    costs = cv2.remap(apart, x, y, cv2.INTER_LINEAR) + 1.0
    costs *= radii  # a seam has the length of its arcs: a short one replaces less
    half = ANGLES // 2
    twice = np.concatenate([np.roll(costs, half, axis=0)] * 2)
    start = int(twice[0].argmin())
    path, _ = route_through_array(twice, (0, start), (2 * ANGLES - 1, start))
    column = dict(path)
    steps = np.array([column[row] for row in range(half, half + ANGLES)])
    around = np.pad(radii[np.arange(ANGLES), steps], 8, mode="wrap")
    smooth = np.convolve(around, cv2.getGaussianKernel(17, 2.0)[:, 0], mode="valid")
    return Seam(center, np.clip(smooth, near, far), width)


def correction(old: np.ndarray, new: np.ndarray, beside: np.ndarray, seam: Seam) -> np.ndarray:
    """What the new image needs to have the colors of the old one at the seam: float32 (S, S, 3), smooth.

    Each pixel has the mean of the differences along the seam, weighed by the inverse square of the distance. A place of
    the seam where the images show different things has little weight.
    """
    size = old.shape[0]
    across = cv2.remap(_difference(old, new, beside, SMOOTH * size), *_maps(seam.points), cv2.INTER_LINEAR)[:, 0]
    trust = cv2.remap(_mismatch(old, new, beside), *_maps(seam.points), cv2.INTER_LINEAR)[:, 0]
    reliable = 1.0 / (1.0 + (trust / 20.0) ** 2)
    rows, columns = (np.mgrid[:COARSE, :COARSE] + 0.5) * (size / COARSE)
    squared = (columns[..., None] - seam.points[:, 0]) ** 2 + (rows[..., None] - seam.points[:, 1]) ** 2
    weights = reliable / (squared + (SMOOTH * size) ** 2)
    common = ANGLES / (REACH * size) ** 2
    total = weights @ across.clip(-MOST, MOST) + common * np.median((old - new)[beside], axis=0).clip(-MOST, MOST)
    coarse = total / (weights.sum(axis=2, keepdims=True) + common)
    return cv2.resize(coarse.astype(np.float32), (size, size), interpolation=cv2.INTER_CUBIC)


def _difference(old: np.ndarray, new: np.ndarray, beside: np.ndarray, spread: float) -> np.ndarray:
    """old - new, averaged over ``spread`` pixels of those that count: float32 (S, S, 3)."""
    counts = beside.astype(np.float32)
    total = cv2.GaussianBlur(counts, (0, 0), spread)[..., None] + 1e-3
    return cv2.GaussianBlur((old - new) * counts[..., None], (0, 0), spread) / total


def _mismatch(old: np.ndarray, new: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """How much two images differ once their colors agree nearby: float32 (S, S), gray levels; 0 if not counted."""
    local = old - new - _difference(old, new, beside, 0.08 * old.shape[0])
    return np.abs(local).mean(axis=2) * beside


def _directions() -> np.ndarray:
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _to_edge(center: np.ndarray, size: int) -> np.ndarray:
    """Distance from ``center`` to the edge of the square in each direction, (ANGLES,)."""
    directions = _directions()
    room = np.where(directions > 0, size - 1 - center, center)
    return (room / np.maximum(np.abs(directions), 1e-9)).min(axis=1)


def _to_outline(outline: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Distance from ``center`` to a convex outline around it in each direction, (ANGLES,)."""
    first, second = outline - center, np.roll(outline, -1, axis=0) - center
    normal = np.stack([second[:, 1] - first[:, 1], first[:, 0] - second[:, 0]], axis=1)
    offset = (normal * first).sum(axis=1)
    speed = _directions() @ normal.T
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(speed * np.sign(offset) > 1e-9, offset / speed, np.inf)
    return distances.min(axis=1)


def _maps(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = points.astype(np.float32).T
    return x[:, None], y[:, None]
