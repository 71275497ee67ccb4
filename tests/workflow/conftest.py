"""The real Snakefile and dvc.yaml, at `tiny` scale, in a working copy: built once, then copied by each test."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

BIN = Path(sys.executable).parent


class Repository:
    """A working copy and what a user would type in it."""

    def __init__(self, path: Path):
        self.path = path
        removed = ("MASQUERADE_BUILD", "MLFLOW_TRACKING_URI", "DVC_STAGE", "PYTHONDONTWRITEBYTECODE")
        kept = {key: value for key, value in os.environ.items() if key not in removed}
        # this working copy's own sources, not the installed ones
        self.environment = kept | {
            "PATH": f"{BIN}{os.pathsep}{kept['PATH']}",
            "PYTHONPATH": str(path / "src"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    def run(self, *command: str, fails: bool = False) -> str:
        done = subprocess.run(command, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{' '.join(command)} -> {done.returncode}\n{output[-6000:]}"
        return output

    def snakemake(self, *arguments: str, fails: bool = False) -> str:
        return self.run("snakemake", "--cores", "2", *arguments, fails=fails)

    def git(self, *arguments: str) -> str:
        return self.run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments)

    def commit(self, message: str = "state") -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def out_of_date(self) -> set[str]:
        """The jobs that Snakemake would run, by their DVC stage names."""
        program = (
            "import json; from masquerade import versioning\n"
            "print('JOBS', json.dumps(sorted(versioning.stage_name(job) for job in versioning.graph()[1])))"
        )
        output = self.run(sys.executable, "-c", program)
        return set(json.loads(output.split("JOBS ")[-1].splitlines()[0]))

    def edit_params(self, change, file: str = "params.yaml") -> None:
        tree = yaml.safe_load((self.path / file).read_text())
        change(tree)
        (self.path / file).write_text(yaml.safe_dump(tree, sort_keys=False))

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.path / file).read_text()
        assert old in text, f"{old!r} is not in {file}"
        (self.path / file).write_text(text.replace(old, new, 1))

    def copy(self, to: Path) -> "Repository":
        shutil.copytree(self.path, to, symlinks=True)
        return Repository(to)


@pytest.fixture(scope="session")
def fresh(root, tmp_path_factory) -> Repository:
    """The sources as they are in the working tree, at tiny scale, nothing built."""
    path = tmp_path_factory.mktemp("fresh") / "repository"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file() and name != "dvc.lock":  # that is of another build
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, path / name)
    repository = Repository(path)
    repository.edit("params.yaml", "scale: mini", "scale: tiny")
    repository.git("init", "--quiet", "--initial-branch", "main")
    repository.run("python", "workflow/scripts/dvc_yaml.py")
    repository.commit("tiny")
    return repository


@pytest.fixture(scope="session")
def built_once(fresh, tmp_path_factory) -> Repository:
    """The whole tiny matrix, built from nothing and recorded by DVC."""
    repository = fresh.copy(tmp_path_factory.mktemp("built") / "repository")
    repository.build_output = repository.snakemake("all")
    repository.commit("built")
    return repository


@pytest.fixture
def built(built_once, tmp_path) -> Repository:
    """A copy of the built working copy, free to be changed. Its files keep their times, as a clone's do not."""
    return built_once.copy(tmp_path / "repository")
