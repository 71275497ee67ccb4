"""A published dataset in the graph: used when its files are placed, and out of date when their content changes."""

import os
import shutil

import numpy as np
import pytest

import published

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
ARCHIVE = "data/tiny/faces/celeba_hq.zip"


def test_a_dataset_that_is_placed_is_built_and_rebuilt_only_when_its_files_change(fresh, tmp_path):
    repository = fresh.copy(tmp_path / "repository")

    def add_dataset(tree):
        tree["datasets"]["celeba_hq"] = {"pictures": 3}
        tree["matrix"]["evaluate"]["celeba_hq"] = ["original/control"]

    repository.edit_params(add_dataset, "scales/tiny.yaml")
    assert ARCHIVE not in repository.snakemake("--dry-run", "data"), "skipped while it is not placed"
    pictures = [np.full((1024, 1024, 3), 40 * number, np.uint8) for number in range(3)]
    published.celeba_hq(
        repository.path / "assets/celeba_hq", repository.path / "assets/celeba", pictures, [1, 2, 3], [0, 1, 2]
    )
    assert ARCHIVE in repository.snakemake("--dry-run", "data")
    repository.snakemake(ARCHIVE)
    up_to_date = "Nothing to be done"
    assert up_to_date in repository.snakemake("--dry-run", ARCHIVE)
    picture = repository.path / "assets/celeba_hq/CelebAMask-HQ/CelebA-HQ-img/1.jpg"
    os.utime(picture)
    assert up_to_date in repository.snakemake("--dry-run", ARCHIVE)
    with picture.open("ab") as file:
        file.write(b"more")
    assert ".masquerade/datasets/celeba_hq.tsv" in repository.snakemake("--dry-run", ARCHIVE)
    repository.snakemake(ARCHIVE)
    repository.run("masquerade", "records", "save", "--partial")
    repository.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    repository.commit("CelebA-HQ")
    assert "pushed" in repository.run("dvc", "push")
    clone = repository.clone(tmp_path / "clone")
    assert not (clone.path / "assets").exists(), "the photographs are not shared"
    assert up_to_date in clone.snakemake("--dry-run", ARCHIVE)
    assert (clone.path / ARCHIVE).read_bytes() == (repository.path / ARCHIVE).read_bytes()
    shutil.rmtree(repository.path / "assets")
    assert up_to_date in repository.snakemake("--dry-run", ARCHIVE), "built faces need no photographs"
    (repository.path / ARCHIVE).unlink()
    assert "assets/celeba_hq holds no CelebA-HQ-img" in repository.snakemake(ARCHIVE, fails=True)
