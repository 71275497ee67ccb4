"""Proportions of a neutral face, in units of the distance between its eyes. Attributes are thresholds on them."""

import math

import numpy as np

from drawnpeople.template import Template

WING, TIP = (1803, 1808, 284, 340), (297, 1806)  # of the nose; the wing is that of the person's right side
CHEEK = (1817, 2040, 1979)  # from the cheekbone over the hollow of the cheek to the jaw
UNDER_CHIN = (732, 787, 803)  # from the chin over the floor of the mouth to the neck


def measure(vertices: np.ndarray, head: Template) -> dict[str, float]:
    """The measures of a face (V, 3) without expression and pose.

    ============  ==================================================================================
    nose_width    distance between the wings of the nose, where they are widest
    nose_length   height of the nose, from the level of the eyes to its base
    nose_tip      how far the tip of the nose stands before the wings
    lips_height   height of both lips
    mouth_width   distance between the corners of the mouth
    eye_opening   height of the opening between the lids, mean of both eyes
    eye_width     width of that opening, mean of both eyes
    face_width    width of the face before the ears, where it is widest
    face_length   height from the level of the eyes to the chin
    jaw_width     width of the face at the height of the mouth
    chin_width    width of the chin, below the lower lip
    cheekbones    width at the height of the base of the nose over jaw_width (no unit)
    brow_height   height of the brow bone's skin above the level of the eyes (without Person.brow_height)
    fullness      how far the cheek bulges out of the line from cheekbone to jaw; negative: hollow
    double_chin   how far the skin under the chin hangs below the line from chin to neck; negative: tight
    ============  ==================================================================================
    """
    marks = vertices[head.landmarks].astype(np.float64)
    right, left = marks[36:42].mean(0), marks[42:48].mean(0)
    unit, level = float(left[0] - right[0]), float(right[2] + left[2]) / 2

    def mean(points: np.ndarray, axis: int) -> float:
        return float(points[..., axis].astype(np.float64).mean())

    def width(number: int) -> float:
        return _outermost(vertices, head, 16 - number) + _outermost(vertices, head, number)

    wings = vertices[list(WING)], vertices[head.mirror[list(WING)]]
    base = vertices[[358, head.mirror[358]]]
    jaw = width(4)
    bulge = [
        _bulge(vertices, head.normals, list(CHEEK)),
        _bulge(vertices, head.normals, list(head.mirror[list(CHEEK)])),
    ]
    lengths = {
        "nose_width": float(wings[1][:, 0].max() - wings[0][:, 0].min()),
        "nose_length": level - float(marks[33, 2]),
        "nose_tip": mean(base, 1) - float(vertices[list(TIP), 1].min()),
        "lips_height": float(marks[51, 2] - marks[57, 2]),
        "mouth_width": float(marks[54, 0] - marks[48, 0]),
        "eye_opening": mean(marks[[37, 38, 43, 44]], 2) - mean(marks[[40, 41, 46, 47]], 2),
        "eye_width": float(marks[39, 0] - marks[36, 0] + marks[45, 0] - marks[42, 0]) / 2,
        "face_width": max(width(0), width(1), width(2)),
        "face_length": level - float(vertices[head.rails[8][0], 2].min()),
        "jaw_width": jaw,
        "chin_width": width(6),
        "brow_height": mean(marks[[18, 19, 20, 23, 24, 25]], 2) - level,
        "fullness": sum(bulge) / 2,
        "double_chin": _bulge(vertices, head.normals, list(UNDER_CHIN)),
    }
    return {**{name: length / unit for name, length in lengths.items()}, "cheekbones": width(2) / jaw}


def _outermost(vertices: np.ndarray, head: Template, number: int) -> float:
    """Largest distance of the rail of a contour point from the middle of the face, metres."""
    pairs, share = head.rails[number]
    x = vertices[pairs[:, 0], 0] + share * (vertices[pairs[:, 1], 0] - vertices[pairs[:, 0], 0])
    return float(np.abs(x).max())


def _bulge(vertices: np.ndarray, normals: np.ndarray, row: list[int]) -> float:
    """How far the second of three vertices is outside the line through the other two, along its normal, metres."""
    start, middle, end = vertices[row].astype(np.float64)
    line, off, outwards = end - start, middle - start, normals[row[1]].astype(np.float64)
    along = float((off * line).sum() / (line * line).sum())
    return math.fsum((off - along * line) * outwards)
