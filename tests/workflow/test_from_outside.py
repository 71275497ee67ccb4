"""What comes from outside: files of weights, a published dataset, another program's images, a method of one file."""

import csv
import hashlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import published
from masquerade.core import fingerprints
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


PROGRAMS = "scales/imported/tiny.yaml"


def run_example(built: Repository) -> list[str]:
    """Run examples/score.md as it stands. Returns what each command printed."""
    page = (built.path / "examples/score.md").read_text(encoding="utf-8")
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (built.path / "my_program.py").write_text(program)
    lines = [line for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    return [built.run(*shlex.split(line)) for line in lines]


def test_the_example_scores_three_programs_and_finds_each_where_it_belongs(built, tmp_path):
    command = ("masquerade", "score", "my_blur", "made")
    *_, printed = run_example(built)
    assert "my_copy at scale tiny" in printed
    assert re.search(r"Naive attacker \(%\) +\d", printed)
    parts = json.loads((built.path / "faces/faces.json").read_text())["names"]
    assert all(parts[part] for part in ("test", "attackers", "methods"))

    with (built.path / "results/tiny/leaderboard.csv").open(encoding="utf-8") as file:
        records = [record for record in csv.DictReader(file) if record["measured"]]
    for column, name in (
        ("Naive attacker (%)", "my_copy"), ("Perceptual distance", "my_noise"), ("KID-MobileNetV2", "my_noise")
    ):  # fmt: skip
        ranked = [record for record in records if record["column"] == column and record["rank_first"]]
        if column == "KID-MobileNetV2":  # networks that hardly learned have a larger one
            ranked = [record for record in ranked if record["method"] == "imported"]
        largest = max(float(record["measured"]) for record in ranked)
        [own] = [record for record in ranked if record["variant"] == name]
        assert float(own["measured"]) == largest, f"{name} is not the last of {column}"
    page = (built.path / "results/tiny/scores/my_blur.md").read_text()
    assert "# Score of My blur" in page
    assert f"{len(parts['test'])} of {len(parts['test'])} test faces have an image" in page
    assert (built.path / "results/tiny/scores/my_blur.png").is_file()
    shown = built.run("masquerade", "lineage", "show", "attackers/leaderboard:imported/my_noise:KID-MobileNetV2")
    assert "imported/tiny/synthetic_hq/my_noise.zip" in shown

    kept = [built.path / "imported/tiny/synthetic_hq/my_blur.zip", built.path / PROGRAMS]
    before = [path.read_bytes() for path in kept]
    assert "Give --replace" in built.run(*command, fails=True)
    refused = f"{parts['test'][0]}.png"
    shutil.copy(built.path / "faces" / refused, built.path / "made" / refused)
    assert "an original, unchanged" in built.run(*command, "--replace", fails=True)
    (built.path / "made" / refused).unlink()  # the program found no face in it
    assert f"- {parts['test'][0]} in made: no image" in built.run(*command, "--replace", fails=True)
    assert [path.read_bytes() for path in kept] == before
    built.run(*command, "--replace", "--partial")
    assert (
        f"{len(parts['test']) - 1} of {len(parts['test'])} test"
        in (built.path / "results/tiny/scores/my_blur.md").read_text()
    )

    for name in ("my_noise", "my_copy"):  # the table of one program is enough
        built.edit_params(lambda tree, name=name: tree["methods"]["imported"]["variants"].pop(name), PROGRAMS)
    built.edit_params(lambda tree: tree.update(papers=["falco"]))
    for path in (built.path / "reference/falco").iterdir():
        if path.stem != "table1":
            path.unlink()
    assert "jobs recorded" in built.snakemake("all")
    stored = built.path / "imported/tiny/synthetic_hq/my_blur.zip"
    table = (built.path / "results/tiny/tables/falco/table1.md").read_text()
    assert f"imported = sha256:{fingerprints.sha256(stored)}, program = this page" in table
    built.commit("imported")
    built.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    built.commit("remote")
    built.run("dvc", "push")
    clone = built.clone(tmp_path / "clone")
    assert "Nothing to be done" in clone.snakemake("all")
    whole = stored.read_bytes()
    stored.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    output = built.snakemake("all", fails=True)
    assert "which the parameters do not name" in output
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
