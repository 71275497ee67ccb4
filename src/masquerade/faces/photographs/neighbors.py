"""Cuts a face out and hides every other known face in its crop, because a method may leave these as they are.

A neighbor may reach into a crop. Where a crop leaves the photograph, its padding mirrors faces, its own one too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from masquerade.faces.photographs import alignment
from masquerade.faces.photographs.alignment import Square
from masquerade.faces.photographs.composition import depth, face_outline

REACH = 0.02  # share of the crop's side: colors are continued over this distance from what is left
BLUR = 0.03  # share of the crop's side: the spread of the blur of what was filled


@dataclass(frozen=True)
class Face:
    """A face of a photograph: the ``square`` of its crop and its 68 ``points``, float64 (68, 2), in pixels."""

    square: Square
    points: np.ndarray


def crop(picture: np.ndarray, face: Face, others: Sequence[Face], size: int) -> np.ndarray:
    """The crop of ``face`` from a photograph, uint8 (size, size, 3), without ``others``.

    A face of another is filled with the colors around it. A pixel of several faces belongs to the one in whose square
    it lies deepest: that part of a neighbor who is cheek to cheek, or in front, is left to the method.
    """
    pixels = alignment.crop(picture, face.square, size)
    mask = _foreign(picture.shape, face, others, size)
    return _filled(pixels, mask) if mask.any() else pixels


def _foreign(shape: tuple[int, ...], face: Face, others: Sequence[Face], size: int) -> np.ndarray:
    """Where a crop shows another face, or its own once more in the padding: bool (size, size)."""
    rows, columns = np.mgrid[:size, :size].astype(np.float64)
    places = alignment.out_of_crop(np.stack([columns, rows], axis=-1), face.square, size)
    shown = _reflected(places, shape)  # the pixels of the photograph that are seen there
    if not others and np.array_equal(places, shown):
        return np.zeros((size, size), dtype=bool)
    outline = face_outline(face.points)
    own = _within(places, outline) & (places == shown).all(axis=-1)
    foreign = _within(shown, outline) & ~own
    own_depth = np.where(own, depth(face.square, places), -np.inf)
    for other in others:
        foreign |= _within(shown, face_outline(other.points)) & (depth(other.square, shown) > own_depth)
    return foreign


def _reflected(places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The pixels (x, y) that `alignment.crop` takes for ``places`` (..., 2): those outside are mirrored at the edge."""
    last = np.maximum(np.array([shape[1], shape[0]]) - 1.0, 1.0)
    return np.where((places >= 0) & (places <= last), places, last - np.abs(places % (2 * last) - last))


def _within(places: np.ndarray, outline: np.ndarray) -> np.ndarray:
    """Whether ``places`` (..., 2) lie inside a convex outline (M, 2): bool (...)."""
    edges = np.roll(outline, -1, axis=0) - outline
    x, y = np.moveaxis(places[..., None, :] - outline, -1, 0)
    sides = edges[:, 0] * y - edges[:, 1] * x
    return (sides > 0).all(axis=-1) | (sides < 0).all(axis=-1)


def _filled(pixels: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The crop with the colors around ``mask``, bool (S, S), continued into it, and blurred there."""
    size = pixels.shape[0]
    hidden = cv2.dilate(mask.astype(np.uint8), np.ones((3, 3)))
    filled = cv2.inpaint(pixels, hidden, max(1.0, REACH * size), cv2.INPAINT_TELEA)
    blurred = cv2.GaussianBlur(filled, (0, 0), BLUR * size)
    return np.where(hidden[..., None] > 0, blurred, pixels)
