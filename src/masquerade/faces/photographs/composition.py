"""Puts faces back into their photograph: the inverse of the alignment, with a soft edge."""

from collections.abc import Sequence

import cv2
import numpy as np

from masquerade.faces.photographs.alignment import Square

FEATHER = 0.06
"""Depth (see `depth`) up to which a new face fades into the photograph. Deeper inside nothing of the old one is left.

It is 3 % of the square's side at each edge. A wider one would leave more of the chin: of 16 photographed faces, its
lowest point lay at a depth of -0.02 to 0.24. Brows, eyes, nose and mouth lay at 0.31 and deeper.
"""


def depth(face: Square, points: np.ndarray) -> np.ndarray:
    """How deep points (..., 2) of the photograph lie in a square: 1 in its centre, 0 on its edge, negative outside."""
    right = face.right / float(face.right @ face.right)
    offset = points - face.centre
    across, down = offset @ right, offset @ np.array([-right[1], right[0]])
    return 1.0 - np.maximum(np.abs(across), np.abs(down))


def replaced(faces: Sequence[Square], point: np.ndarray) -> bool:
    """Whether a point (2,) of the photograph lies where nothing of the old picture is left."""
    return any(float(depth(face, point)) >= FEATHER for face in faces)


def composed(photograph: np.ndarray, faces: Sequence[Square], crops: Sequence[np.ndarray]) -> np.ndarray:
    """The photograph, uint8 (H, W, 3), with each crop, uint8 (S, S, 3), at the place of its square.

    A pixel of several squares is taken from the one in which it lies deepest: the crop of a neighbour shows the
    ORIGINAL of a face that is not its own. The opacity is that of the deepest square, so no edge of one square lets
    the old picture through in the middle of another.
    """
    finished = photograph.copy()
    deepest = np.zeros(photograph.shape[:2], dtype=np.float32)
    for face, crop in zip(faces, crops, strict=True):
        left, top, right, bottom = _bounds(face, photograph.shape)
        if left >= right or top >= bottom:
            continue
        region = np.s_[top:bottom, left:right]
        points = np.stack(np.meshgrid(np.arange(left, right), np.arange(top, bottom)), axis=-1).astype(np.float64)
        here = depth(face, points).astype(np.float32)
        opacity = np.clip(here / FEATHER, 0.0, 1.0)[..., None]
        new = _at_its_place(crop, face, left, top, right - left, bottom - top)
        mixed = np.rint(photograph[region] + (new.astype(np.float32) - photograph[region]) * opacity)
        wins = here > deepest[region]
        finished[region][wins] = mixed[wins].astype(np.uint8)
        deepest[region][wins] = here[wins]
    return finished


def _bounds(face: Square, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom (exclusive) of the pixels of the photograph that the square can touch."""
    reach = np.abs(face.right).sum()
    low = np.floor(face.centre - reach).astype(int)
    high = np.ceil(face.centre + reach).astype(int) + 1
    return max(low[0], 0), max(low[1], 0), min(high[0], shape[1]), min(high[1], shape[0])


def _at_its_place(crop: np.ndarray, face: Square, left: int, top: int, width: int, height: int) -> np.ndarray:
    """The crop as it lies in the photograph, whose pixel (left, top) becomes (0, 0): uint8 (height, width, 3)."""
    side = max(1, int(np.ceil(face.side)))
    if crop.shape[0] > side:  # averaged down first, against aliasing
        crop = cv2.resize(crop, (side, side), interpolation=cv2.INTER_AREA)
    affine = face.affine(crop.shape[0])
    affine[:, 2] -= (left, top)
    return cv2.warpAffine(crop, affine, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
