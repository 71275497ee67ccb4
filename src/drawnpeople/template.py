"""The head that every drawn face is a blend of: a mesh, its blend shapes, and what is known of places on it.

Metres; +x is the person's left, z is up, the face looks to -y. The data are head.npz; derivation.py made it, head.md
says from what.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from drawnpeople.kernels import kernel
from drawnpeople.landmarks import rails_of, vertices_of

SKIN, EYE, TEETH, MOUTH, CLOTH, LASH = range(6)
"""Materials of a triangle. MOUTH is the lining of the mouth and the tongue; CLOTH is never in the file."""

FILE = Path(__file__).with_name("head.npz")
STEP = 5e-6  # metres; blend shapes are stored in whole steps
GRID0, CELL, GRID = np.array([-0.24, -0.22, 0.40], np.float32), np.float32(0.005), (97, 85, 106)
"""First corner (metres), cell (metres) and numbers of cells of the grid of distances."""


@dataclass(frozen=True)
class Template:
    """The head and its blend shapes. Arrays are float32 unless a comment says otherwise, and read-only."""

    vertices: np.ndarray  # (V, 3)
    triangles: np.ndarray  # int32 (T, 3): the solid ones first, then those of the lashes
    solid: int  # number of solid triangles
    corner_uv: np.ndarray  # (T, 3, 2): places of the corners in the texture; seams are at the back and in the mouth
    material: np.ndarray  # int32 (T,)
    normals: np.ndarray  # (V, 3)
    occlusion: np.ndarray  # (V,): 0 hidden .. 1 open to the sky
    names: tuple[str, ...]  # of the blend shapes: "facial_action:jawOpen", "local_change:...", "race:...", ...
    starts: np.ndarray  # int64 (S + 1,): shape s moves the vertices moved[starts[s]:starts[s + 1]] by moves[...]
    moved: np.ndarray  # int32 (M,)
    moves: np.ndarray  # (M, 3)
    left_eye: np.ndarray  # int32: vertices of the eyeball of the person's left (+x)
    right_eye: np.ndarray
    masks: np.ndarray  # uint8 (1024, 512, 3): lips, eyelids, ears in a window of the texture
    distance: np.ndarray  # (97, 85, 106): signed distance from the skin in metres, positive outside
    nearest: np.ndarray  # int32 (97, 85, 106): the nearest vertex of the skin

    @cached_property
    def shapes(self) -> np.ndarray:
        """The blend shapes with all their zeros, (S, V, 3)."""
        dense = np.zeros((len(self.names), *self.vertices.shape), np.float32)
        rows = np.repeat(np.arange(len(self.names)), np.diff(self.starts))
        dense[rows, self.moved] = self.moves
        return dense

    @cached_property
    def number(self) -> dict[str, int]:
        """Name of a blend shape -> its number."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def parts(self) -> tuple[tuple[str, list[str]], ...]:
        """Of each blend shape: its kind, and the words of its name."""
        return tuple((kind, bare.split("-")) for kind, _, bare in (name.partition(":") for name in self.names))

    @cached_property
    def local_names(self) -> tuple[str, ...]:
        """The local changes: for each pair of shapes (positive, negative) the name of the first."""
        return tuple(name.split(":")[1] for name in self.names if name.startswith("local_change:"))[::2]

    @cached_property
    def action_names(self) -> tuple[str, ...]:
        """The facial actions, e.g. ``jawOpen``, in the order of the shapes."""
        return tuple(name.split(":")[1] for name in self.names if name.startswith("facial_action:"))

    @cached_property
    def eyes(self) -> np.ndarray:
        """Centers of the left and the right eyeball, (2, 3)."""
        balls = [self.vertices[eye] for eye in (self.left_eye, self.right_eye)]
        return np.stack([(ball.min(0) + ball.max(0)) / np.float32(2) for ball in balls])

    @cached_property
    def eye_radius(self) -> float:
        """Half of the width of an eyeball, metres. Its vertices are 8 % further from its center."""
        return float(np.ptp(self.vertices[self.left_eye, 0]) / 2)

    @cached_property
    def teeth(self) -> np.ndarray:
        """Vertices of both rows of teeth."""
        return np.unique(self.triangles[self.material == TEETH])

    @cached_property
    def lining(self) -> np.ndarray:
        """Vertices of the lining of the mouth and of the tongue that the skin does not share."""
        inside = np.unique(self.triangles[self.material == MOUTH])
        return np.setdiff1d(inside, self.triangles[self.material == SKIN])

    @cached_property
    def lower_teeth(self) -> np.ndarray:
        """Vertices of the lower row: the one that follows the jaw."""
        jaw = self.names.index("facial_action:jawOpen")
        return np.intersect1d(self.teeth, self.moved[self.starts[jaw] : self.starts[jaw + 1]])

    @cached_property
    def rails(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Of the 17 contour points: rows of places along which they slide to the silhouette, see `landmarks`."""
        return rails_of(self.vertices, self.triangles[self.material == SKIN], self.mirror)

    @cached_property
    def all_rails(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rails one after another: edges (n, 2), shares (n,), and where each rail starts and the last one ends."""
        pairs, share = (np.concatenate(parts) for parts in zip(*self.rails, strict=True))
        return pairs, share, np.cumsum([0, *(len(one) for _, one in self.rails)])

    @cached_property
    def landmarks(self) -> np.ndarray:
        """Vertices of the 68 points of iBUG on a face that looks at us, int32 (68,)."""
        return vertices_of(self.vertices, self.mirror, self.rails)

    @cached_property
    def mirror(self) -> np.ndarray:
        """For each vertex the one at the same place on the other side of the face, int32 (V,)."""
        order = np.argsort(self.vertices[:, 2], kind="stable")
        return _mirror(self.vertices[order].astype(np.float64), order)

    def masks_at(self, uv: np.ndarray) -> np.ndarray:
        """Lips, eyelids and ears at places (N, 2) of the texture: (N, 3) in [0, 1], bilinear."""
        return _masks_at(self.masks, np.ascontiguousarray(uv, np.float32))


@kernel
def _masks_at(masks, uv):
    out, one = np.empty((len(uv), 3), np.float32), np.float32(1)
    for n in range(len(uv)):
        column = (uv[n, 0] * np.float32(2048) - np.float32(1550)) * np.float32(512 / 498)
        row = ((one - uv[n, 1]) * np.float32(2048) - np.float32(700)) * np.float32(1.024)
        column = min(max(column, np.float32(0)), np.float32(510.999))
        row = min(max(row, np.float32(0)), np.float32(1022.999))
        i, j = int(column), int(row)
        s, t = np.float32(column - np.float32(i)), np.float32(row - np.float32(j))
        for c in range(3):
            top = np.float32(masks[j, i, c]) * (one - s) + np.float32(masks[j, i + 1, c]) * s
            low = np.float32(masks[j + 1, i, c]) * (one - s) + np.float32(masks[j + 1, i + 1, c]) * s
            out[n, c] = (top * (one - t) + low * t) * np.float32(1 / 255)
    return out


@kernel
def _mirror(points, numbers):
    """For points (V, 3), sorted by z: the number of the nearest one to the mirror image of each, at its number."""
    out = np.empty(len(points), np.int32)
    for i in range(len(points)):
        best = np.inf
        for step in (-1, 1):
            j = i if step > 0 else i - 1
            while 0 <= j < len(points):
                x, y, z = points[j, 0] + points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
                if z * z > best:
                    break
                distance = x * x + y * y + z * z
                if distance < best:
                    best = distance
                    out[numbers[i]] = numbers[j]
                j += step
    return out


def normals_of(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Unit normals of the vertices (V, 3): sums over their triangles, weighted by area. Points outwards."""
    a, b, c = (vertices[triangles[:, k]].astype(np.float64) for k in range(3))
    u, v = b - a, c - a
    faces = np.stack([u[:, i] * v[:, j] - u[:, j] * v[:, i] for i, j in ((1, 2), (2, 0), (0, 1))], 1)
    total = np.zeros((len(vertices), 3))
    for corner in range(3):
        for axis in range(3):
            total[:, axis] += np.bincount(triangles[:, corner], faces[:, axis], len(vertices))
    length = np.sqrt(total[:, 0] ** 2 + total[:, 1] ** 2 + total[:, 2] ** 2)
    return (total / np.maximum(length, 1e-12)[:, None]).astype(np.float32)


@cache
def template() -> Template:
    """The template, read once."""
    with np.load(FILE) as archive:
        data = {name: archive[name] for name in archive.files}
    vertices = np.ascontiguousarray(data["vertices"].T)
    triangles = np.ascontiguousarray(data["triangles"].T.astype(np.int32))
    material = data["material"].astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(data["count"], dtype=np.int64)])
    moved = np.cumsum(data["gap"], dtype=np.int64)
    moved -= np.repeat(np.concatenate([[0], moved[starts[1:-1] - 1]]), data["count"])
    made = Template(
        vertices=vertices,
        triangles=triangles,
        solid=int((material != LASH).sum()),
        corner_uv=np.ascontiguousarray(data["corner_uv"].T.reshape(-1, 3, 2) * np.float32(1 / 65535)),
        material=material,
        normals=normals_of(vertices, triangles),
        occlusion=data["occlusion"] * np.float32(1 / 255),
        names=tuple(str(name) for name in data["names"]),
        starts=starts,
        moved=moved.astype(np.int32),
        moves=np.ascontiguousarray(data["steps"].T * np.float32(STEP)),
        left_eye=data["left_eye"].astype(np.int32),
        right_eye=data["right_eye"].astype(np.int32),
        masks=np.ascontiguousarray(data["masks"].transpose(1, 2, 0)),
        distance=np.cumsum(data["distance"], axis=2, dtype=np.int16) * np.float32(1e-4),
        nearest=data["nearest"].astype(np.int32),
    )
    for value in vars(made).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return made
