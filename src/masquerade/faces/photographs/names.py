"""The files of a folder of photographs, and their names: the same on every system, and safe ones for their results."""

import hashlib
import os
import re
import unicodedata
from pathlib import Path, PurePath


def folder_of(path: Path) -> Path:
    """The folder to which names of photographs are relative: ``path`` itself, or the one that holds this file."""
    return path if path.is_dir() else path.parent


def files(root: Path) -> list[Path]:
    """Every file below ``root`` that is not hidden, in the byte order of the names. Links are listed, not followed.

    A sub-folder that may not be read is listed, too, and `decoding.read` refuses it. A ``root`` that is itself a file
    is the only one. Raises OSError for ``root``.
    """
    if root.is_file():
        return [root]
    paths: list[Path] = []

    def unreadable(error: OSError) -> None:
        if Path(error.filename) == root:
            raise error
        paths.append(Path(error.filename))

    for folder, folders, names in os.walk(root, onerror=unreadable):
        links = [name for name in folders if os.path.islink(Path(folder, name))]  # noqa: PTH114 - that raises if locked
        folders[:] = [name for name in folders if not name.startswith(".") and name not in links]
        paths += [Path(folder, name) for name in (*names, *links) if not name.startswith(".")]
    return sorted(paths, key=lambda path: os.fsencode(path.relative_to(root)))


def names(root: Path) -> dict[str, Path]:
    """The name of each of the `files` below ``root``, relative to its folder and with slashes -> its path.

    Letters with accents are composed in a name (Unicode's NFC). macOS decomposes them, and a copy from there is the
    same photograph. Where both forms are in one folder, they are two files, and each has its own name.
    """
    folder, path_of = folder_of(root), {}
    paths = {path.relative_to(folder).as_posix(): path for path in files(root)}
    for name, path in paths.items():
        composed = unicodedata.normalize("NFC", name)
        path_of[name if composed in paths or composed in path_of else composed] = path
    return {name: path_of[name] for name in sorted(path_of, key=os.fsencode)}


def safe_id(relative: PurePath) -> str:
    """A unique name that is safe in any file system, e.g. ``Ann_Lee_0001_3f2a9c1d`` for ``Ann Lee/0001.jpg``.

    The digits are a hash of the path, so the id of a file does not depend on the other files.
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", os.fspath(relative.with_suffix(""))).strip("_")[-48:]
    return f"{words or 'photograph'}_{hashlib.sha256(os.fsencode(relative)).hexdigest()[:8]}"


def text(name: str) -> str:
    """The name of a file as valid text: each byte that is none becomes U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")
