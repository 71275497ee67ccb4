"""A wheel, built from an sdist and installed in an empty environment, hides a face and brings it back.

It runs in an empty folder, without a clone, a home that can be written, and, where the system allows it, a network.
"""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import portrait

pytestmark = [pytest.mark.setup, pytest.mark.slow]
LIMIT = 100_000_000
"""Bytes of a wheel."""


class Environment:
    """A virtual environment in ``folder``, with the registry of the user's pip."""

    def __init__(self, folder: Path):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.bin = folder / "bin"
        self.variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(self, program: str, *words: object, offline: bool = False, cwd: Path | None = None, status: int = 0) -> str:
        isolated = ["unshare", "--net"] if offline and os.geteuid() == 0 and shutil.which("unshare") else []
        command = [*isolated, str(self.bin / program), *map(str, words)]
        done = subprocess.run(command, cwd=cwd, env=self.variables, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        assert done.returncode == status, f"{' '.join(command)} -> {done.returncode}\n{output[-6000:]}"
        return output


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    """Built from the sdist, which is built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("build")
    subprocess.run(["git", "clone", "--quiet", "--no-local", "--depth", "1", root, folder / "clone"], check=True)
    environment = Environment(folder / "environment")
    environment.run("pip", "install", "--quiet", "--no-compile", "build")
    environment.run("python", "-m", "build", "--outdir", folder / "dist", folder / "clone")
    (built,) = (folder / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Environment:
    folder = tmp_path_factory.mktemp("user")
    environment = Environment(folder / "environment")
    environment.run("pip", "install", "--quiet", "--no-compile", wheel)
    environment.variables |= {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HOME": str(folder / "nowhere"),
        "COLUMNS": "200",
    }
    return environment


def test_a_wheel_has_less_than_a_hundred_megabytes(wheel):
    assert wheel.stat().st_size < LIMIT


def test_a_wheel_names_its_commit(installed, root, tmp_path):
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert f"(commit {head.strip()})" in installed.run("masquerade", "--version", cwd=tmp_path)


def test_a_photograph_is_anonymized_and_recovered_without_a_clone_and_without_a_network(installed, tmp_path):
    photograph, secret = tmp_path / "photograph.jpg", tmp_path / "secret.txt"
    portrait().save(photograph, quality=95)
    secret.write_text("a long pass phrase of a test\n")

    def command(name: str, source: Path, output: Path, *more: object) -> list[dict[str, str]]:
        words = ("--method", "riddle", "--key-file", secret, "--input", source, "--output", output, *more)
        installed.run("masquerade", name, *words, offline=True, cwd=tmp_path)
        with (output / "report.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    (hidden,) = command("anonymize", photograph, tmp_path / "hidden", "--seed", 1)  # 0.82; some salts are refused
    assert hidden["recognized"] == "no"
    (shown,) = command("recover", tmp_path / "hidden", tmp_path / "shown", "--originals", photograph)
    assert (tmp_path / "shown" / shown["output"]).is_file()
    assert float(shown["distance"]) < float(hidden["distance"])  # 0.63


def test_python_and_the_doctor_work_without_a_clone_and_without_the_pipeline(installed, tmp_path):
    program = "import masquerade; print(masquerade.load('gaussian_blur').title, len(masquerade.methods()))"
    assert "gaussian_blur" in installed.run("python", "-c", program, offline=True, cwd=tmp_path)
    said = installed.run("masquerade", "doctor", offline=True, cwd=tmp_path)
    assert "packages with compiled code" in said
    assert "works in a clone" in installed.run("masquerade", "matrix", offline=True, cwd=tmp_path, status=1)
