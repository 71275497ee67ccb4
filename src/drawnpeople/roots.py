"""Where hair grows: the hairline, the brows, the beard, and tables of roots on the template.

Every region is a function of the place on the template, so it follows every person and every expression.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from drawnpeople.kernels import kernel
from drawnpeople.seeding import generator
from drawnpeople.template import SKIN, template

CROWN = np.array([0.0, 0.004, 0.834], np.float32)
"""Where the whorl of the hair is."""
CANDIDATES = {"scalp": 15000, "brow": 9000, "beard": 16000}
GUIDES = 900
_HAIRLINE = (
    [-0.16, -0.125, -0.108, -0.095, -0.083, -0.072, -0.060, -0.050, -0.03, -0.004, 0.012, 0.03, 0.07],
    [0.798, 0.794, 0.788, 0.780, 0.767, 0.750, 0.729, 0.712, 0.735, 0.735, 0.70, 0.672, 0.655],
)
_ALONG = [0, 0.35, 0.65, 1]
_BEARD_TOP = ([-0.16, -0.14, -0.12, -0.09, -0.065, -0.052], [0.676, 0.670, 0.662, 0.667, 0.692, 0.735])
_BEARD_BOTTOM = ([-0.11, -0.07, -0.05], [0.606, 0.630, 0.66])


@dataclass(frozen=True)
class Roots:
    """Points on the skin of the template, in an order of which every beginning is spread evenly."""

    triangles: np.ndarray  # (r,) int32
    barycentric: np.ndarray  # (r, 3)
    points: np.ndarray  # (r, 3)
    normals: np.ndarray  # (r, 3)
    guides: np.ndarray  # (g,) int32: roots that are far from each other, the furthest first


def ramp(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below ``low``, 1 above ``high``, and a smooth step between them."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def hairline(place: np.ndarray, recede: float = 0.0) -> np.ndarray:
    """Height of points (N, 3) above the hairline; negative on the face. ``recede`` bares mostly the temples."""
    x, y, z = np.abs(place[:, 0]), place[:, 1], place[:, 2]
    edge = np.interp(y, *_HAIRLINE)
    ear = (x > 0.074) & (y > -0.05) & (y < 0.005) & (z < 0.738)
    bump = np.clip(1 - ((x - 0.045) / 0.034) ** 2, 0, 1) ** 2 * ramp(-y, 0.045, 0.062)
    front = 0.55 * ramp(-y, 0.075, 0.10)
    return (z - edge - recede * (bump + front) - ear).astype(np.float32)


def brow(place: np.ndarray, height: float = 0.0, arch: float = 0.5) -> np.ndarray:
    """Density of the hairs of the brows at points (N, 3), 0 to 1. ``height``: metres above the template's brows."""
    x, y, z = np.abs(place[:, 0]), place[:, 1], place[:, 2] - height
    along = np.clip((x - 0.0105) / 0.0435, 0, 1)
    straight = np.interp(along, _ALONG, [0.7472, 0.7484, 0.7482, 0.7444])
    arched = np.interp(along, _ALONG, [0.7462, 0.7490, 0.7502, 0.7434])
    half = np.interp(along, [0, 0.15, 0.6, 1], [0.0047, 0.0053, 0.0043, 0.0016])
    off = (z - straight - (arched - straight) * arch) / half
    ends = np.clip((x - 0.0085) / 0.009, 0, 1) * np.clip((0.0555 - x) / 0.006, 0, 1)
    return (np.clip(1.25 - off * off, 0, 1) * ends * (y < -0.085)).astype(np.float32)


def beard(place: np.ndarray, lips: np.ndarray, kind: str = "full") -> np.ndarray:
    """Density of a beard at points (N, 3), 0 to 1, with soft borders. ``lips`` (N,): the lips in [0, 1]."""
    x, y, z = np.abs(place[:, 0]), place[:, 1], place[:, 2]
    lip = np.clip((0.6845 - 0.10 * x - z) / 0.004, 0, 1) * np.clip((0.031 - x) / 0.006, 0, 1)
    lip = lip * np.clip((z - 0.6635 + 0.35 * np.clip(x - 0.018, 0, 1)) / 0.002, 0, 1) * (y < -0.118)
    if kind in ("mustache", "goatee"):
        sides = np.clip((0.0345 - x) / 0.007, 0, 1) * np.clip((x - 0.0225) / 0.004, 0, 1)
        sides = sides * (z < 0.672) * (z > 0.640) * (y < -0.1)
        chin = np.clip((0.031 - x - 0.25 * np.clip(z - 0.640, 0, 1)) / 0.008, 0, 1)
        chin = chin * ramp(z, 0.613, 0.621) * (z < 0.6505) * (y < -0.085)
        density = lip if kind == "mustache" else np.maximum(np.maximum(lip, sides), chin)
    elif kind == "none":
        density = np.zeros_like(x)
    else:
        cheeks = np.clip((np.interp(y, *_BEARD_TOP) - z) / 0.010 + 0.4, 0, 1)
        cheeks = (
            cheeks
            * np.clip((z - np.interp(y, *_BEARD_BOTTOM)) / 0.012 + 0.3, 0, 1)
            * np.clip((-0.047 - y) / 0.006, 0, 1)
        )
        density = np.maximum(lip, cheeks)
    lobe = (x > 0.0655) & (z < 0.694) & (y > -0.0675)  # of the ear
    return (np.clip(density, 0, 1) * np.clip(1.15 - 4 * lips, 0, 1) * ~lobe).astype(np.float32)


def lips(triangles: np.ndarray, barycentric: np.ndarray) -> np.ndarray:
    """1 on the lips, 0 elsewhere."""
    head = template()
    uv = (head.corner_uv[triangles] * barycentric[..., None]).sum(1)
    return head.masks_at(uv)[:, 0]


@kernel
def furthest(points, count):
    """Numbers of ``count`` points, each as far as possible from those before it."""
    chosen = np.zeros(count, np.int32)
    far = np.full(len(points), np.float32(1e9))
    last = 0
    for i in range(count):
        chosen[i] = last
        best = 0
        for j in range(len(points)):
            dx, dy, dz = points[j, 0] - points[last, 0], points[j, 1] - points[last, 1], points[j, 2] - points[last, 2]
            far[j] = min(far[j], dx * dx + dy * dy + dz * dz)
            if far[j] > far[best]:
                best = j
        last = best
    return chosen


@lru_cache(maxsize=3)
def roots(region: str) -> Roots:
    """Roots all over a region: scalp, brow or beard. They are the same for everyone."""
    head = template()
    draw = generator(0, "roots", region)
    skin = np.flatnonzero(head.material[: head.solid] == SKIN)
    corners = head.vertices[head.triangles[skin]]
    middle = corners.mean(1)
    if region == "scalp":
        near = hairline(middle) > -0.02
    elif region == "brow":
        near = (np.abs(middle[:, 2] - 0.747) < 0.014) & (np.abs(middle[:, 0]) < 0.062) & (middle[:, 1] < -0.08)
    else:
        near = (middle[:, 2] < 0.74) & (middle[:, 2] > 0.598) & (middle[:, 1] < -0.04) & (np.abs(middle[:, 0]) < 0.08)
    skin, corners = skin[near], corners[near]
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.stack([a[:, i] * b[:, j] - a[:, j] * b[:, i] for i, j in ((1, 2), (2, 0), (0, 1))], 1).astype(
        np.float64
    )
    area = np.cumsum(np.sqrt(normal[:, 0] ** 2 + normal[:, 1] ** 2 + normal[:, 2] ** 2))
    count = CANDIDATES[region]
    row = np.searchsorted(area, draw.random(count) * area[-1])
    u = draw.random((count, 2)).astype(np.float32)
    folded = u.sum(1) > 1
    u[folded] = 1 - u[folded]
    barycentric = np.stack([1 - u[:, 0] - u[:, 1], u[:, 0], u[:, 1]], 1)
    triangles = skin[row].astype(np.int32)
    points = (head.vertices[head.triangles[triangles]] * barycentric[..., None]).sum(1)
    normals = unit((head.normals[head.triangles[triangles]] * barycentric[..., None]).sum(1))
    if region == "scalp":
        keep = hairline(points) > -0.012
    elif region == "brow":
        keep = np.maximum(brow(points, 0.003, 1.0), brow(points, -0.003, 0.0)) > 0
        keep |= np.maximum(brow(points, 0.0, 1.0), brow(points, 0.0, 0.0)) > 0
    else:
        lip = lips(triangles, barycentric)
        keep = np.maximum(beard(points, lip, "full"), beard(points, lip, "goatee")) > 0
    keep &= head.masks_at((head.corner_uv[triangles] * barycentric[..., None]).sum(1))[:, 2] < 0.3  # none on the ears
    triangles, barycentric, points, normals = triangles[keep], barycentric[keep], points[keep], normals[keep]
    guides = furthest(points, GUIDES) if region == "scalp" else np.zeros(0, np.int32)
    return Roots(triangles, barycentric, points.astype(np.float32), normals, guides)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (..., 3) of length 1, without BLAS."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    length = np.sqrt(x * x + y * y + z * z)[..., None]
    return (vectors / np.maximum(length, 1e-9)).astype(np.float32)
