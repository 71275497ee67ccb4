"""Where a face creases with the years: folds and lines on the template, as seen from the front."""

from functools import cache, lru_cache
from itertools import pairwise

import numpy as np

from drawnpeople.seeding import generator

F = np.float32
LEFT, LOW, CELL = -0.075, 0.540, 0.0004
"""The corner (x, z) of the map of creases and the side of its cells, metres."""
COLUMNS, ROWS = 376, 701
STEP, STEEP = 1.0 / 127.0, 1.6
"""The map has bytes, which stay in the processor's cache: steps of a darkness of 1, and of a slope of STEEP."""
GROUPS = ("mouth", "eyes", "forehead", "fine")
"""Groups of creases. How deep each is differs from person to person."""

Course = tuple[tuple[float, float], ...]
CREASES: tuple[tuple[str, float, float, float, Course], ...] = (
    # group, half width (mm), depth (mm), bulge beside it (share of the depth; negative: on its right), places (mm)
    ("mouth", 3.4, 1.50, 0.55, ((15.5, 693), (20.0, 687), (25.0, 678), (30.0, 668), (32.5, 659), (33.0, 654))),  # nose
    ("mouth", 2.6, 0.90, 0.45, ((27.5, 657.5), (29.5, 650), (30.0, 642), (28.5, 634))),  # corner of the mouth to chin
    ("mouth", 5.0, 0.60, 0.60, ((31.0, 641), (34.0, 633), (38.0, 627), (45.0, 629))),  # jowl
    ("mouth", 2.6, 0.60, 0.0, ((-13, 640.5), (-6, 643), (0, 643.5), (6, 643), (13, 640.5))),  # above the chin
    ("mouth", 3.0, 0.70, 0.0, ((-40, 592), (-20, 585), (0, 582), (20, 585), (40, 592))),  # neck
    ("mouth", 3.0, 0.60, 0.0, ((-38, 574), (-20, 567), (0, 565), (20, 567), (38, 574))),
    ("mouth", 2.2, 0.45, 0.3, ((38.0, 690), (41.5, 679), (42.5, 668), (41.5, 657))),  # beside the smile
    ("mouth", 2.0, 0.30, 0.3, ((46.5, 689), (49.5, 677), (49.5, 664), (47.5, 654))),
    ("eyes", 2.8, 1.00, 0.70, ((15.0, 724), (19.0, 718.5), (25.0, 714.5), (32.0, 713), (39.0, 714.5), (45.0, 719))),
    ("eyes", 3.6, 0.75, 0.45, ((17.0, 719), (23.0, 711.5), (30.0, 706.5), (38.0, 704.5), (46.0, 706))),
    ("eyes", 1.7, 0.55, 0.60, ((19.0, 735), (25.0, 738.5), (33.0, 739.5), (41.0, 737), (47.5, 731.5))),  # hood
    ("forehead", 1.9, 0.60, 0.2, ((-38, 764), (-22, 768), (-6, 764.5), (8, 765), (22, 768.5), (37, 764.5))),
    ("forehead", 2.0, 0.70, 0.2, ((-42, 772), (-24, 776), (-8, 772), (6, 772.5), (24, 776.5), (42, 771.5))),
    ("forehead", 2.0, 0.65, 0.2, ((-43, 780.5), (-20, 784), (-4, 780.5), (16, 783.5), (41, 781))),
    ("forehead", 1.9, 0.50, 0.2, ((-30, 790), (-12, 791), (4, 788.5), (26, 791.5))),
    ("forehead", 1.6, 0.40, 0.2, ((-8, 758), (4, 757.5), (15, 760), (27, 760.5))),
    ("forehead", 1.6, 0.25, 0.0, ((5.5, 741), (5.8, 748), (7.5, 755))),  # between the brows
    ("fine", 1.3, 0.50, 0.0, ((48.0, 730), (55.0, 735), (62.0, 741))),  # feet of a crow
    ("fine", 1.3, 0.55, 0.0, ((48.5, 727.5), (56.0, 729.5), (64.0, 732))),
    ("fine", 1.3, 0.55, 0.0, ((48.0, 725.5), (55.0, 723.5), (63.0, 722))),
    ("fine", 1.3, 0.45, 0.0, ((46.5, 722.5), (53.0, 717.5), (59.0, 713))),
    ("fine", 1.1, 0.35, 0.0, ((20.0, 720.5), (28.0, 717.8), (36.0, 718), (43.0, 721))),  # below the eye
    ("fine", 1.1, 0.30, 0.0, ((22.0, 717), (30.0, 711), (40.0, 710), (47.0, 713.5))),
    ("fine", 0.9, 0.30, 0.0, ((2.5, 672), (2.8, 678))),  # above the lip
    ("fine", 0.9, 0.35, 0.0, ((7.0, 672), (7.8, 679))),
    ("fine", 0.9, 0.35, 0.0, ((11.5, 670.5), (13.0, 677.5))),
    ("fine", 0.9, 0.35, 0.0, ((16.0, 669), (18.2, 675))),
    ("fine", 0.9, 0.30, 0.0, ((20.0, 667), (23.0, 672))),
    ("fine", 0.9, 0.30, 0.0, ((9.0, 649), (10.0, 643.5))),
    ("fine", 0.9, 0.30, 0.0, ((15.0, 651), (17.5, 645))),
)
"""The creases of the person's left side; those that do not cross the middle are mirrored."""


@cache
def creases() -> np.ndarray:
    """int8 (ROWS, COLUMNS, 3 * len(GROUPS)): for each group darkness and what the slope adds to the normal, x and z."""
    z, x = np.meshgrid(LOW + CELL * np.arange(ROWS), LEFT + CELL * np.arange(COLUMNS), indexing="ij")
    height, dark = np.zeros((len(GROUPS), ROWS, COLUMNS)), np.zeros((len(GROUPS), ROWS, COLUMNS))
    draw = generator(0, "creases")
    for group, width, depth, bulge, course in CREASES:
        for side in (1.0,) if course[0][0] < 0.0 else (1.0, -1.0):
            jitter = draw.uniform(-0.5, 0.5, (len(course), 2))
            places = (np.array(course) + jitter) * np.array([side, 1.0]) / 1000.0
            _carve(
                (x, z),
                _smooth(places),
                width / 1000.0,
                depth / 1000.0,
                bulge * side,
                height[GROUPS.index(group)],
                dark[GROUPS.index(group)],
            )
    layers = []
    for one, deep in zip(height, dark, strict=True):
        layers += [deep, -_slope(one, 1) / STEEP, -_slope(one, 0) / STEEP]
    return np.rint(np.clip(np.stack(layers, -1), -1.0, 1.0) / STEP).astype(np.int8)


def _smooth(course: np.ndarray) -> np.ndarray:
    """A course with its corners cut, three times (Chaikin 1974)."""
    for _ in range(3):
        first, second = 0.75 * course[:-1] + 0.25 * course[1:], 0.25 * course[:-1] + 0.75 * course[1:]
        course = np.concatenate([course[:1], np.stack([first, second], 1).reshape(-1, 2), course[-1:]])
    return course


def _carve(grid, course, width, depth, bulge, height, dark) -> None:
    """Add a crease to ``height`` (metres) and ``dark`` of its group, both (ROWS, COLUMNS). It is shallow at both ends.

    ``grid``: x and z of each cell.
    """
    x, z = grid
    reach = 3.2 * width
    low, high = course.min(0) - reach, course.max(0) + reach
    i0, i1 = (min(max(int((v - LOW) / CELL), 0), ROWS) for v in (low[1], high[1]))
    j0, j1 = (min(max(int((v - LEFT) / CELL), 0), COLUMNS) for v in (low[0], high[0]))
    px, pz = x[i0:i1, j0:j1], z[i0:i1, j0:j1]
    best, across, along = np.full(px.shape, 1.0), np.zeros(px.shape), np.zeros(px.shape)
    for number, ((ax, az), (bx, bz)) in enumerate(pairwise(course)):
        ux, uz = bx - ax, bz - az
        square = ux * ux + uz * uz
        t = np.clip(((px - ax) * ux + (pz - az) * uz) / square, 0.0, 1.0)
        dx, dz = px - ax - t * ux, pz - az - t * uz
        far = np.sqrt(dx * dx + dz * dz)
        nearer = far < best
        best = np.where(nearer, far, best)
        across = np.where(nearer, np.sign(ux * dz - uz * dx), across)
        along = np.where(nearer, (number + t) / (len(course) - 1), along)
    ends = np.clip(4.0 * along * (1.0 - along) * 1.4, 0.0, 1.0)
    valley = np.clip(1.0 - (best / width) ** 2, 0.0, 1.0) ** 2
    part = np.clip(1.0 - ((best - 1.5 * width) / (1.5 * width)) ** 2, 0.0, 1.0) ** 2
    height[i0:i1, j0:j1] += depth * ends * (bulge * part * across - valley)
    deep = np.clip(depth / 0.0015 * ends * valley, 0.0, 1.0)
    dark[i0:i1, j0:j1] = np.maximum(dark[i0:i1, j0:j1], deep)


def _slope(height: np.ndarray, axis: int) -> np.ndarray:
    return (np.roll(height, -1, axis) - np.roll(height, 1, axis)) / (2.0 * CELL)


@lru_cache(maxsize=1024)
def _draw_factors(texture: int) -> tuple[float, ...]:
    """A person's factors on the depths of the groups."""
    return tuple(generator(texture, "creases").uniform(0.75, 1.3, len(GROUPS)))


def depths(wrinkles: float, bags: float, smile: float, makeup: float, texture: int) -> np.ndarray:
    """How deep the creases of each group are, float32 (len(GROUPS),); 1 is the deep crease of an old face."""
    own = _draw_factors(texture)
    soft = 1.0 - 0.15 * makeup
    each = (
        0.06 + 1.35 * wrinkles + 0.25 * smile,
        0.85 * wrinkles + 0.35 * bags,
        1.05 * wrinkles,
        1.1 * wrinkles + 0.15 * smile,
    )
    return np.array([soft * own[k] * each[k] for k in range(len(GROUPS))], F)
