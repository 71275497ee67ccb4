"""Files from outside in the graph: a missing file stops only the builds that need it, before any job runs."""

import json
from pathlib import Path

import pytest

from repository import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture
def repository(fresh, tmp_path) -> Repository:
    """A fresh working copy whose parser comes from the registry."""
    repository = fresh.copy(tmp_path / "repository")
    repository.edit_params(lambda tree: tree["backbones"]["parsing"].update(published="asset:bisenet"))
    return repository


def test_a_missing_asset_stops_the_build_with_advice_before_any_job(repository):
    output = repository.snakemake("all", fails=True)
    assert "assets/bisenet/79999_iter.pth is missing" in output
    assert "`masquerade assets fetch bisenet`" in output
    assert "MissingInput" not in output
    assert not [path for path in Path(repository.path, "data").rglob("*") if path.is_file() and path.name != ".gitkeep"]


def test_the_graph_is_shown_without_its_assets(repository):
    assert "backbone" in repository.snakemake("--dry-run", "--quiet", "rules", "--", "all")
    parts = json.loads(Path(repository.path, ".masquerade/assets/bisenet.json").read_text())
    assert parts["79999_iter.pth"].startswith("468e13ca")


def test_an_altered_asset_stops_only_the_jobs_that_need_it(repository):
    file = Path(repository.path, "assets/bisenet/79999_iter.pth")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"cut")
    repository.snakemake("--", "data/tiny/faces/synthetic_wild.zip")
    assert "'bisenet' is cut or altered" in repository.snakemake("backbones", fails=True)
