"""The networks of a finished build are exported into weights/, and another build adopts them."""

import json

import pytest
import yaml

from masquerade.params import overlays
from masquerade.params.paths import Paths
from masquerade.training import adoption, cards, checkpoints

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def test_exported_networks_replace_every_training_of_another_build(built):
    output = built.run("masquerade", "weights", "export")
    names = cards.names(built.path)
    assert {"generator", "recognizer_a", "attribute_classifier", "riddle", "cao21"} <= set(names)
    assert f"weights/: {sum(cards.read(name, built.path).size for name in names) / 1e6:.1f} MB of at most 150" in output
    assert "figures of the backbones are the same" in output
    assert cards.read("fit", built.path).quality["psnr"] > 0
    assert "the file of its card" in built.run("masquerade", "weights", "check")
    edit = yaml.safe_load(built.run("masquerade", "weights", "adopt"))
    built.edit_params(lambda tree: tree.update(overlays.overlay(tree, edit)), "scales/tiny.yaml")
    table = Paths("tiny").backbones_table
    built.snakemake("backbones", "train", table)
    for name in ("backbones/generator", "backbones/recognizer_b", "methods/riddle/0", "methods/cao21/0"):
        _, facts = checkpoints.load_checkpoint(built.path / f"checkpoints/tiny/{name}.safetensors")
        card = cards.read(facts[adoption.ADOPTED]["name"], built.path)
        assert facts[adoption.ADOPTED]["sha256"] == card.sha256
    _, ablation = checkpoints.load_checkpoint(
        built.path / "checkpoints/tiny/ablations/ifadit/without_div/0.safetensors"
    )
    assert adoption.ADOPTED not in ablation
    report = json.loads((built.path / "checkpoints/tiny/backbones/generator.json").read_text())
    assert report["quality"] == cards.read("generator", built.path).quality
    page = (built.path / table).read_text()
    assert "`weights:generator`" in page
    assert "`riddle` (`weights:riddle`)" in page
    anonymized = Paths("tiny").anonymized.format(dataset="synthetic_hq", method="riddle", variant="default", seed=0)
    built.snakemake(anonymized)
    assert "published in the repository" in built.run("masquerade", "lineage", "show", anonymized)
