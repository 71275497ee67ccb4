"""Runs the command line in a small repository of its own, for the tests of what it writes."""

import csv
from pathlib import Path

import pytest
import yaml
from PIL import Image
from skimage.data import astronaut

from masquerade.cli import main, photographs
from masquerade.params import overlays, yaml_files

ROOT = Path(__file__).parents[1]
FOLDER = {
    "path": "",
    "identity": "unknown",
    "validation_share": 0,
    "faces": "refuse",
    "alignment": "ffhq",
    "megapixels": 40,
    "detection_side": 640,
    "detection_score": 0.3,
    "turn": True,
    "smallest": 32,
}
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
    common = overlays.overlay(yaml_files.read(ROOT / "params.yaml"), yaml_files.read(ROOT / "scales" / "tiny.yaml"))
    matrix = {"train_on": "folder", "calibrate_on": "validation", "evaluate": {}}
    rooms = {"datasets": {"folder": FOLDER}, "backbones": {}, "judges": {}, "metrics": {}, "methods": METHODS}
    measure = {"batch": 8, "judges": []}
    common["caution"] = "Networks of a test."
    common["recovery"] |= {"judges": [], "cells": {}}
    common["attacks"] |= {"cells": {}}
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


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main.main([str(argument) for argument in arguments])
    return ended.value.code


def anonymize(root: Path, pictures: Path, output: Path, *more: object, method: str = "gaussian_noise") -> int:
    return run("anonymize", "--method", method, "--input", pictures, "--output", output, "--root", root, *more)


def report(output: Path) -> dict[str, dict[str, str]]:
    with (output / photographs.REPORT).open(encoding="utf-8", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}
