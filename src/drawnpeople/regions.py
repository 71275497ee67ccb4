"""The parsing class of the surface, as a function of the place on the template. So it follows shape and expression."""

import numpy as np

from drawnpeople.labels import LABEL
from drawnpeople.roots import brow
from drawnpeople.template import CLOTH, EYE, MOUTH, TEETH

_NECK = ([-0.14, -0.11, -0.085, -0.06, -0.035, -0.02], [0.612, 0.616, 0.632, 0.652, 0.684, 0.70])


def parts(place: np.ndarray, material: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Parsing label (N,) of surface points. ``masks`` (N, 3): lips, eyelids and ears in [0, 1]."""
    x, y, z = np.abs(place[:, 0]), place[:, 1], place[:, 2]
    left = place[:, 0] < 0  # of the image
    label = np.full(len(place), LABEL["skin"], np.uint8)
    label[z < np.interp(y, *_NECK)] = LABEL["neck"]
    wings = np.interp(z, [0.679, 0.688, 0.700, 0.737], [0.012, 0.019, 0.016, 0.006])
    label[(x < wings) & (z > 0.679) & (z < 0.737) & (y < -0.125)] = LABEL["nose"]
    forehead = np.flatnonzero((y < -0.08) & (z > 0.73) & (z < 0.765))
    eyebrow = forehead[brow(place[forehead]) > 0.15]
    label[eyebrow] = np.where(left[eyebrow], LABEL["l_brow"], LABEL["r_brow"])
    ear = masks[:, 2] > 0.4
    label[ear] = np.where(left, LABEL["l_ear"], LABEL["r_ear"])[ear]
    lip = masks[:, 0] > 0.4
    label[lip] = np.where(z > 0.6625, LABEL["u_lip"], LABEL["l_lip"])[lip]
    label[(material == TEETH) | (material == MOUTH)] = LABEL["mouth"]
    eye = material == EYE
    label[eye] = np.where(left, LABEL["l_eye"], LABEL["r_eye"])[eye]
    label[material == CLOTH] = LABEL["cloth"]
    return label
