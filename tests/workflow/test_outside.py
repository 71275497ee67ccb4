"""Files from outside in the graph: what is missing stops a build before anything runs, and stops no other."""

import json
from pathlib import Path

import pytest

from repository import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture
def asking(fresh, tmp_path) -> Repository:
    """A fresh working copy whose parser comes from the registry."""
    repository = fresh.copy(tmp_path / "repository")
    repository.edit_params(lambda tree: tree["backbones"]["parsing"].update(published="asset:bisenet"))
    return repository


def test_a_missing_asset_stops_the_build_with_what_to_do_before_anything_runs(asking):
    told = asking.snakemake("all", fails=True)
    assert "assets/bisenet/79999_iter.pth is missing" in told
    assert "`masquerade assets fetch bisenet`" in told
    assert "MissingInput" not in told
    assert not [path for path in Path(asking.path, "data").rglob("*") if path.is_file() and path.name != ".gitkeep"]


def test_the_graph_can_be_seen_without_its_assets(asking):
    assert "backbone" in asking.snakemake("--dry-run", "--quiet", "rules", "--", "all")
    parts = json.loads(Path(asking.path, ".masquerade/assets/bisenet.json").read_text())
    assert parts["79999_iter.pth"].startswith("468e13ca")
    asking.run("python", "workflow/scripts/dvc_yaml.py")
    assert "- .masquerade/assets/bisenet.json:" in Path(asking.path, "dvc.yaml").read_text()


def test_an_altered_asset_stops_what_needs_it_and_nothing_else(asking):
    file = Path(asking.path, "assets/bisenet/79999_iter.pth")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"cut")
    asking.snakemake("--", "data/tiny/faces/synthetic_wild.zip")
    assert "'bisenet' is cut or altered" in asking.snakemake("backbones", fails=True)
