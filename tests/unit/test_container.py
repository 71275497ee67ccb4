"""apptainer.def installs what the Makefile installs. To build it needs Apptainer and a registry of images."""

import re
from pathlib import Path

from masquerade.cli import doctor

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "apptainer.def").read_text()


def installed(text: str, pip: str) -> list[str]:
    """The options and packages of each installation by pip, without those that only save time or disk."""
    saved = r"--(no-cache-dir|disable-pip-version-check|quiet|no-compile|editable) "
    return [re.sub(saved, "", f"{line} ").strip() for line in re.findall(rf"^\s+{pip} (.*)$", text, re.MULTILINE)]


def test_the_container_installs_the_locks_with_the_commands_of_the_makefile():
    makefile = re.search(r"^\$\(BIN\)/\.installed:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert installed(RECIPE, "python -m pip install") == installed(makefile, r"\$\(PIP\)")
    assert len(installed(makefile, r"\$\(PIP\)")) == 4


def test_the_container_has_the_python_of_conda():
    (python,) = re.findall(r"^From: python:(\d+\.\d+)-", RECIPE, re.MULTILINE)
    assert f"- python={python}\n" in (ROOT / "environment.yml").read_text()


def test_the_container_gets_the_files_from_which_a_wheel_is_built():
    copied = re.findall(r"^    (\S+) /opt/masquerade/(\S+)$", RECIPE, re.MULTILINE)
    assert all(source == target for source, target in copied)
    needed = {"pyproject.toml", "setup.py", "README.md", "LICENSE", "params.yaml", "scales", "weights", "src"}
    assert {source for source, _ in copied} == needed | {doctor.LOCK, doctor.CUDA_LOCK}
    assert [source for source, _ in copied if not (ROOT / source).exists()] == []
