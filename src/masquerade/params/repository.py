"""Finds the repository of a call: the folder with params.yaml, scales/, weights/ and what was built.

It is a clone, or the part of one that a wheel carries (setup.py).
"""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

from masquerade.core import fingerprints
from masquerade.core.errors import ParameterError
from masquerade.params.blocks import PARAMS, SCALES

CARRIED = Path(__file__).parents[1] / "carried"
"""The part of the repository that a wheel carries. A clone has no such folder."""
SOURCES = Path(__file__).parents[3]
"""The clone of this code, unless a wheel was installed."""
_COMMIT = CARRIED / "COMMIT"
"""The commit of the wheel, as `read_commit` gives it in a clone."""


def find_repository(given: str | os.PathLike[str] | None = None) -> Path:
    """The repository ``given``; without one, the current folder, else what the wheel carries or the clone of this code.

    Raises ParameterError if ``given`` has no params.yaml, and if there is none at all.
    """
    root = Path(str(given or ""))
    if (root / PARAMS).is_file() and (root != Path() or (root / SCALES).is_dir()):  # DVC names its parameters so, too
        return root
    candidates = [folder for folder in (CARRIED, SOURCES) if (folder / SCALES).is_dir()]
    if root != Path() or not candidates:
        raise ParameterError(f"{root / PARAMS} is missing. Run this in a clone of Masquerade, or name one as its root.")
    return candidates[0]


def require_clone(given: Path) -> Path:
    """``given``, if it is a clone. Raises ParameterError, which says what a command of the pipeline needs."""
    if (given / PARAMS).is_file():
        return given
    raise ParameterError(
        f"{given / PARAMS} is missing: this command belongs to the pipeline and works in a clone of Masquerade. Clone "
        "the repository, go there (or give --root), and run `make environment`, which installs the packages of the "
        "extra `masquerade[pipeline]` in tested versions. Without a clone there are the commands anonymize, recover, "
        "faces and doctor."
    )


def find_cache_folder(root: Path) -> Path:
    """The folder for what is computed once for the repository ``root`` and kept: in a clone ``.masquerade``.

    Of a wheel, it is in the user's cache, because a user cannot write beside installed code. Raises ParameterError if
    it cannot be made.
    """
    if root != CARRIED:
        return root / ".masquerade"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = cache / "masquerade" / f"{read_version()}-{read_commit()[:12]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"{folder} cannot be made ({error.strerror}). Let XDG_CACHE_HOME name a folder that you can write."
        ) from error
    return folder


def read_version() -> str:
    """The version of this code, as it was installed."""
    return version("masquerade")


def read_commit() -> str:
    """The commit of this code, with ``+`` for a clone with other changes. 'unknown' for a copy without ``.git``."""
    if _COMMIT.is_file():
        return _COMMIT.read_text(encoding="utf-8").strip()
    try:
        described = fingerprints.run_git(SOURCES, "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return "unknown" if described.returncode else described.stdout.strip()
