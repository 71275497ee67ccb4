"""Measures of an aligned face from its 68 landmarks and its pixels."""

import math

import cv2
import numpy as np

LEFT_EYE, RIGHT_EYE = 36, 45  # the outer corners, in iBUG order; left side of the picture
NOSE, CHIN, MOUTH = 30, 8, (48, 54)
SIX = [NOSE, CHIN, LEFT_EYE, RIGHT_EYE, *MOUTH]
MODEL = np.array(
    [(0, 0, 0), (0, 394, 195), (-225, -178, 164), (225, -178, 164), (-128, 167, 132), (128, 167, 132)], dtype=np.float64
)
"""These points of the mean drawn head (head.npz): x to the right, y down, z away from the camera, in 1/450 of the
distance of the outer eye corners."""
CAMERA = np.array([[1000.0, 0, 128], [0, 1000.0, 128], [0, 0, 1]])
NAMES = ("yaw", "pitch", "smile", "mouth", "eyes", "light", "side")
"""The measures of `of`, in its order; the directions of W have these names."""


def pose(points: np.ndarray, size: int) -> tuple[float, float, float]:
    """Yaw, pitch and roll in degrees from points (68, 2) in a picture of ``size`` pixels.

    The rotation that projects MODEL to the six points (Levenberg-Marquardt). Positive: the face looks to the right of
    the picture, looks up, leans to the right.
    """
    far = np.array([[0.0], [0.0], [4000.0]])
    observed = points[SIX].astype(np.float64) * (256.0 / size)
    _, turn, _ = cv2.solvePnP(MODEL, observed, CAMERA, None, np.zeros((3, 1)), far, True, cv2.SOLVEPNP_ITERATIVE)
    matrix = cv2.Rodrigues(turn)[0]
    yaw = math.asin(-np.clip(matrix[0, 2], -1.0, 1.0))
    pitch = math.atan2(matrix[1, 2], matrix[2, 2])
    roll = math.atan2(-matrix[0, 1], matrix[0, 0])
    return math.degrees(yaw), math.degrees(pitch), math.degrees(roll)


def eye_distance(points: np.ndarray) -> float:
    """Distance of the outer eye corners, in pixels."""
    return float(np.linalg.norm(points[RIGHT_EYE] - points[LEFT_EYE]))


def gap(points: np.ndarray, first: int, second: int) -> float:
    """Distance of two points, in eye distances."""
    return float(np.linalg.norm(points[first] - points[second])) / eye_distance(points)


def face_pixels(picture: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The pixels inside the hull of the points, uint8 (N, 3)."""
    mask = np.zeros(picture.shape[:2], dtype=np.uint8)
    cv2.fillConvexPoly(mask, cv2.convexHull(np.rint(points).astype(np.int32)), 1)
    return picture[mask > 0]


def of(picture: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The measures NAMES of a face: float64 (7,). Lengths are in eye distances, colors in 0 to 255.

    Yaw and pitch are offsets of the nose along and across the line of the eyes, which unlike angles cannot fail.
    """
    across = points[RIGHT_EYE] - points[LEFT_EYE]
    offset = (points[NOSE] - (points[LEFT_EYE] + points[RIGHT_EYE]) / 2.0) / (across @ across)
    side = picture.shape[0]
    rows = slice(round(0.39 * side), round(0.74 * side))
    left = picture[rows, round(0.27 * side) : round(0.47 * side)].mean()
    right = picture[rows, round(0.53 * side) : round(0.73 * side)].mean()
    return np.array([
        offset @ across, offset @ np.array([-across[1], across[0]]), gap(points, *MOUTH), gap(points, 62, 66),
        gap(points, 37, 41) + gap(points, 44, 46), face_pixels(picture, points).mean(), left - right,
    ])  # fmt: skip
