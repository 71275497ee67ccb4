"""What comes from outside: files of weights, a published dataset, another program's images, a method of one file."""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from masquerade.pipeline.imported import pictures
from PIL import Image

import published
from repository import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture
def repository(fresh, tmp_path) -> Repository:
    """A fresh working copy whose parser comes from the registry."""
    repository = fresh.copy(tmp_path / "repository")
    repository.edit_params(lambda tree: tree["backbones"]["parsing"].update(published="asset:bisenet"))
    repository.edit_params(lambda tree: tree.update(papers=["identitydp"]))  # a small graph
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


def test_an_altered_asset_stops_only_the_jobs_that_need_it(narrow):
    narrow.edit_params(lambda tree: tree["backbones"]["parsing"].update(published="asset:bisenet"))
    file = narrow.path / "assets/bisenet/79999_iter.pth"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"cut")
    metrics = "results/tiny/metrics/synthetic_hq/blackout/control/0.json"
    (narrow.path / metrics).unlink()
    narrow.build(metrics)
    output = narrow.build("checkpoints/tiny/backbones/parsing.safetensors", fails=True)
    assert "'bisenet' is cut or altered" in output


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
    repository.edit_params(lambda tree: tree.update(papers=["identitydp"]))  # a small graph
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
    face_hashes = {hashlib.md5((repository.path / name).read_bytes()).hexdigest() for name in (ARCHIVE, CELL)}
    assert not face_hashes & in_remote(tmp_path), "the faces of real people stay"
    assert not face_hashes & {hashlib.md5(content).hexdigest() for content in repository.files(".dvc/cache").values()}
    assert not (clone.path / ARCHIVE).exists()
    assert (repository.path / ARCHIVE).is_file()
    assert list((repository.path / "mlruns").rglob("*.png")) == [], "MLflow shows no face of them"
    repository.edit_params(lambda tree: tree.update(share_originals=["celeba_hq"]))
    assert up_to_date in repository.snakemake("--dry-run", ARCHIVE, CELL), "the word makes nothing out of date"
    clone = pushed(repository, tmp_path / "clone")
    assert face_hashes <= in_remote(tmp_path)
    assert not (clone.path / "assets").exists(), "the photographs are no part of the build"
    assert up_to_date in clone.snakemake("--dry-run", ARCHIVE)
    assert (clone.path / ARCHIVE).read_bytes() == (repository.path / ARCHIVE).read_bytes()
    shutil.rmtree(repository.path / "assets")
    assert up_to_date in repository.snakemake("--dry-run", ARCHIVE), "built faces need no photographs"
    (repository.path / ARCHIVE).unlink()
    assert "assets/celeba_hq holds no CelebA-HQ-img" in repository.snakemake(ARCHIVE, fails=True)


SOURCE = "Hukkelås et al. 2019, program 1.0"
TITLE = "DeepPrivacy, official program"


def test_imported_pictures_fill_the_rows_of_their_method_and_are_shared_by_dvc(built, tmp_path):
    faces, program_output = tmp_path / "faces", tmp_path / "theirs"
    built.run("masquerade", "export-faces", str(faces), "--dataset", "synthetic_hq")
    program_output.mkdir()
    originals = sorted(faces.iterdir())
    for path in originals[1:]:  # the program detected no face in the first
        Image.fromarray(255 - np.asarray(Image.open(path))).save(program_output / path.name)
    command = (
        "masquerade",
        "import-method",
        str(program_output),
        "--name",
        "deepprivacy_official",
        "--title",
        TITLE,
        "--dataset",
        "synthetic_hq",
    )
    assert f"- {originals[0].stem}: no image" in built.run(*command, "--source", SOURCE, fails=True)
    built.run(*command, "--source", SOURCE, "--partial")
    expected = {f"{step}-synthetic_hq-deepprivacy_official-default-0" for step in ("imported", "measure", "evaluate")}
    out_of_date = built.out_of_date()
    assert {
        job for job in out_of_date if job.split("-")[0] not in {"table", "grid", "claims_table", "scores", "report"}
    } == expected
    assert "table-falco-table1" in out_of_date
    other_tables = {"table-lreorg-table6", "table-cao21-table4", "table-ifadit-recovery"}  # other methods, recoveries
    assert not other_tables & out_of_date

    built.edit_params(lambda tree: tree.update(papers=["falco"]))  # one table to build
    for path in (built.path / "reference/falco").iterdir():
        if path.stem != "table1":
            path.unlink()
    assert "jobs recorded" in built.snakemake("all")
    stored = built.path / "imported/tiny/synthetic_hq/deepprivacy_official/default.zip"
    place = "synthetic_hq/deepprivacy_official/default/0.json"
    cell = json.loads((built.path / "results/tiny/metrics" / place).read_text())
    assert cell["statement"]["imported"] == f"sha256:{pictures.sha256(stored)}"
    assert (cell["statement"]["faces"], cell["statement"]["refused"]) == (len(originals), 1)
    table = (built.path / "results/tiny/tables/falco/table1.md").read_text()
    assert "deepprivacy is not built yet" not in table
    assert f"imported = sha256:{pictures.sha256(stored)}, program = {SOURCE}" in table
    row = next(line for line in table.splitlines() if line.startswith(f"| {TITLE}"))
    assert row.count(f"({len(originals) - 1}/{len(originals)})") >= 4  # over the faces that were not refused

    built.commit("imported")
    built.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    built.commit("remote")
    built.run("dvc", "push")
    clone = built.clone(tmp_path / "clone")
    assert "Nothing to be done" in clone.snakemake("all")
    assert "up to date" in clone.run("dvc", "status")

    whole = stored.read_bytes()
    stored.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    output = built.snakemake("all", fails=True)
    assert "params.yaml names" in output
    assert "`dvc pull`" in output


def steps(page: str) -> list[list[str]]:
    """The texts in backquotes of each step."""
    listed = page.split("## Add a method")[1].split("\n## ")[0]
    return [re.findall(r"`([^`]+)`", step) for step in re.split(r"^\d\. ", listed, flags=re.MULTILINE)[1:]]


def test_the_example_is_a_method_of_forty_lines(root):
    assert len((root / "examples/own_method.py").read_text().splitlines()) <= 40


def test_a_method_of_one_file_reaches_a_row_of_a_table_in_the_five_steps_of_the_page(built):
    copy, template, contract, row, build = steps((built.path / "CONTRIBUTING.md").read_text())
    built.run(*copy[0].split())
    printed = built.run(*template[0].split())
    block = re.sub(r"kept:.*", "kept: 6", printed[printed.index("  mine:") :])
    built.edit("params.yaml", "\nmethods:\n", f"\nmethods:\n{block}")
    built.edit("scales/tiny.yaml", '"*/control", "gaussian', '"mine/*", "*/control", "gaussian')
    built.run(*contract[0].split())
    built.edit(row[0], "\nrows:\n", f"\nrows:\n  {row[1]}\n")
    table = build[0].split()[-1].replace("mini", "tiny")
    assert built.out_of_date() >= {
        f"{step}-synthetic_hq-mine-default-0" for step in ("anonymize", "measure", "evaluate")
    }
    built.build(table)
    measured = next(line for line in (built.path / table).read_text().splitlines() if line.startswith("| Mine"))
    assert len(re.findall(r"\d\.\d", measured)) >= 8, "of each column that the judges of this scale measure"
