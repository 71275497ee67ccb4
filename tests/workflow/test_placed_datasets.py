"""A published dataset in the graph: used when its files are placed, and out of date when their content changes."""

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import published
from repository import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
ARCHIVE, CELL = "data/tiny/faces/celeba_hq.zip", "data/tiny/anonymized/celeba_hq/original/control/0.zip"


def pushed(repository: Repository, to: Path) -> Repository:
    """Record what is built, push it, and return the clone of a colleague, who pulls."""
    repository.run("masquerade", "records", "save", "--partial")
    repository.commit("CelebA-HQ")
    assert "pushed" in repository.run("dvc", "push")
    return repository.clone(to)


def in_remote(folder: Path) -> set[str]:
    """The MD5 of every file in the remote."""
    return {path.parent.name + path.name for path in (folder / "remote/files/md5").rglob("*") if path.is_file()}


def test_a_placed_dataset_is_rebuilt_only_when_its_files_change_and_its_faces_leave_only_by_a_word(fresh, tmp_path):
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
    repository.snakemake(ARCHIVE, CELL)
    repository.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    clone = pushed(repository, tmp_path / "kept")
    kept = {hashlib.md5((repository.path / name).read_bytes()).hexdigest() for name in (ARCHIVE, CELL)}
    assert not kept & in_remote(tmp_path), "the faces of real people stay"
    assert not kept & {hashlib.md5(content).hexdigest() for content in repository.files(".dvc/cache").values()}
    assert not (clone.path / ARCHIVE).exists()
    assert (repository.path / ARCHIVE).is_file()
    assert list((repository.path / "mlruns").rglob("*.png")) == [], "MLflow shows no face of them"
    repository.edit_params(lambda tree: tree.update(share_originals=["celeba_hq"]))
    assert up_to_date in repository.snakemake("--dry-run", ARCHIVE, CELL), "the word makes nothing out of date"
    clone = pushed(repository, tmp_path / "clone")
    assert kept <= in_remote(tmp_path)
    assert not (clone.path / "assets").exists(), "the photographs are no part of the build"
    assert up_to_date in clone.snakemake("--dry-run", ARCHIVE)
    assert (clone.path / ARCHIVE).read_bytes() == (repository.path / ARCHIVE).read_bytes()
    shutil.rmtree(repository.path / "assets")
    assert up_to_date in repository.snakemake("--dry-run", ARCHIVE), "built faces need no photographs"
    (repository.path / ARCHIVE).unlink()
    assert "assets/celeba_hq holds no CelebA-HQ-img" in repository.snakemake(ARCHIVE, fails=True)
