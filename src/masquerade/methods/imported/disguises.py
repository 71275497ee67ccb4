"""Finds an original in an image that was mirrored, turned, shifted, made brighter, or whose colors were exchanged.

None of these hides anybody. Both images are compared as the mean of their three colors, which no exchange of colors
changes. The mirroring, the shift and the brightness that fit best are undone first.
"""

import numpy as np
from PIL import Image
from skimage.registration import phase_cross_correlation

SIDE = 64  # pixels; to which images are reduced before they are looked up and mirrored
FREQUENCIES = 12  # of a signature, in each direction
OVERLAP = 0.6  # least share of an image that lies on the original after a shift
ALIKE = 0.8  # least correlation of two reduced images that are compared in full


def signature(picture: np.ndarray) -> np.ndarray:
    """uint8 (H, W, 3) -> a unit vector, float32: the same for all disguises of an image, up to what a border adds.

    The magnitudes of the low frequencies do not change with a shift. Their mean over both directions does not change
    when the image is mirrored.
    """
    small = _reduced(_gray(picture))
    magnitudes = np.abs(np.fft.fft2((small - small.mean()) * np.outer(np.hanning(SIDE), np.hanning(SIDE))))
    upper, lower = magnitudes[:FREQUENCIES], magnitudes[-np.arange(FREQUENCIES)]
    low = (upper + lower)[:, :FREQUENCIES].ravel()
    return (low / max(np.linalg.norm(low), 1e-6)).astype(np.float32)


def difference(picture: np.ndarray, original: np.ndarray) -> float:
    """The mean difference in gray levels of two uint8 (H, W, 3) when the best disguise is undone; inf if unlike."""
    gray, target = _gray(picture), _gray(original)
    small, small_target = _reduced(gray), _reduced(target)
    correlation, flip = max((_correlation(small[flip], small_target), place) for place, flip in enumerate(_FLIPS))
    if correlation < ALIKE:
        return np.inf
    inside = np.all((picture > 0) & (picture < 255), axis=2)  # elsewhere the brightness may have been clipped
    if inside.mean() < OVERLAP:
        inside[:] = True
    shown, wanted = _overlap(gray[_FLIPS[flip]], target, inside[_FLIPS[flip]])
    brightness = np.polynomial.Polynomial.fit(shown, wanted, 2)
    return float(np.abs(brightness(shown) - wanted).mean())


_FLIPS = [(slice(None, None, rows), slice(None, None, columns)) for rows in (1, -1) for columns in (1, -1)]


def _gray(picture: np.ndarray) -> np.ndarray:
    return picture.mean(axis=2, dtype=np.float32)


def _reduced(gray: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(gray).resize((SIDE, SIDE), Image.Resampling.BOX))


def _correlation(gray: np.ndarray, target: np.ndarray) -> float:
    shown, wanted = (values - values.mean() for values in _overlap(gray, target, np.ones(gray.shape, bool)))
    return float((shown * wanted).sum() / max(np.linalg.norm(shown) * np.linalg.norm(wanted), 1e-6))


def _overlap(gray: np.ndarray, target: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of both (H, W) that lie on each other after the shift that correlates best, where ``inside`` holds."""
    whole = np.ones(target.shape, bool)
    shift, _, _ = phase_cross_correlation(target, gray, reference_mask=whole, moving_mask=inside, overlap_ratio=OVERLAP)
    rows, columns = map(int, shift)
    height, width = target.shape
    above, left = max(rows, 0), max(columns, 0)
    below, right = height + min(rows, 0), width + min(columns, 0)
    moved = (slice(above - rows, below - rows), slice(left - columns, right - columns))
    seen = inside[moved]
    return gray[moved][seen], target[above:below, left:right][seen]
