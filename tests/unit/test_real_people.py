"""The faces of real people leave this machine only if `share_originals` in params.yaml names their dataset."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from masquerade.cli import score
from masquerade.core.errors import ParameterError
from masquerade.lineage import versioning
from masquerade.params import loading, sharing
from masquerade.params.overlays import format_yaml, read_yaml

REAL = {"casia_webface", "celeba", "celeba_hq", "ffhq", "folder", "lfw"}


@pytest.fixture
def parameters(root, tmp_path):
    """A function of changes to params.yaml, at scale `tiny`, that loads it."""
    (tmp_path / "scales").mkdir()
    (tmp_path / "scales/tiny.yaml").write_bytes((root / "scales/tiny.yaml").read_bytes())

    def load(change=lambda tree: None):
        tree = read_yaml(root / "params.yaml")
        change(tree)
        (tmp_path / "params.yaml").write_text(format_yaml(tree))
        return loading.load(tmp_path, "tiny")

    return load


def test_every_dataset_of_real_people_is_private_unless_params_yaml_names_it(parameters):
    assert parameters().private == REAL
    assert parameters(lambda tree: tree.update(share_originals=["lfw", "folder"])).private == REAL - {"lfw", "folder"}
    with pytest.raises(ParameterError, match=r"share_originals names 'lwf', which is not defined\. .*lfw"):
        parameters(lambda tree: tree.update(share_originals=["lwf"]))


def test_an_evaluated_dataset_is_private_if_galleries_show_private_people():
    assert sharing.list_private_datasets((), "celeba_hq", ["synthetic_wild"]) == REAL | {"synthetic_wild"}
    assert sharing.list_private_datasets(["celeba_hq"], "celeba_hq", ["synthetic_wild"]) == REAL - {"celeba_hq"}


@pytest.mark.parametrize(("path", "expected"), [
    ("data/mini/faces/folder.zip", True), ("data/mini/faces/folder.parquet", True),
    ("data/mini/latents/folder.safetensors", True), ("data/mini/measurements/folder/source.parquet", True),
    ("data/mini/attackers/under/folder/falco/m_0/0.zip", True), ("/lab/data/mini/faces/folder.zip", True),
    ("data/mini/faces/synthetic_hq.zip", False), ("results/mini/metrics/folder/falco/m_0/0.json", False),
    ("data/mini/fakes.safetensors", False), ("checkpoints/mini/methods/falco/0.safetensors", False),
])  # fmt: skip
def test_all_that_is_made_of_single_faces_of_a_private_dataset_stays(path, expected):
    assert sharing.is_private(path, {"folder"}) == expected


def test_a_job_that_is_told_nothing_treats_all_real_people_as_private(monkeypatch):
    monkeypatch.delenv(sharing.VARIABLE, raising=False)
    assert sharing.read_declared() == REAL
    monkeypatch.setenv(sharing.VARIABLE, "")
    assert sharing.read_declared() == set()


def test_dvcignore_in_git_names_the_files_of_every_private_dataset(root, tmp_path):
    (tmp_path / ".dvcignore").write_bytes((root / ".dvcignore").read_bytes())
    assert not sharing.write_dvcignore(sharing.list_private_datasets(), tmp_path)
    assert (tmp_path / ".dvcignore").read_bytes() == (root / ".dvcignore").read_bytes()


def test_dvc_that_has_read_the_old_dvcignore_is_stopped(tmp_path, monkeypatch):
    (tmp_path / ".dvcignore").write_text(".venv\n")
    monkeypatch.setenv(versioning.OF_DVC, "build@tiny")
    with pytest.raises(versioning.NotRecorded, match=r"share_originals .*run the same command again"):
        versioning.ignore_private(["folder"], tmp_path)
    versioning.ignore_private(["folder"], tmp_path)
    assert (tmp_path / ".dvcignore").read_text().splitlines()[-2:] == ["/data/**/folder/", "/data/**/folder.*"]
    versioning.ignore_private([], tmp_path)  # the word was given: nothing leaves that it does not name
    assert "folder" not in (tmp_path / ".dvcignore").read_text()


@pytest.fixture
def run(tmp_path):
    """Runs a program in a folder below tmp_path, and returns what it prints. The repository there has a DVC remote."""

    def run(*command, at="repository"):
        command = [sys.executable, "-m", "dvc", *command[1:]] if command[0] == "dvc" else command
        done = subprocess.run(command, cwd=tmp_path / at, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "repository").mkdir()
    run("git", "init", "--quiet")
    run("dvc", "init", "--quiet")
    run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    return run


def holders(folder, *contents):
    """The files below a folder that hold one of these texts."""
    every = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in every if any(content in path.read_text() for content in contents)]


def test_dvc_push_sends_no_imported_images_of_a_private_dataset(run, tmp_path):
    for dataset, pushed in (("folder", False), ("synthetic_hq", True)):
        file = Path(f"imported/tiny/{dataset}/theirs.zip")
        (tmp_path / "repository" / file).parent.mkdir(parents=True)
        (tmp_path / "repository" / file).write_text(f"images of {dataset}")
        score.add_to_dvc(tmp_path / "repository", file, pushed)
    run("dvc", "push")
    assert len(holders(tmp_path / "remote", "images of synthetic_hq")) == 1
    assert holders(tmp_path / "remote", "images of folder") == []
    assert "up to date" in run("dvc", "status")


def test_dvc_push_sends_no_file_of_a_private_dataset_and_pull_and_checkout_leave_them_alone(root, run, tmp_path):
    repository = tmp_path / "repository"
    private = ("faces/folder.zip", "anonymized/folder/original/control/0.zip", "measurements/folder/source.parquet")
    for name in (*private, "faces/synthetic_hq.zip"):
        (repository / "data/tiny" / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / "data/tiny" / name).write_text(f"bytes of {name}")
    (repository / ".dvcignore").write_bytes((root / ".dvcignore").read_bytes())
    (repository / "dvc.yaml").write_text("stages: {build: {cmd: 'true', outs: [data/tiny: {persist: true}]}}")
    run("dvc", "commit", "--force", "build")
    run("git", "add", "--all")
    run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "--message", "built")
    run("dvc", "push")
    assert holders(tmp_path / "remote", *private) == []
    assert holders(repository / ".dvc/cache", *private) == [], "a lab may share it"
    assert len(holders(tmp_path / "remote", "bytes of faces/synthetic_hq.zip")) == 1
    run("git", "clone", "--quiet", str(repository), "clone", at=".")
    run("dvc", "pull", at="clone")
    files = {path.relative_to(tmp_path / "clone/data/tiny").as_posix()
             for path in (tmp_path / "clone/data/tiny").rglob("*") if path.is_file()}  # fmt: skip
    assert files == {"faces/synthetic_hq.zip"}
    assert "up to date" in run("dvc", "status", at="clone")
    run("dvc", "checkout")
    assert all((repository / "data/tiny" / name).is_file() for name in private)


@pytest.mark.parametrize(("faces", "shown"), [("folder", 0), ("synthetic_hq", 1)])
def test_mlflow_gets_no_picture_from_a_job_that_reads_private_faces(tmp_path, faces, shown):
    script = """
import numpy as np
from masquerade.pipeline import program
given = program.parse_arguments("A toy.", files=("faces",))
def work(run):
    given.outputs[0].write_text("made")
    run.log_image("sample", np.zeros((8, 8, 3), np.uint8))
program.main("toy", given, work)
"""
    archive = tmp_path / f"data/tiny/faces/{faces}.zip"
    archive.parent.mkdir(parents=True)
    archive.write_text("faces")
    command = [sys.executable, "-c", script, "--params", json.dumps({}), "--faces", str(archive.relative_to(tmp_path))]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MASQUERADE")}
    done = subprocess.run(
        [*command, "--outputs", "out.txt"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / ".masquerade/runs").rglob("*.png"))) == shown
    assert ('"event": "artifact"' in next((tmp_path / ".masquerade/runs").glob("*.jsonl")).read_text()) == bool(shown)
