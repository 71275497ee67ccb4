"""The region that an inpainter draws, and the guides that it gets instead of the face. No torch."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from masquerade.core.annotations import compute_boxes
from masquerade.core.images import Faces
from masquerade.methods import _region

KEYPOINTS = 7
"""Nose, eyes, ears and shoulders, in the order of COCO, as DeepPrivacy's code has them."""
OUTSIDE = -1.0
"""The coordinate of a keypoint that is not known."""

NOSE, EYES, EARS = 30, (slice(42, 48), slice(36, 42)), (16, 0)  # left before right, of the person
JAW, BRIDGE, MOUTH = slice(0, 17), slice(27, 31), slice(60, 68)
BROWS = (19, 24)  # the points whose heights end the polygon of CIAGAN


def find_boxes(landmarks: np.ndarray, size: int) -> np.ndarray:
    """The boxes of landmarks in square images: int (N, 4), as `boxes_of`."""
    return compute_boxes(landmarks, (size, size))


def scale_landmarks(landmarks: np.ndarray, side: int, size: int) -> np.ndarray:
    """Landmarks in pixels of images of ``side`` pixels a side -> in pixels of images of ``size``."""
    return (landmarks + 0.5) * (size / side) - 0.5


def draw_box_masks(landmarks: np.ndarray, size: int) -> np.ndarray:
    """True inside the box of each face: bool (N, size, size)."""
    return draw_masks(find_boxes(landmarks, size), size)


def draw_masks(corners: np.ndarray, size: int) -> np.ndarray:
    """True inside the boxes (left, top, right, bottom; the last two exclusive): bool (N, size, size)."""
    along = np.arange(size)
    left, top, right, bottom = corners.T[:, :, None]
    inside_x, inside_y = (left <= along) & (along < right), (top <= along) & (along < bottom)
    return inside_y[:, :, None] & inside_x[:, None, :]


def draw_polygon_masks(landmarks: np.ndarray, size: int) -> np.ndarray:
    """True between the brows and the jaw line: bool (N, size, size). CIAGAN's published code, process_data.py."""
    return np.stack([_polygon(points, size) for points in landmarks]) if len(landmarks) else _none(size)


def _polygon(points: np.ndarray, size: int) -> np.ndarray:
    jaw = points[JAW]
    corners = [(jaw[0, 0], points[BROWS[0], 1]), *map(tuple, jaw), (jaw[-1, 0], points[BROWS[1], 1])]
    canvas = Image.new("1", (size, size))
    ImageDraw.Draw(canvas).polygon([_pixel(corner) for corner in corners], fill=1)
    return np.array(canvas)


def draw_outlines(landmarks: np.ndarray, size: int) -> np.ndarray:
    """CIAGAN's image of landmarks: the jaw, the bridge of the nose and the inner mouth, as lines one pixel wide.

    float32 (N, 1, size, size): 0 on the lines, else 1. Eyes, brows and outer lips are not drawn (process_data.py).
    """
    return np.stack([_outline(points, size) for points in landmarks])[:, None] if len(landmarks) else _none(size)


def _outline(points: np.ndarray, size: int) -> np.ndarray:
    canvas = Image.new("L", (size, size), 1)
    pen = ImageDraw.Draw(canvas)
    for line in (points[JAW], points[BRIDGE], np.concatenate([points[MOUTH], points[MOUTH][:1]])):
        pen.line([_pixel(point) for point in line], fill=0)
    return np.array(canvas, dtype=np.float32)


def _pixel(point: Sequence[float]) -> tuple[int, int]:
    return int(np.floor(point[0] + 0.5)), int(np.floor(point[1] + 0.5))


def _none(size: int) -> np.ndarray:
    return np.zeros((0, size, size), dtype=bool)


def select_keypoints(landmarks: np.ndarray, size: int) -> np.ndarray:
    """DeepPrivacy's seven keypoints from the 68 landmarks: float32 (N, 7, 2), x and y as shares of the sides.

    Nose, left eye, right eye, left ear, right ear, and both shoulders, which no landmark shows: they are `OUTSIDE`.
    """
    visible = [
        landmarks[:, NOSE],
        *(landmarks[:, eye].mean(axis=1) for eye in EYES),
        *(landmarks[:, ear] for ear in EARS),
    ]
    shares = (np.stack(visible, axis=1) + 0.5) / size
    shoulders = np.full((len(landmarks), KEYPOINTS - len(visible), 2), OUTSIDE)
    return np.concatenate([shares, shoulders], axis=1).astype(np.float32)


def keypoint_weights() -> np.ndarray:
    """The keypoints that landmarks show, as weights of the landmarks: (5, 68), in the order of `select_keypoints`."""
    return np.stack([np.eye(68)[part].reshape(-1, 68).mean(axis=0) for part in (NOSE, *EYES, *EARS)])


def make_empty_guide(landmarks: np.ndarray, size: int) -> np.ndarray:
    """No guide: float32 (N, 0)."""
    return np.zeros((len(landmarks), 0), dtype=np.float32)


def check_masks(faces: Faces, masks: np.ndarray) -> None:
    """Raises PictureError, which names the faces, if a mask hides nothing or the whole image."""
    share = masks.mean(axis=(1, 2))
    for unusable, covered in ((share == 0, "no pixel"), (share == 1, "the whole image")):
        _region.refuse(
            faces, unusable,
            f"the face region covers {covered}, and an inpainter needs a part of it. Check the landmarks, or crop the "
            "image with a margin around the face",
        )  # fmt: skip


def blend(images: np.ndarray, generated: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The images (N, 3, H, W) mixed with the drawn pixels by their ``share``, float32 (N, H, W) in [0, 1].

    A share of 1 leaves no bit of the images.
    """
    return share[:, None] * np.clip(generated, -1.0, 1.0) + (1 - share[:, None]) * images


def paste(images: np.ndarray, generated: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """The images (N, 3, H, W) with the drawn pixels where ``masks`` bool (N, H, W) is true, limited to [-1, 1]."""
    return np.where(masks[:, None], np.clip(generated, -1.0, 1.0), images)
