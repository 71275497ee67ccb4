"""Runs the command line in a small repository of its own, for the tests of what it writes."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from skimage.data import astronaut

from masquerade.cli import main
from masquerade.core import keys
from masquerade.core.images import to_float, to_uint8
from masquerade.methods import Capabilities
from masquerade.methods.controls import Original
from masquerade.params import overlays
from masquerade.pipeline.outputs import REPORT
from masquerade.pipeline.photographs.batches import DOT_FOLDER

ROOT = Path(__file__).parents[1]
FOLDER = {
    "path": "", "identity": "unknown", "validation_share": 0, "faces": "refuse", "alignment": "ffhq", "megapixels": 40,
    "detection_side": 640, "detection_score": 0.3, "turn": True, "smallest": 32,
}  # fmt: skip
METHODS = {
    "gaussian_noise": {
        "params": {},
        "variants": {"strong": {"sigma": 100, "where": "face"}, "weak": {"sigma": 1, "where": "face"}},
    },
    "original": {"params": {}, "variants": {"control": {}}},
    "k_same": {"params": {"distance_size": 8}, "variants": {"k_5": {"k": 5}}},
}


def tree() -> dict:
    """The parameters of the repository with few methods and one dataset."""
    common = overlays.overlay(
        overlays.read_yaml(ROOT / "params.yaml"), overlays.read_yaml(ROOT / "scales" / "tiny.yaml")
    )
    matrix = {"train_on": "folder", "calibrate_on": "validation", "evaluate": {}}
    rooms = {"datasets": {"folder": FOLDER}, "backbones": {}, "judges": {}, "metrics": {}, "methods": METHODS}
    measure = {"batch": 8, "judges": []}
    common["caution"] = "Networks of a test."
    common["recovery"] |= {"judges": [], "cells": {}}
    common["attacks"] |= {"cells": {}}
    common["informed"] |= {"cells": {}}
    common["target"] |= {"judges": []}
    return {**common, **rooms, "scale": "mini", "image": {"size": 64}, "matrix": matrix, "measure": measure}


def repository(folder: Path) -> Path:
    """A separate repository below ``folder``, with parameters and no checkpoint."""
    root = folder / "repository"
    (root / "scales").mkdir(parents=True)
    (root / "params.yaml").write_text(yaml.dump(tree(), Dumper=yaml.CSafeDumper))
    (root / "scales" / "mini.yaml").write_text("{}\n")
    return root


def portrait() -> Image.Image:
    """The astronaut Eileen Collins (NASA, public domain), head and shoulders: 300 x 300 pixels."""
    return Image.fromarray(astronaut()[0:300, 80:380])


def folder_with_portrait(folder: Path, name: str) -> Path:
    """A new folder ``photographs`` below ``folder``, with the portrait in the file ``name``."""
    made = folder / "photographs"
    made.mkdir()
    portrait().save(made / name, quality=95)
    return made


def make_original_keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method `original` adds a stream of numbers to each image, modulo 256, and takes it away in recovery.

    The stream follows from the key of the image.
    """

    def shifted(images: np.ndarray, given: Sequence[bytes], sign: int) -> np.ndarray:
        streams = [np.random.default_rng(list(key)).integers(0, 256, images.shape[1:]) for key in given]
        moved = to_uint8(images).astype(int) + sign * np.stack(streams).transpose(0, 2, 3, 1)
        return to_float((moved % 256).astype(np.uint8))

    monkeypatch.setattr(Original, "capabilities", Capabilities(keys=keys.Secret(), invertible=True))
    monkeypatch.setattr(Original, "anonymize", lambda self, faces, seed, keys: shifted(faces.images, keys, 1))
    monkeypatch.setattr(Original, "recover", lambda self, images, keys: shifted(images, keys, -1))


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main.main([str(argument) for argument in arguments])
    return ended.value.code


def anonymize(root: Path, pictures: Path, output: Path, *more: object, method: str = "gaussian_noise") -> int:
    return run("anonymize", "--method", method, "--input", pictures, "--output", output, "--root", root, *more)


def anonymize_from_seed(root: Path, pictures: Path, output: Path, *more: object, method: str = "gaussian_noise") -> int:
    """The same image in each run. In noise of one draw in hundreds, a detector sees a face, and refuses it."""
    return anonymize(root, pictures, output, "--seed", 1, *more, method=method)


def recover(root: Path, pictures: Path, output: Path, *more: object, method: str = "original") -> int:
    return run("recover", "--method", method, "--input", pictures, "--output", output, "--root", root, *more)


def report(output: Path) -> dict[str, dict[str, str]]:
    with (output / REPORT).open(encoding="utf-8", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def written(output: Path) -> set[str]:
    """The names of all files of a run, but for those that let it go on."""
    names = {path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()}
    return {name for name in names if not name.startswith(f"{DOT_FOLDER}/")}
