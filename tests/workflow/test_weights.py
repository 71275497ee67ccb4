"""The networks of a finished build are exported into weights/, and another build adopts them."""

import json

import pytest

from masquerade.params import overlays
from masquerade.params.paths import Paths
from masquerade.training import cards, checkpoints, pretrained

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
FILE = "checkpoints/tiny/{}.safetensors"
PRETRAINED = ("backbones/generator", "backbones/recognizer_b", "methods/riddle/0", "methods/cao21/0")
ABLATION = "ablations/ifadit/without_div/0"
"""A network that is trained although that of its method is pretrained."""


def test_exported_networks_replace_the_trainings_of_another_build(narrow):
    output = narrow.run("masquerade", "weights", "export")
    names = cards.list_names(narrow.path)
    assert {"generator", "recognizer_a", "attribute_classifier", "riddle", "cao21"} <= set(names)
    size = sum(cards.read_card(name, narrow.path).size for name in names)
    assert f"weights/: {size / 1e6:.1f} MB of at most {cards.LIMIT / 1e6:g}" in output
    assert cards.read_card("fit", narrow.path).quality["psnr"] > 0
    assert "the file of its card" in narrow.run("masquerade", "weights", "check")
    edit: dict = {}
    for name in names:
        room, module = cards.read_card(name, narrow.path).block.split(".")
        edit.setdefault(room, {})[module] = {"published": f"weights:{name}"}
    narrow.edit_params(lambda tree: tree.update(overlays.overlay(tree, edit)), "scales/tiny.yaml")
    table = Paths("tiny").backbones_table
    narrow.build(*map(FILE.format, (*PRETRAINED, ABLATION)), table)
    for name in PRETRAINED:
        _, metadata = checkpoints.load_checkpoint(narrow.path / FILE.format(name))
        card = cards.read_card(metadata[pretrained.PRETRAINED]["name"], narrow.path)
        assert metadata[pretrained.PRETRAINED]["sha256"] == card.sha256
    _, ablation = checkpoints.load_checkpoint(narrow.path / FILE.format(ABLATION))
    assert pretrained.PRETRAINED not in ablation
    report = json.loads((narrow.path / "checkpoints/tiny/backbones/generator.json").read_text())
    assert report["quality"] == cards.read_card("generator", narrow.path).quality
    page = (narrow.path / table).read_text()
    assert "`weights:generator`" in page
    assert "`riddle` (`weights:riddle`)" in page
    anonymized = Paths("tiny").anonymized.format(dataset="synthetic_hq", method="riddle", variant="default", seed=0)
    narrow.build(anonymized)
    assert "published in the repository" in narrow.run("masquerade", "lineage", "show", anonymized)
