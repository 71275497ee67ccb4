"""A published dataset in the graph: it is there when its files are, and content decides what is out of date."""

import os
import shutil

import numpy as np
import pytest

import published
from repository import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
ARCHIVE = "data/tiny/faces/celeba_hq.zip"
STAGE = "faces-celeba_hq"


def test_a_dataset_that_is_placed_is_built_and_rebuilt_only_when_its_files_change(fresh, tmp_path):
    here = fresh.copy(tmp_path / "repository")

    def ask(tree):
        tree["datasets"]["celeba_hq"] = {"pictures": 3}
        tree["matrix"]["evaluate"]["celeba_hq"] = ["original/control"]

    here.edit_params(ask, "scales/tiny.yaml")
    assert ARCHIVE not in here.snakemake("--dry-run", "data"), "not placed: skipped, and nothing stops"
    pictures = [np.full((1024, 1024, 3), 40 * number, np.uint8) for number in range(3)]
    published.celeba_hq(here.path / "assets/celeba_hq", here.path / "assets/celeba", pictures, [1, 2, 3], [0, 1, 2])
    assert ARCHIVE in here.snakemake("--dry-run", "data")
    here.snakemake(ARCHIVE)
    up_to_date = "Nothing to be done"
    assert up_to_date in here.snakemake("--dry-run", ARCHIVE)
    picture = here.path / "assets/celeba_hq/CelebAMask-HQ/CelebA-HQ-img/1.jpg"
    os.utime(picture)
    assert up_to_date in here.snakemake("--dry-run", ARCHIVE)
    with picture.open("ab") as file:
        file.write(b"more")
    assert ".masquerade/datasets/celeba_hq.tsv" in here.snakemake("--dry-run", ARCHIVE)
    here.run("python", "workflow/scripts/dvc_yaml.py")
    here.commit("CelebA-HQ")
    here.snakemake(ARCHIVE)
    here.run("dvc", "commit", "--force", "code", "params", STAGE)
    here.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    here.commit("recorded")
    assert "pushed" in here.run("dvc", "push", "code", STAGE)
    here.git("clone", "--quiet", str(here.path), str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone", here.environment)
    clone.run("dvc", "pull", "code", STAGE)
    assert not (clone.path / "assets").exists(), "the photographs are not handed on"
    assert up_to_date in clone.snakemake("--dry-run", ARCHIVE)
    assert (clone.path / ARCHIVE).read_bytes() == (here.path / ARCHIVE).read_bytes()
    shutil.rmtree(here.path / "assets")
    assert up_to_date in here.snakemake("--dry-run", ARCHIVE), "the faces are there, and the photographs may not be"
    (here.path / ARCHIVE).unlink()
    assert "assets/celeba_hq holds no CelebA-HQ-img" in here.snakemake(ARCHIVE, fails=True)
