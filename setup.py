"""Puts what photographs need of a clone, and the commit, into wheel and sdist. pyproject.toml holds everything else.

The table ``tool.masquerade.wheel`` names the files. An editable installation reads the clone itself.
"""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
COMMIT = "COMMIT"


def carried() -> list[str]:
    """The files of the repository that a wheel carries, relative to its root."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["masquerade"]["wheel"]
    files = {path for pattern in table["files"] for path in ROOT.glob(pattern) if path.is_file()}
    return sorted({path.relative_to(ROOT).as_posix() for path in files} - set(table["without"]))


def commit() -> str:
    """The commit of the clone; in an sdist, the one from which it was made."""
    if (ROOT / COMMIT).is_file():
        return (ROOT / COMMIT).read_text(encoding="utf-8")
    if not (ROOT / ".git").exists():  # a copy inside another repository has none of its own
        return "unknown\n"
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"]
    others = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # in a hook of git they name another repository
    environment = {name: value for name, value in os.environ.items() if name not in others}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else "unknown\n"


class Wheel(build_py):
    """The library, and what it carries of the repository (src/masquerade/params/repository.py)."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib, "masquerade", "carried")
        for name in carried():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        (folder / COMMIT).write_text(commit(), encoding="utf-8")


class Sources(sdist):
    """The files from which a wheel is built. Tests, graph and papers are in the clone alone."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, [*files, *carried()])
        Path(base_dir, COMMIT).write_text(commit(), encoding="utf-8")


setup(cmdclass={"build_py": Wheel, "sdist": Sources})
