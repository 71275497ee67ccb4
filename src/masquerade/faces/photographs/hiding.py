"""Hides heads that no method gets: under a disc in a whole photograph, and in the crops of other faces.

A disc has coarse blocks, whose colors continue what is around it.

No pixel of a head decides a color of its disc. So the disc protects as blackout does (Newton, Sweeney, Malin 2005,
IEEE TKDE 17(2)): it tells where a head is and how large, and nothing else. A mosaic of the head itself would tell more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from masquerade.faces.photographs import alignment
from masquerade.faces.photographs.alignment import Square
from masquerade.faces.photographs.composition import depth, face_outline

GROWTH = 1.1
"""Radius of a disc, as a multiple of the longer side of the box of its face.

In 60 generated faces, upright and leaning by 20 degrees, 99.5 % of the pixels of skin and ears of each lay within 1.10
for HOG's boxes, and within 0.88 for MTCNN's.
"""
BLOCKS = 6  # across a disc
AROUND = 2  # blocks on each side of a disc whose colors are continued
NEAR = 0.5  # blocks: a block as far away as this counts half as much as one at the same place
GRAY = 128.0  # where nothing is around
REACH = 0.02  # share of the crop's side: colors are continued over this distance from what is left
BLUR = 0.03  # share of the crop's side: the spread of the blur of what was filled


def enclose_head(box: np.ndarray, quarters: int, shape: tuple[int, ...]) -> np.ndarray:
    """The disc of the head whose face is in ``box`` (4,) of a photograph, float64 (3,): x, y and radius in pixels.

    ``box``: left, top, right, bottom in ``np.rot90(photograph, quarters)``. ``shape``: of the photograph.
    """
    corners = box.reshape(2, 2)
    radius = GROWTH * float((corners[1] - corners[0]).max())
    place = Square(corners.mean(axis=0), np.array([radius, 0.0])).turn_back(quarters, shape)
    return np.array([*place.center, radius])


def draw_mask(heads: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Where the discs ``heads`` (N, 3) lie in a photograph of this ``shape``: bool (H, W)."""
    covered = np.zeros(shape[:2], dtype=bool)
    for head in heads:
        window, inside = _cut_window(head, head[2], shape)
        covered[window] |= inside
    return covered


def hide(photograph: np.ndarray, heads: np.ndarray, secret: np.ndarray) -> np.ndarray:
    """The photograph, uint8 (H, W, 3), with the discs ``heads`` (N, 3) filled.

    ``secret``: bool (H, W), other pixels that must not decide a color, such as old faces.
    """
    picture = photograph.copy()
    free = ~(draw_mask(heads, photograph.shape) | secret)
    for head in heads:
        side = 2.0 * head[2] / BLOCKS
        window, inside = _cut_window(head, head[2] + AROUND * side, photograph.shape)
        rows, columns = (
            np.floor((np.arange(part.start, part.stop) - middle) / side + BLOCKS / 2 + AROUND).astype(int)
            for part, middle in zip(window, head[1::-1], strict=True)
        )
        across = BLOCKS + 2 * AROUND
        blocks = np.clip(rows, 0, across - 1)[:, None] * across + np.clip(columns, 0, across - 1)
        colors = _continue_colors(photograph[window], free[window], blocks, across)
        picture[window][inside] = colors[blocks[inside]]
    return picture


def count_heads(heads: np.ndarray) -> int:
    """How many heads are hidden by discs (N, 3). Two detectors may see one head, at nearly the same place."""
    centers: list[np.ndarray] = []
    for x, y, radius in heads:
        if all(np.hypot(*(center - (x, y))) > radius / 2 for center in centers):
            centers.append(np.array([x, y]))
    return len(centers)


def _cut_window(head: np.ndarray, reach: float, shape: tuple[int, ...]) -> tuple[tuple[slice, slice], np.ndarray]:
    """The part of a photograph up to ``reach`` pixels beside the center of a disc, and where the disc is in it."""
    x, y, radius = head
    top, bottom = (int(np.clip(edge, 0, shape[0])) for edge in (np.floor(y - reach), np.ceil(y + reach) + 1))
    left, right = (int(np.clip(edge, 0, shape[1])) for edge in (np.floor(x - reach), np.ceil(x + reach) + 1))
    rows, columns = np.ogrid[top:bottom, left:right]
    return np.s_[top:bottom, left:right], np.hypot(columns - x, rows - y) <= radius


def _continue_colors(pixels: np.ndarray, free: np.ndarray, blocks: np.ndarray, across: int) -> np.ndarray:
    """The color of each of ``across`` x ``across`` blocks, from the ``free`` pixels of all: uint8 (across^2, 3).

    ``blocks``: the number of the block of each pixel, int (h, w). A block counts by its number of free pixels, and by
    the inverse of the cubed distance.
    """
    labels, total = blocks[free], across**2
    counts = np.bincount(labels, minlength=total)
    sums = np.stack([np.bincount(labels, weights=plane, minlength=total) for plane in pixels[free].T], axis=1)
    places = np.stack(np.divmod(np.arange(total), across), axis=1)
    squared = ((places[:, None] - places) ** 2).sum(axis=2)
    weights = (squared + NEAR**2) ** -1.5
    shares = weights @ counts
    colors = (weights @ sums) / np.maximum(shares, np.finfo(float).tiny)[:, None]
    return np.rint(np.where(shares[:, None] > 0, colors, GRAY)).astype(np.uint8)


@dataclass(frozen=True)
class Face:
    """A face of a photograph: the ``square`` of its crop and its 68 ``points``, float64 (68, 2), in pixels."""

    square: Square
    points: np.ndarray


def crop_alone(picture: np.ndarray, face: Face, others: Sequence[Face], size: int) -> np.ndarray:
    """The crop of ``face`` from a photograph, uint8 (size, size, 3), without ``others``, whom a method may leave.

    A neighbor may reach into a crop. Where a crop leaves the photograph, its padding mirrors faces, its own one too.

    A face of another is filled with the colors around it. A pixel of several faces belongs to the one in whose square
    it lies deepest: that part of a neighbor who is cheek to cheek, or in front, is left to the method.
    """
    pixels = alignment.crop(picture, face.square, size)
    mask = _find_foreign(picture.shape, face, others, size)
    return _fill(pixels, mask) if mask.any() else pixels


def _find_foreign(shape: tuple[int, ...], face: Face, others: Sequence[Face], size: int) -> np.ndarray:
    """Where a crop shows another face, or its own once more in the padding: bool (size, size)."""
    rows, columns = np.mgrid[:size, :size].astype(np.float64)
    places = alignment.out_of_crop(np.stack([columns, rows], axis=-1), face.square, size)
    shown = _reflect(places, shape)  # the pixels of the photograph that are seen there
    if not others and np.array_equal(places, shown):
        return np.zeros((size, size), dtype=bool)
    outline = face_outline(face.points)
    visible = _is_within(places, outline) & (places == shown).all(axis=-1)
    foreign = _is_within(shown, outline) & ~visible
    depth_here = np.where(visible, depth(face.square, places), -np.inf)
    for other in others:
        foreign |= _is_within(shown, face_outline(other.points)) & (depth(other.square, shown) > depth_here)
    return foreign


def _reflect(places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The pixels (x, y) that `alignment.crop` takes for ``places`` (..., 2): those outside are mirrored at the edge."""
    last = np.maximum(np.array([shape[1], shape[0]]) - 1.0, 1.0)
    return np.where((places >= 0) & (places <= last), places, last - np.abs(places % (2 * last) - last))


def _is_within(places: np.ndarray, outline: np.ndarray) -> np.ndarray:
    """Whether ``places`` (..., 2) lie inside a convex outline (M, 2): bool (...)."""
    edges = np.roll(outline, -1, axis=0) - outline
    x, y = np.moveaxis(places[..., None, :] - outline, -1, 0)
    sides = edges[:, 0] * y - edges[:, 1] * x
    return (sides > 0).all(axis=-1) | (sides < 0).all(axis=-1)


def _fill(pixels: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The crop with the colors around ``mask``, bool (S, S), continued into it, and blurred there."""
    size = pixels.shape[0]
    hidden = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3)))
    filled = cv2.inpaint(pixels, hidden, max(1.0, REACH * size), cv2.INPAINT_TELEA)
    blurred = cv2.GaussianBlur(filled, (0, 0), BLUR * size)
    return np.where(hidden[..., None] > 0, blurred, pixels)
