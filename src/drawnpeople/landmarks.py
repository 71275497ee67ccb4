"""The 68 points of iBUG on the template: vertices chosen by hand, and rails along which the contour slides.

The vertices were read off large images of the mesh with its numbers: margins of the lids, edges of the lips, the
upper edge of the brows, ridge, tip and wings of the nose. They are those of the person's right half, which the image
shows on its left; the other half is their mirror image.
"""

import math

import numpy as np

RIGHT = {
    17: 262, 18: 232, 19: 229, 20: 223, 21: 208,  # upper edge of the brow, from its outer to its inner end
    31: 320, 32: 313,  # wing of the nose and nostril
    36: 1756, 37: 0, 38: 54, 39: 66, 40: 2539, 41: 2543,  # outer corner, upper lid, inner corner, lower lid
    48: 425, 49: 2106, 50: 450, 59: 480, 58: 486,  # corner of the mouth, outer edge of the upper and the lower lip
    60: 416, 61: 472, 67: 517,  # inner edge of the lips
}  # fmt: skip
"""Point -> vertex of the person's right half."""
MIDDLE = {27: 136, 28: 135, 29: 164, 30: 1806, 33: 317, 51: 455, 57: 492, 62: 474, 66: 523}
"""Point -> vertex in the middle of the face."""
MIRRORED = {
    **{k: 16 - k for k in range(8)}, **{k: 43 - k for k in range(17, 22)}, 31: 35, 32: 34,
    36: 45, 37: 44, 38: 43, 39: 42, 40: 47, 41: 46, 48: 54, 49: 53, 50: 52, 59: 55, 58: 56, 60: 64, 61: 63, 67: 65,
}  # fmt: skip
"""Point of the right half -> its mirror image."""

CONTOUR = (  # x and z of a place on the contour, slope of the cut (degrees), limits of the rail: inner x, top, back y
    (-0.072, 0.7330, 0, -0.048, 0.740, -0.059),
    (-0.071, 0.7140, 0, -0.046, 0.720, -0.065),
    (-0.067, 0.6950, 0, -0.038, 0.700, -0.066),
    (-0.063, 0.6770, 0, -0.035, 0.680, -0.075),
    (-0.057, 0.6600, 10, -0.032, 0.668, -0.080),
    (-0.048, 0.6455, 28, -0.028, 0.660, -0.092),
    (-0.0355, 0.6335, 50, -0.020, 0.650, -0.106),
    (-0.0200, 0.6225, 72, -0.010, 0.645, -0.118),
    (0.0, 0.6165, 90, 0.010, 0.635, -0.128),
)
"""Of the points 0 to 8: each rail is a cut through the skin, along the y axis, that slopes down to the outside."""

OUTWARDS = tuple(
    (-math.cos(math.radians(angle)), math.sin(math.radians(angle)))
    for angle in (0, 0, 0, 4, 12, 30, 50, 72, 90, 108, 130, 150, 168, 176, 180, 180, 180)
)
"""Direction (right, down) in the image of an upright head in which a contour point is the outermost of its rail."""


def vertices_of(vertices: np.ndarray, mirror: np.ndarray, rails: tuple) -> np.ndarray:
    """Vertices of the 68 points of a face that looks at us, int32 (68,). Contour: the nearest to the silhouette."""
    points = np.zeros(68, np.int32)
    for number, vertex in MIDDLE.items():
        points[number] = vertex
    for number, vertex in RIGHT.items():
        points[number], points[MIRRORED[number]] = vertex, mirror[vertex]
    for number, (pairs, share) in enumerate(rails):
        near = np.where(share < 0.5, pairs[:, 0], pairs[:, 1])
        right, down = OUTWARDS[number]
        points[number] = near[np.argmax(vertices[near, 0] * right - vertices[near, 2] * down)]
    return points


def rails_of(vertices: np.ndarray, skin: np.ndarray, mirror: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """For the 17 contour points: edges (n, 2) int32 of the ``skin`` (triangles) and shares (n,) of their second ends.

    A rail is the row of the points (1 - share) * first + share * second, from the side of the head to its front.
    """
    edges = np.unique(np.sort(np.concatenate([skin[:, [0, 1]], skin[:, [1, 2]], skin[:, [2, 0]]]), axis=1), axis=0)
    right = []
    for x, z, slope, inner, top, back in CONTOUR:
        angle = math.radians(slope)
        side = (vertices[:, 0] - x) * math.sin(angle) - (vertices[:, 2] - z) * math.cos(angle)
        a, b = side[edges[:, 0]], side[edges[:, 1]]
        cut = edges[(a <= 0) != (b <= 0)]
        share = side[cut[:, 0]] / (side[cut[:, 0]] - side[cut[:, 1]])
        place = vertices[cut[:, 0]] + share[:, None] * (vertices[cut[:, 1]] - vertices[cut[:, 0]])
        keep = (place[:, 0] < inner) & (place[:, 2] < top) & (place[:, 1] < back) & (place[:, 2] > z - 0.03)
        order = np.flatnonzero(keep)[np.argsort(-place[keep, 1], kind="stable")]
        right.append((cut[order].astype(np.int32), share[order].astype(np.float32)))
    left = [(mirror[pairs], share) for pairs, share in right[7::-1]]
    return (*right, *left)
