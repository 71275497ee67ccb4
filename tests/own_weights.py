"""A repository in which networks are trained and exported, and one that adopts them, for tests of weights/."""

import json
import shutil
from pathlib import Path

import torch
import yaml
from safetensors import safe_open

import kit
from masquerade import faces
from masquerade.core import discovery, fingerprints
from masquerade.lineage import provenance
from masquerade.params import loading, overlays
from masquerade.params.paths import Paths
from masquerade.pipeline import weights_export

ROOT = Path(__file__).parents[1]
BACKBONES, METHODS = ("generator", "identity", "inversion"), ("identitydp",)
ADOPTED = {
    "backbones": {name: {"published": f"weights:{name}"} for name in BACKBONES},
    "methods": {name: {"published": f"weights:{name}"} for name in METHODS},
}


def job_of(root: Path, cls: type, checkpoint: Path, base: Path | None = None):
    paths = Paths("tiny")
    backbones = {name: root / paths.backbone.format(backbone=name) for name in cls.needs}
    faces_file = root / paths.faces.format(dataset="synthetic_hq")
    return kit.job(checkpoint.parent, checkpoint.stem, backbones, faces=faces_file, base=base, people=cls.people)


def record(root: Path, *outputs: str) -> None:
    """The circumstances of a job, as its program writes them."""
    hashes = {path: fingerprints.md5(root / path) for path in outputs}
    content = {"outputs": hashes, "commit": "c" * 40, "seconds": 5400.0, "machine": provenance.describe_machine()}
    file = root / provenance.circumstances_path(outputs[0])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def parameters_into(root: Path) -> None:
    shutil.copy(ROOT / "params.yaml", root)
    shutil.copytree(ROOT / "scales", root / "scales")


def train_and_export(root: Path) -> None:
    """A repository in which some networks of the scale tiny were trained and exported."""
    parameters_into(root)
    parameters, paths = loading.load(root, "tiny"), Paths("tiny")
    archive = root / paths.faces.format(dataset="synthetic_hq")
    archive.parent.mkdir(parents=True)
    dataset = discovery.load("faces", "synthetic_hq")(parameters.datasets["synthetic_hq"])
    faces.build(dataset, archive, parameters.image.size, 0, parameters.people.model_dump())
    for name in BACKBONES:
        backbone = discovery.load("backbones", name)(parameters.backbones[name])
        outputs = paths.backbone.format(backbone=name), paths.backbone_quality.format(backbone=name)
        backbone.build(job_of(root, type(backbone), root / outputs[0]), root / outputs[1])
        record(root, *outputs)
    for name in METHODS:
        cls, output = discovery.load("methods", name), paths.method.format(method=name, seed=0)
        cls.train(parameters.methods[name].params, job_of(root, cls, root / output))
        record(root, output)
    weights_export.export(root, "tiny", [*BACKBONES, *METHODS])


def adopting_repository(trained: Path, root: Path, monkeypatch) -> Path:
    """A repository that has the weights, adopts them at the scale tiny, and has built nothing but faces."""
    root.mkdir()
    parameters_into(root)
    shutil.copytree(trained / "weights", root / "weights")
    shutil.copytree(trained / "data", root / "data")
    (root / "reference").symlink_to(ROOT / "reference")
    edit(root, ADOPTED)
    monkeypatch.chdir(root)
    return root


def edit(root: Path, over: dict) -> None:
    """Put an overlay on scales/tiny.yaml."""
    file = root / "scales/tiny.yaml"
    file.write_text(yaml.safe_dump(overlays.overlay(overlays.read_yaml(file), over)))


def adopt_backbone(root: Path, name: str) -> tuple[Path, dict]:
    """The checkpoint and the report of a backbone that the rule of the graph adopts."""
    backbone = discovery.load("backbones", name)(loading.load(root, "tiny").backbones[name])
    checkpoint = root / Paths("tiny").backbone.format(backbone=name)
    report = checkpoint.with_suffix(".json")
    backbone.build(job_of(root, type(backbone), checkpoint), report)
    return checkpoint, json.loads(report.read_text())


def tensors_of(path: Path) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
