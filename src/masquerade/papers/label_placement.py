"""Places labels beside the points of a plot: no label covers a point or another label, as far as there is room.

The same points give the same places. A box is (left, bottom, right, top). All lengths have one unit, such as a
typographic point.
"""

import numpy as np

COVERED, CROSSED = 1000.0, 60.0
"""The cost of a label that covers a point or another label, and of a leader that crosses one or another leader."""
DISTANCES, DIRECTIONS, GAP = np.arange(4.0, 130.0, 6.0), 24, 1.5
"""From the point to the label, the number of directions around the point, and the room between two labels."""
SAMPLES = np.linspace(0, 1, 12)[:, None]
"""Places along a leader, which stand for the whole line."""


def placed(
    points: np.ndarray, sizes: np.ndarray, obstacles: np.ndarray, weights: np.ndarray, frame: np.ndarray
) -> np.ndarray:
    """The box of each label, (N, 4).

    ``points`` (N, 2); ``sizes`` (N, 2) of the labels; ``obstacles`` (M, 4) with the cost of covering each (M,), such
    as `COVERED` for a point; ``frame`` (4,): the room for all labels. Each label in turn takes the place with the
    smallest cost: the distance to its point, and what it covers or its leader crosses.
    """
    boxes, leaders = np.empty((0, 4)), np.empty((0, 2, 2))
    for point, size in zip(points, sizes, strict=True):
        candidates = _candidates(point, size)
        lines = np.stack([np.broadcast_to(point, (len(candidates), 2)), nearest(candidates, point)], axis=1)
        others = np.delete(obstacles, np.flatnonzero(_inside(point[None], obstacles)[0]), axis=0)
        costs = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
        costs += (_overlap(candidates, obstacles) * weights).sum(axis=1)
        costs += COVERED * _overlap(candidates, boxes + GAP * np.array([-1, -1, 1, 1])).sum(axis=1)
        costs += COVERED * _outside(candidates, frame)
        costs += CROSSED * (_through(lines, boxes) + _through(lines, others) + _crossings(lines, leaders))
        costs += CROSSED * _through(leaders, candidates, of_boxes=True)
        best = int(costs.argmin())
        boxes, leaders = np.vstack([boxes, candidates[best]]), np.concatenate([leaders, lines[best][None]])
    return boxes


def nearest(boxes: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The place of each box that is nearest to ``point``, (N, 2): the end of its leader."""
    return np.clip(point, boxes[:, :2], boxes[:, 2:])


def _candidates(point: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Boxes around ``point``, the nearest first and to the right first."""
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centers = point + (DISTANCES[:, None, None] + size / 2) * ways
    centers = centers.reshape(-1, 2)
    return np.hstack([centers - size / 2, centers + size / 2])


def _overlap(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which boxes overlap which others: bool (N, M)."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.all(low < high, axis=2)


def _outside(boxes: np.ndarray, frame: np.ndarray) -> np.ndarray:
    return np.any(boxes[:, :2] < frame[:2], axis=1) | np.any(boxes[:, 2:] > frame[2:], axis=1)


def _inside(points: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Which points (..., 2) lie in which boxes: bool (..., M)."""
    low, high = points[..., None, :] > boxes[:, :2], points[..., None, :] < boxes[:, 2:]
    return np.all(low & high, axis=-1)


def _through(lines: np.ndarray, boxes: np.ndarray, of_boxes: bool = False) -> np.ndarray:
    """How many ``boxes`` each line goes through, (N,); ``of_boxes``: how many lines go through each box, (M,)."""
    along = lines[:, None, 0] + SAMPLES * (lines[:, 1] - lines[:, 0])[:, None]
    return _inside(along, boxes).any(axis=1).sum(axis=0 if of_boxes else 1)


def _crossings(lines: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How many of the other lines each line crosses, (N,)."""

    def side(start: np.ndarray, end: np.ndarray, point: np.ndarray) -> np.ndarray:
        (ax, ay), (bx, by) = np.moveaxis(end - start, -1, 0), np.moveaxis(point - start, -1, 0)
        return np.sign(ax * by - ay * bx)

    (a, b), (c, d) = (lines[:, None, 0], lines[:, None, 1]), (others[None, :, 0], others[None, :, 1])
    return ((side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)).sum(axis=1)
