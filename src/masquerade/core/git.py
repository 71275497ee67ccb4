"""Runs git on the repository of one folder, and never on another repository around it or of the environment."""

import os
import subprocess
from pathlib import Path

LOCATIONS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")
"""Variables that name another repository. Git sets some of them for its hooks."""
LONGEST = 60.0
"""Seconds after which git is stopped."""


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in ``root``, the top folder of a working copy. What it prints is read as UTF-8.

    It fails (``returncode``) in a folder without ``.git``, also when that folder lies inside another repository: the
    commit of that one says nothing about the code here. Raises OSError if git does not run, and
    subprocess.TimeoutExpired after LONGEST seconds.
    """
    environment = {name: value for name, value in os.environ.items() if name not in LOCATIONS}
    environment["GIT_CEILING_DIRECTORIES"] = str(root.resolve().parent)
    return subprocess.run(
        ["git", *arguments], cwd=root, env=environment, capture_output=True, encoding="utf-8", errors="replace",
        check=False, timeout=LONGEST,
    )  # fmt: skip
