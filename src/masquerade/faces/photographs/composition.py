"""Puts new faces into their photograph so that it looks whole.

A new face replaces the old one inside a closed seam: it encloses the old face, and runs where the photograph and the
new image agree best. Colors, sharpness and grain of the new image become those of the photograph beside the face.
All of that is measured outside of the old face, so that nothing of it is left (`face_mask`).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from masquerade.core import seeding
from masquerade.faces.photographs import alignment, seams
from masquerade.faces.photographs.alignment import Square
from masquerade.faces.photographs.decoding import resize_square

GROWTH = 1.12
"""Factor by which the hull of the landmarks grows: ears and the line of the jaw lie outside of it."""
FOREHEAD = 0.5
"""Height of the forehead above the brows, as a share of the distance from the brows to the chin (facial thirds)."""
BROWS, CHIN = slice(17, 27), 8  # iBUG order
SEAM_SIDE = 512  # pixels
FINE = 1.0  # pixels: what a blur of this spread removes counts as sharpness and grain
SHARPEST, SMOOTHEST = 0.9, 0.2  # shares of the pixels with less fine detail than those that measure these
GRAIN_OVER = 3.0  # pixels: fine detail is averaged over this spread
BLURS = np.linspace(0.0, 4.0, 17)  # spreads in pixels that are tried to match the sharpness
GRAIN_SIZE = 0.6  # pixels: the spread of a grain of film, of a sensor, or of JPEG


@dataclass(frozen=True)
class Replacement:
    """A new face for a photograph.

    ``square`` and ``landmarks``, float (68, 2): of the OLD face, in pixels of the photograph. ``crop``: the square with
    the new face, uint8 (S, S, 3).
    """

    square: Square
    landmarks: np.ndarray
    crop: np.ndarray


@dataclass(frozen=True)
class Composition:
    """``picture``: uint8 (H, W, 3). ``replaced``: bool (H, W), where nothing of the old image is left."""

    picture: np.ndarray
    replaced: np.ndarray


def face_outline(points: np.ndarray) -> np.ndarray:
    """The outline of a whole face with its forehead, from its 68 points (68, 2): float64 (M, 2), convex."""
    down = points[CHIN] - points[BROWS].mean(axis=0)
    every = np.concatenate([points, points[BROWS] - FOREHEAD * down])
    hull = cv2.convexHull(every.astype(np.float32))[:, 0].astype(np.float64)
    center = hull.mean(axis=0)
    return center + GROWTH * (hull - center)


def face_mask(points: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Where the face with the 68 points lies in an image of this ``shape``: bool (H, W)."""
    mask = np.zeros(shape[:2], dtype=np.uint8)
    cv2.fillConvexPoly(mask, np.rint(face_outline(points)).astype(np.int32), 1)
    return mask.astype(bool)


def depth(face: Square, points: np.ndarray) -> np.ndarray:
    """How deep points (..., 2) of the photograph lie in a square: 1 in its center, 0 on its edge, negative outside."""
    right = face.right / float(face.right @ face.right)
    offset = points - face.center
    across, down = offset @ right, offset @ np.array([-right[1], right[0]])
    return 1.0 - np.maximum(np.abs(across), np.abs(down))


def compose(photograph: np.ndarray, faces: Sequence[Replacement]) -> Composition:
    """The photograph, uint8 (H, W, 3), with each new face at the place of the old one.

    A pixel of several old faces is taken from the square in which it lies deepest. Otherwise no new image covers the
    old face of another: it shows the ORIGINAL of a neighbor, because a method changes one face of its crop.
    """
    picture, opaque = photograph.astype(np.float32), np.zeros(photograph.shape[:2], dtype=np.float32)
    owner = _owners(faces, photograph.shape)
    for number, face in enumerate(faces):
        left, top, right, bottom = _bounds(face.square, photograph.shape)
        if left >= right or top >= bottom:
            continue
        region = np.s_[top:bottom, left:right]
        new, opacity = _at_its_place(*_fit(photograph, face), face.square, left, top, right - left, bottom - top)
        opacity[opacity > 0.99] = 1.0  # what the change of the size left of the old face
        opacity[(owner[region] >= 0) & (owner[region] != number)] = 0.0
        share = opacity[..., None]
        picture[region] = picture[region] * (1.0 - share) + new * share  # exactly the new image where the share is 1
        opaque[region] = np.maximum(opaque[region], opacity)
    return Composition(np.rint(picture).clip(0, 255).astype(np.uint8), opaque >= 1.0)


def _owners(faces: Sequence[Replacement], shape: tuple[int, ...]) -> np.ndarray:
    """The number of the face that a pixel belongs to, int (H, W); -1 where no old face lies."""
    owner, deepest = np.full(shape[:2], -1), np.zeros(shape[:2])
    for number, face in enumerate(faces):
        mask = face_mask(face.landmarks, shape)
        rows, columns = np.nonzero(mask)
        depths = np.zeros(shape[:2])
        depths[rows, columns] = depth(face.square, np.stack([columns, rows], axis=-1).astype(np.float64))
        wins = depths > deepest
        owner[wins], deepest[wins] = number, depths[wins]
    return owner


def _fit(photograph: np.ndarray, face: Replacement) -> tuple[np.ndarray, np.ndarray]:
    """The new face as it belongs into the photograph: float32 (S, S, 3), and its opacity (S, S), in the square."""
    size = max(8, int(np.ceil(face.square.side)))
    new = resize_square(face.crop, size).astype(np.float32)
    old = alignment.crop(photograph, face.square, size).astype(np.float32)
    points = alignment.into_crop(face.landmarks, face.square, size)
    inside = _inside(photograph, face.square, size)
    beside = _shrunk(~face_mask(points, (size, size)) & inside, FINE)
    old = np.where(beside[..., None], old, new)  # from here on nothing depends on the old face
    apart = _shrunk(beside, GRAIN_OVER)
    if apart.any():  # not if the photograph ends at the face
        new = _like(old, new, apart)
    small = min(size, SEAM_SIDE)  # the seam of a large face is found in a reduced image
    before, after = (cv2.resize(picture, (small, small), interpolation=cv2.INTER_AREA) for picture in (old, new))
    beside = cv2.resize(beside.astype(np.float32), (small, small), interpolation=cv2.INTER_AREA) > 0.999
    seam = seams.best(before, after, beside, face_outline(alignment.into_crop(face.landmarks, face.square, small)))
    change, opacity = np.zeros_like(after), seam.opacity(small)
    if beside.any():
        change = seams.correction(before, after, beside, seam)
    return new + resize_square(change, size), resize_square(opacity, size).clip(0.0, 1.0)


def _like(old: np.ndarray, new: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """The image ``new`` with the sharpness and the grain of ``old`` in the pixels ``beside`` the face."""
    sharpness, grain = _measure_detail(old, beside)
    least = bisect_left(BLURS, True, key=lambda spread: _measure_detail(_blur(new, spread), beside)[0] <= sharpness)
    new = _blur(new, BLURS[min(least, len(BLURS) - 1)])
    missing = grain**2 - _measure_detail(new, beside)[1] ** 2
    if missing <= 0.0:
        return new
    noise = seeding.make_generator(0, "grain").standard_normal(new.shape[:2], dtype=np.float32)
    noise = cv2.GaussianBlur(noise, (0, 0), GRAIN_SIZE)
    return new + (np.sqrt(missing) / _fine(noise).std()) * noise[..., None]


def _blur(picture: np.ndarray, spread: float) -> np.ndarray:
    return cv2.GaussianBlur(picture, (0, 0), spread) if spread else picture


def _fine(picture: np.ndarray) -> np.ndarray:
    """The fine detail of an image: its gray levels without those that a blur leaves."""
    gray = picture.mean(axis=2) if picture.ndim == 3 else picture
    return gray - cv2.GaussianBlur(gray, (0, 0), FINE)


def _measure_detail(picture: np.ndarray, beside: np.ndarray) -> tuple[float, float]:
    """The sharpness of an image, by its sharpest edges, and the spread of its grain, by its smoothest places."""
    energy = cv2.GaussianBlur(_fine(picture) ** 2, (0, 0), GRAIN_OVER)[beside]
    return tuple(np.sqrt(np.quantile(energy, [SHARPEST, SMOOTHEST])))


def _shrunk(mask: np.ndarray, spread: float) -> np.ndarray:
    """The pixels of a mask that a blur of ``spread`` pixels does not mix with pixels outside of it."""
    side = 2 * int(np.ceil(3 * spread)) + 1
    return cv2.erode(mask.astype(np.uint8), np.ones((side, side))).astype(bool)


def _inside(photograph: np.ndarray, face: Square, size: int) -> np.ndarray:
    """Which pixels of the square lie in the photograph: bool (size, size)."""
    whole = np.ones(photograph.shape[:2], dtype=np.uint8)
    return cv2.warpAffine(whole, face.affine(size), (size, size), flags=cv2.WARP_INVERSE_MAP).astype(bool)


def _bounds(face: Square, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom (exclusive) of the pixels of the photograph that the square can touch."""
    reach = np.abs(face.right).sum()
    low = np.floor(face.center - reach).astype(int)
    high = np.ceil(face.center + reach).astype(int) + 1
    return max(low[0], 0), max(low[1], 0), min(high[0], shape[1]), min(high[1], shape[0])


def _at_its_place(
    new: np.ndarray, opacity: np.ndarray, face: Square, left: int, top: int, width: int, height: int
) -> tuple[np.ndarray, np.ndarray]:
    """The square and its opacity as they lie in the photograph, whose pixel (left, top) becomes (0, 0)."""
    affine = face.affine(new.shape[0])
    affine[:, 2] -= (left, top)
    place = (width, height)
    picture = cv2.warpAffine(new, affine, place, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return picture, cv2.warpAffine(opacity, affine, place, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
