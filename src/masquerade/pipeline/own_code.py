"""The code of Masquerade that the fork server has imported: jobs use it as long as it is the code on their disk."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from masquerade.core.fingerprints import PACKAGES

_SOURCE = Path(__file__).parents[2]
_KEPT = {"masquerade.networks.dlib_models", "masquerade.networks.torchvision_internals"}
"""Modules that hold models and operations of libraries, and stay when the code is forgotten."""


class OwnCode:
    """What ``load`` imports. Where it fails, nothing is held: a job that imports the same code reports the error."""

    def __init__(self, load: Callable[[], None]):
        before = {str(path): _state(path) for name in PACKAGES for path in (_SOURCE / name).rglob("*.py")}
        try:
            load()
        except Exception:  # noqa: BLE001 - a line that a person is about to write can raise anything
            forget()
        files = {file for name in _imported() if (file := sys.modules[name].__file__)}
        self._files = {file: before.get(file) for file in files}
        self._folders = {str(folder): _state(folder) for folder in {Path(file).parent for file in files}}
        """A file that is added to a room or taken from it changes the folder."""

    def is_of(self, path: Sequence[str]) -> bool:
        """Whether a process that imports from ``path`` would import the same files, none of them changed since."""
        found = next((folder for folder in path if (Path(folder) / "masquerade/__init__.py").is_file()), None)
        return (
            found is not None
            and Path(found).resolve() == _SOURCE.resolve()
            and all(_state(Path(name)) == state for name, state in (self._files | self._folders).items())
        )


def forget() -> None:
    """Let jobs import the code of Masquerade from the disk of their working copy, except the modules of what is loaded.

    The packages around those are forgotten too: they would lead a job to the sources of this process.
    """
    for name in _imported():
        if name not in _KEPT:
            del sys.modules[name]


def _imported() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in PACKAGES]


def _state(path: Path) -> tuple[int, int] | None:
    """What differs after a change of a file or folder: the time of it, which no program can set, and the size."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ctime_ns, found.st_size
