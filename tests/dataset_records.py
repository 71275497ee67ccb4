"""The faces that a dataset reads from a tree, for tests of published datasets."""

from functools import cache
from pathlib import Path

import numpy as np

from drawnpeople.shot import Conditions
from masquerade.core import discovery
from masquerade.faces.rendered import render
from masquerade.params import blocks, overlays

SIZE = 64
SEED = 7
SHARES = {"backbones": 0.25, "judges": 0.25, "methods": 0.25, "attackers": 0.25}
STUDIO = Conditions(yaw=6.0, pitch=3.0, roll=1.0, jitter=0.01, light=0.2, noise=0.0, blur=0.0, occlusion=0.0)


@cache
def face(person: int, take: int = 0, side: int = 250) -> np.ndarray:
    return render(("test", "test", person, take, SEED, STUDIO, side, 1)).picture


def noise(number: int, side: int = 1024) -> np.ndarray:
    coarse = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return np.kron(coarse, np.ones((side // 8, side // 8, 1), np.uint8))


def dataset(name: str, root: Path, **changes):
    """The dataset with the parameters of params.yaml, and with the tree at ``root``."""
    knobs = overlays.read_yaml(Path(__file__).parents[1] / blocks.PARAMS)["datasets"][name]
    cls = discovery.load("faces", name)
    return cls(cls.Params(**{**knobs, "path": str(root), **changes}))


def records(name: str, root: Path, **changes) -> list:
    return list(dataset(name, root, **changes).records(SIZE, SEED, workers=1))


def by_split(faces: list) -> dict[str, list[str]]:
    splits = {}
    for record in faces:
        splits.setdefault(record.row["split"], []).append(record.row["id"])
    return splits


def replaced(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def edited(name: str, old: str, new: str):
    """A damage of a tree: a function of its root that replaces a text in the file ``name``."""
    return lambda root: replaced(root / name, old, new)


WHO, PARTS_OF = [11, 11, 22, 33, 33], [0, 0, 1, 2, 2]  # of CelebA's pictures 1 to 5
