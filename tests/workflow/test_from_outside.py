"""What comes from outside: files of weights, a published dataset, another program's images, a method of one file."""

import csv
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

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
PROGRAM = """
import sys
import numpy as np
from PIL import Image, ImageFilter

def blur(images, seed):
    return [np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(4))) for image in images]

def draw_noise(images, seed):
    return np.random.default_rng(seed).integers(0, 256, images.shape, dtype=np.uint8)

if __name__ == "__main__":  # a copy with a little noise, which hides nobody
    original = np.asarray(Image.open(sys.argv[1])).astype(int)
    noise = np.random.default_rng(0).normal(0, 12, original.shape)
    Image.fromarray((original + noise).clip(0, 255).astype(np.uint8)).save(sys.argv[2])
"""


def test_programs_are_scored_by_folder_function_and_command_and_found_where_they_belong(built, tmp_path):
    faces, results = tmp_path / "faces", tmp_path / "results"
    (built.path / "program.py").write_text(PROGRAM)
    built.run("masquerade", "export-faces", "--to", str(faces))
    assert "masquerade score NAME RESULTS" in (faces / "README.txt").read_text()
    parts = json.loads((faces / "faces.json").read_text())["ids"]
    assert all(parts[part] for part in ("test", "attackers", "methods"))
    results.mkdir()
    command = ("masquerade", "score", "blur", str(results), "--title", "Their blur", "--source", "They 2020")
    for path in faces.glob("*.png"):
        shutil.copy(path, results)
    assert "an original, unchanged" in built.run(*command, fails=True)
    for path in results.iterdir():
        Image.open(path).filter(ImageFilter.GaussianBlur(4)).save(path)
    (results / f"{parts['test'][0]}.png").unlink()  # the program found no face in it
    assert f"- {parts['test'][0]}: no image" in built.run(*command, fails=True)
    assert not (built.path / "imported").exists()
    built.run(*command, "--partial")
    built.run("masquerade", "score", "noise", "--call", "program:draw_noise")
    copying = f"{sys.executable} program.py {{input}} {{output}}"
    printed = built.run("masquerade", "score", "copies", "--run", copying, "--near", "0")
    assert re.search(r"copies\W+\d", printed)
    assert "Give --replace" in built.run(*command, "--partial", fails=True)

    with (built.path / "results/tiny/leaderboard.csv").open(encoding="utf-8") as file:
        records = [record for record in csv.DictReader(file) if record["method"] == "imported"]
    numbers = {(record["variant"], record["column"]): record for record in records if record["measured"]}

    def find_worst(column: str, largest: bool) -> str:
        values = {name: float(numbers[name, column]["measured"]) for name in ("blur", "noise", "copies")}
        return (max if largest else min)(values, key=values.__getitem__)

    assert find_worst("Naive attacker (%)", largest=True) == "copies"
    assert find_worst("KID", largest=True) == find_worst("LPIPS", largest=True) == "noise"
    page = (built.path / "results/tiny/scores/blur.md").read_text()
    assert "# Score of Their blur" in page
    assert f"{len(parts['test']) - 1} of {len(parts['test'])} test faces have an image" in page
    assert (built.path / "results/tiny/scores/blur.png").is_file()
    shown = built.run("masquerade", "lineage", "show", "attackers/leaderboard:imported/noise:KID")
    assert "imported/tiny/synthetic_hq/noise.zip" in shown

    for name in ("noise", "copies"):  # the table of one program is enough
        built.edit_params(lambda tree, name=name: tree["methods"]["imported"]["variants"].pop(name), PROGRAMS)
    built.edit_params(lambda tree: tree.update(papers=["falco"]))
    for path in (built.path / "reference/falco").iterdir():
        if path.stem != "table1":
            path.unlink()
    assert "jobs recorded" in built.snakemake("all")
    stored = built.path / "imported/tiny/synthetic_hq/blur.zip"
    table = (built.path / "results/tiny/tables/falco/table1.md").read_text()
    assert f"imported = sha256:{fingerprints.sha256(stored)}, program = They 2020" in table
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
