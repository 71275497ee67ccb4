"""The repository is in order: format, lint, environment, license, and no path of one machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import generated
from masquerade.cli import doctor
from masquerade.training import cards
from repository import sources

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def run(*command: str, cwd: Path) -> str:
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def lint_commands() -> list[str]:
    """The commands of `make lint` but for the last one, which runs tests."""
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    commands = [line.strip() for line in recipe.splitlines()]
    return [command for command in commands if "pytest" not in command]


def test_the_hooks_before_a_commit_run_the_commands_of_make_lint(root):
    hooks = yaml.safe_load((root / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == lint_commands()


def test_hosted_ci_runs_the_commands_of_the_readme(root):
    job = yaml.safe_load((root / ".github/workflows/test.yml").read_text())["jobs"]["make"]
    commands = job["strategy"]["matrix"]["command"]
    assert commands == ["make lint", "make layouts-test", "make test", "make reproduce"]
    readme = (root / "README.md").read_text()
    assert [command for command in commands[2:] if command not in readme] == []


def pins(lines: list[str]) -> dict[str, str]:
    pairs = [line.strip().removeprefix("- ").split("==") for line in lines if "==" in line]
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pairs}


def locked(root: Path, lock: str) -> list[str]:
    return (root / lock).read_text().splitlines()


@pytest.mark.parametrize("name", generated.FILES)
def test_a_file_that_follows_from_others_is_theirs(root, name):
    assert (root / name).read_text() == generated.FILES[name](root), "run `make generated`"


def test_conda_describes_the_same_environment(root):
    conda = yaml.safe_load((root / "environment.yml").read_text())["dependencies"]
    listed = next(item["pip"] for item in conda if isinstance(item, dict))
    assert pins(listed) == pins(locked(root, doctor.LOCK) + locked(root, doctor.CUDA_LOCK))
    assert "python=3.11" in conda
    assert listed[-1] == "--editable ."


def test_every_requirement_is_pinned_exactly(root):
    for lock, least in ((doctor.LOCK, 100), (doctor.CUDA_LOCK, 10), ("requirements-docs.lock", 10)):
        lines = [line for line in locked(root, lock) if line and line[0] != "#"]
        assert len(pins(lines)) == len(lines) > least


def test_installed_packages_are_those_of_the_locks(root):
    from importlib.metadata import distributions

    installed = {re.sub(r"[-_.]+", "-", item.name).lower(): item.version.split("+")[0] for item in distributions()}
    locked_pins = pins(locked(root, doctor.LOCK))
    assert {name: installed.get(name) for name in locked_pins} == locked_pins


# written in pieces, so that this file does not match itself
FORBIDDEN = re.compile(
    "|".join(["/wor" + "k/", r"/hom" + r"e/\w", r"/User" + r"s/\w", "index" + "-url", "fil" + "e://[a-z/]"])
)


def test_no_file_holds_a_path_of_one_machine(root):
    hits = []
    for path in [root / name for name in sources(root)]:
        if path.suffix in {".py", ".smk", ".md", ".yaml", ".yml", ".toml", ".lock", ""}:
            text = path.read_text(encoding="utf-8", errors="ignore")
            hits += [f"{path.relative_to(root)}: {match.group()}" for match in FORBIDDEN.finditer(text)]
    assert not hits


def test_tracked_files_are_small(root):
    head = root / "src/drawnpeople/head.npz"  # its bytes are held by test_people_and_heads.py
    files = [root / name for name in sources(root) if root / name != head]
    limited = [path for path in files if root / cards.FOLDER not in path.parents]  # these have a limit together
    assert head.stat().st_size < 2_000_000
    assert [path for path in limited if path.stat().st_size > 200_000] == []
