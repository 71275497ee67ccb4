"""Where released images go: into a folder, or into memory for a program that asked for one photograph."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from masquerade.core import files


class Output(Protocol):
    """Takes files by their names, such as ``photographs/a.png``."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, in place of an older one."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""


@dataclass(frozen=True)
class FolderOutput:
    """The files lie in ``folder``, which is made when it is needed."""

    folder: Path

    def write(self, name: str, content: bytes) -> None:
        with files.write_atomically(self.folder / name) as temporary:
            temporary.write_bytes(content)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)


class MemoryOutput(dict[str, bytes]):
    """The files are in memory alone: name -> content."""

    def write(self, name: str, content: bytes) -> None:
        self[name] = content

    def remove(self, name: str) -> None:
        self.pop(name, None)
