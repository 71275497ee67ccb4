"""The geometry of a person (`Body`) and of an image of the person (`Head`): blend shapes, pose and landmarks."""

import math

import numba
import numpy as np

from drawnpeople.camera import Camera
from drawnpeople.landmarks import OUTWARDS
from drawnpeople.measures import measure
from drawnpeople.mesh_kernels import normals
from drawnpeople.person import Person
from drawnpeople.shot import Shot
from drawnpeople.template import CELL, GRID0, Template, template

AGES = {"child": 10.0, "young": 25.0, "old": 90.0}
"""Years of the template's age shapes (MakeHuman's scale)."""
LIMITS = {"yaw": 60.0, "pitch": 35.0, "roll": 45.0}
"""Largest angles of a shot, degrees. Beyond them the neck folds."""
DAMPING = {
    "mouth-trans-out": 0.15, "nose-trans-out": 0.15, "neck-trans-out": 0.15, "head-trans-out": 0.0,
    "head-angle-out": 0.0, "head-trans-forward": 0.3, "head-trans-up": 0.3, "head-age-incr": 0.5,
}  # fmt: skip
"""Factors on local changes that make a face crooked or move the head off the neck."""
HEAVY = {"head-fat-incr": 0.5, "neck-double-incr": 0.5, "cheek-volume-incr": 0.4}
"""Local changes that a heavy person has as well: MakeHuman's shapes of weight end at the neck."""
CHEST = 0.35  # share of the yaw by which the chest turns with the head
BROWS, LEFT_EYE, RIGHT_EYE, CORNERS = slice(17, 27), slice(36, 42), slice(42, 48), (48, 54)
"""Landmarks of the brows, of the eye on the image's left, of the other one, and of the corners of the mouth."""


def require(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside its range, by its name."""
    if not low <= value <= high:
        raise ValueError(f"{name} is {value:g}; allowed are values from {low:g} to {high:g}")


@numba.njit(cache=True)
def blend(base, weights, starts, moved, moves):
    """base (V, 3) plus the blend shapes with nonzero weights, one after another."""
    out = base.copy()
    for shape in range(len(weights)):
        weight = weights[shape]
        if weight != 0:
            for i in range(starts[shape], starts[shape + 1]):
                vertex = moved[i]
                out[vertex, 0] += weight * moves[i, 0]
                out[vertex, 1] += weight * moves[i, 1]
                out[vertex, 2] += weight * moves[i, 2]
    return out


@numba.njit(cache=True)
def follow(points, shift, nearest, origin, cell):
    """points (N, 3) on the template, moved by the shift of the nearest vertices, interpolated between grid cells."""
    out = np.empty_like(points)
    last0, last1, last2 = nearest.shape[0] - 2, nearest.shape[1] - 2, nearest.shape[2] - 2
    for n in range(len(points)):
        x = (points[n, 0] - origin[0]) / cell
        y = (points[n, 1] - origin[1]) / cell
        z = (points[n, 2] - origin[2]) / cell
        i, j, k = min(max(int(x), 0), last0), min(max(int(y), 0), last1), min(max(int(z), 0), last2)
        one = np.float32(1)
        fx, fy, fz = min(max(x - i, 0 * one), one), min(max(y - j, 0 * one), one), min(max(z - k, 0 * one), one)
        sx, sy, sz = 0 * one, 0 * one, 0 * one
        for corner in range(8):
            a, b, c = corner & 1, corner >> 1 & 1, corner >> 2
            weight = (fx if a else one - fx) * (fy if b else one - fy) * (fz if c else one - fz)
            vertex = nearest[i + a, j + b, k + c]
            sx += weight * shift[vertex, 0]
            sy += weight * shift[vertex, 1]
            sz += weight * shift[vertex, 2]
        out[n, 0], out[n, 1], out[n, 2] = points[n, 0] + sx, points[n, 1] + sy, points[n, 2] + sz
    return out


@numba.njit(cache=True)
def pose(points, share, head, chest, pivot):
    """points (N, 3) turned about the pivot: by ``head`` where share is 1, by ``chest`` where it is 0."""
    out = np.empty_like(points)
    for n in range(len(points)):
        x, y, z = points[n, 0] - pivot[0], points[n, 1] - pivot[1], points[n, 2] - pivot[2]
        s = share[n]
        for k in range(3):
            by_head = head[k, 0] * x + head[k, 1] * y + head[k, 2] * z
            by_chest = chest[k, 0] * x + chest[k, 1] * y + chest[k, 2] * z
            out[n, k] = by_chest + s * (by_head - by_chest) + pivot[k]
    return out


def share_of_head(points: np.ndarray) -> np.ndarray:
    """How far points (..., 3) on the template turn with the head, (...): 1 above the neck, 0 on the chest."""
    bottom = np.float32(0.555) + np.float32(0.35) * (points[..., 1] + np.float32(0.07))
    t = np.clip((points[..., 2] - bottom) / np.float32(0.05), np.float32(0), np.float32(1))
    return t * t * (np.float32(3) - np.float32(2) * t)


def rotation(yaw: float, pitch: float) -> np.ndarray:
    """Turn of the head (3, 3), angles in degrees: a nod about its own axis, then a turn about the neck."""
    a, b = math.radians(yaw), math.radians(-pitch)
    ca, sa, cb, sb = math.cos(a), math.sin(a), math.cos(b), math.sin(b)
    return np.array([[ca, -sa * cb, sa * sb], [sa, ca * cb, -ca * sb], [0.0, sb, cb]], np.float32)


def steps(value: float) -> dict[str, float]:
    """Weights of the shapes min, average and max for an amount in [0, 1]."""
    return {"min": max(0.0, 1 - 2 * value), "average": 1 - abs(2 * value - 1), "max": max(0.0, 2 * value - 1)}


def identity_weights(person: Person, head: Template) -> np.ndarray:
    """Amounts of the blend shapes for a person without expression, (S,). Refuses what is outside its range."""
    require("age", person.age, AGES["child"], AGES["old"])
    require("muscle", person.muscle, 0, 1)
    require("weight", person.weight, 0, 1)
    changes = len(head.local_names)
    if len(person.local) != changes:
        raise ValueError(f"local has {len(person.local)} amounts; allowed are {changes}, one for each local change")
    if len(person.ancestry) != 3 or min(person.ancestry) < 0 or abs(sum(person.ancestry) - 1) > 1e-3:
        raise ValueError(f"ancestry is {list(person.ancestry)}; allowed are three shares of at least 0 that sum to 1")
    for name, amount in zip(head.local_names, person.local, strict=True):
        require(f"local change {name}", amount, -1, 1)
    grown = (person.age - AGES["young"]) / (AGES["old" if person.age > AGES["young"] else "child"] - AGES["young"])
    ages = {"young": 1 - grown, "old": grown if person.age > AGES["young"] else 0.0}
    ages["child"] = 1 - ages["young"] - ages["old"]
    ancestry: dict[str, float] = dict(zip(("african", "asian", "caucasian"), map(float, person.ancestry), strict=True))
    muscle, weight, sex = steps(person.muscle), steps(person.weight), "male" if person.male else "female"
    weights, local = np.zeros(len(head.names), np.float32), iter(person.local)
    for number, (kind, parts) in enumerate(head.parts):
        if kind == "universal" and parts[0] == sex:
            of_muscle, of_weight = muscle[parts[2].removesuffix("muscle")], weight[parts[3].removesuffix("weight")]
            weights[number] = ages[parts[1]] * of_muscle * of_weight
        elif kind == "race" and parts[1] == sex:
            weights[number] = ancestry[parts[0]] * ages[parts[2]]
    first = next(number for number, (kind, _) in enumerate(head.parts) if kind == "local_change")
    for pair, (name, amount) in enumerate(zip(head.local_names, local, strict=True)):
        bare = name.removeprefix("l-").removeprefix("r-")
        amount = float(amount) * DAMPING.get(bare, 1.0) + HEAVY.get(bare, 0.0) * (2 * person.weight - 1)
        amount = min(max(amount, -1.0), 1.0)
        weights[first + 2 * pair], weights[first + 2 * pair + 1] = max(amount, 0.0), max(-amount, 0.0)
    return weights


def action_weights(actions: dict[str, float], head: Template) -> np.ndarray:
    """Amounts of the blend shapes for an expression, (S,). A name without Left or Right stands for both sides."""
    weights = np.zeros(len(head.names), np.float32)
    for name, amount in actions.items():
        sides = [f"facial_action:{name}{side}" for side in ("", "Left", "Right")]
        numbers = [head.number[side] for side in sides if side in head.number]
        if not numbers:
            raise ValueError(f"there is no facial action {name}; there are {', '.join(head.action_names)}")
        require(f"facial action {name}", amount, 0, 1)
        for number in numbers:
            weights[number] = np.float32(amount)
    return weights


def _opening(vertices: np.ndarray, head: Template) -> np.ndarray:
    """Height of the opening of the right and of the left eye, metres, float32 (2,)."""
    marks = vertices[head.landmarks, 2]
    return np.array([marks[[37, 38]].sum() - marks[[40, 41]].sum(), marks[[43, 44]].sum() - marks[[46, 47]].sum()]) / 2


class Body:
    """A person without expression. It is built once for all images of the person.

    ``neutral`` (V, 3): the vertices; ``shift``: how far they are from those of the template; ``measured``: see
    `measures.measure`; ``openness`` (2,): of the right and the left eye in units of the template's, which a blink has
    to close.
    """

    def __init__(self, person: Person):
        head = template()
        self.person = person
        self.neutral = blend(head.vertices, identity_weights(person, head), head.starts, head.moved, head.moves)
        self.shift = self.neutral - head.vertices
        self.measured = measure(self.neutral, head)
        self.openness = np.clip(_opening(self.neutral, head) / _opening(head.vertices, head), 0.5, 2.0)

    def carry(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) on the template, moved with the shape of the person, before any pose."""
        head = template()
        flat = np.ascontiguousarray(points.reshape(-1, 3), dtype=np.float32)
        return follow(flat, self.shift, head.nearest, GRID0, CELL).reshape(points.shape)


class Head:
    """The geometry of one image: expression, cloth and pose, before perspective.

    ``n``: samples a side of the image. ``clothed`` (V,): metres that a vertex of the template is inside the garment,
    negative outside; the skin there becomes cloth, which is thicker.
    """

    def __init__(self, body: Body, shot: Shot, n: int = 256, clothed: np.ndarray | None = None):
        head = template()
        for name, limit in LIMITS.items():
            require(name, getattr(shot, name), -limit, limit)
        require("zoom", shot.zoom, 0.5, 2.0)
        require("distance", shot.distance, 0.3, 20.0)
        self.body, self.shot = body, shot
        weights = action_weights(shot.actions, head)
        for side, openness in zip(("Right", "Left"), body.openness, strict=True):
            weights[head.number[f"facial_action:eyeBlink{side}"]] *= openness
        self.expressed = blend(body.neutral, weights, head.starts, head.moved, head.moves)
        self.expressed[head.teeth] *= np.array([0.9, 1, 1], np.float32)
        self.expressed[head.teeth, 1] += np.float32(0.004)
        self.expressed[head.lower_teeth] += np.array([0, 0.001, -0.0035], np.float32)
        if clothed is not None:
            thick = np.clip(clothed / np.float32(0.02) + np.float32(0.3), 0, 1) * np.float32(0.006)
            self.expressed += head.normals * thick[:, None].astype(np.float32)
        self.turn = rotation(shot.yaw, shot.pitch)
        self._chest = rotation(CHEST * shot.yaw, 0.0)
        self._pivot = PIVOT + np.array([0, *body.shift[head.landmarks[[0, 16]], 1:].mean(0)], np.float32)
        self.points = self._pose(self.expressed, head.vertices)
        self.normals = normals(self.points, head.triangles)
        balls = [self.points[eye] for eye in (head.left_eye, head.right_eye)]
        self.eyes = np.stack([(ball.sum(0, dtype=np.float64) / len(ball)).astype(np.float32) for ball in balls])
        marks = self.points[head.landmarks].astype(np.float64)
        corners = np.stack([marks[LEFT_EYE].mean(0), marks[RIGHT_EYE].mean(0), *marks[list(CORNERS)]])
        eye = self.eyes.mean(0) - np.array([0, shot.distance, 0], np.float32)
        self.camera = Camera(n, eye, shot.distance, corners, shot.roll, shot.shift, shot.zoom)

    def _pose(self, points: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Points (..., 3), turned with head and chest as their ``places`` (..., 3) on the template tell."""
        share = np.ascontiguousarray(share_of_head(places).reshape(-1), dtype=np.float32)
        flat = np.ascontiguousarray(points.reshape(-1, 3), dtype=np.float32)
        return pose(flat, share, self.turn, self._chest, self._pivot).reshape(points.shape)

    def carry(self, points: np.ndarray, skin: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Points (..., 3) on the template to where they are in this image, with the shape of the person and the pose.

        ``skin``: triangles (s,) and barycentric coordinates (s, 3) of the roots of strands (s, k, 3). The strands then
        keep their shape and follow their roots, with the expression.
        """
        if skin is None:
            return self._pose(self.body.carry(points), points)
        head, (triangles, weights) = template(), skin
        corners = head.triangles[triangles]
        moved = self.expressed[corners] - head.vertices[corners]
        root = moved[:, 0] * weights[:, :1] + moved[:, 1] * weights[:, 1:2] + moved[:, 2] * weights[:, 2:3]
        return self._pose(points + root[:, None], points)

    def carry_thing(self, thing) -> np.ndarray:
        """The vertices (n, 3) of a thing that is worn (things.py) to where they are in this image."""
        return pose(thing.vertices, thing.share, self.turn, self._chest, self._pivot)

    def landmarks(self) -> np.ndarray:
        """The 68 points of iBUG in samples, (68, 2). Points 0 to 16 are on the silhouette of cheeks and jaw."""
        head = template()
        points = self.points[head.landmarks]
        points[BROWS] += self.turn[:, 2] * np.float32(self.body.person.brow_height)
        marks = self.camera.project(points)[:, :2]
        pairs, share, ends = head.all_rails
        first, second = self.points[pairs[:, 0]], self.points[pairs[:, 1]]
        places = self.camera.project(first + share[:, None] * (second - first))[:, :2]
        for number, start in enumerate(ends[:-1]):
            rail = places[start : ends[number + 1]]
            right, down = self.camera.direction(*OUTWARDS[number])
            marks[number] = rail[np.argmax(rail[:, 0] * right + rail[:, 1] * down)]
        return marks


PIVOT = np.array([0, -0.02, 0.66], np.float32)
"""Of the head on the neck, on the template."""
