"""Where released images go, into a folder or into memory, and report.csv, which is written row by row beside them."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from masquerade.core import files
from masquerade.core.errors import MasqueradeError

REPORT = "report.csv"
END = "\r\n"  # of a line


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


class Report:
    """The rows of report.csv: one for each face, and one for each file without a face. A row is in the file at once."""

    def __init__(self, path: Path, columns: tuple[str, ...]):
        self.path, self.columns = path, columns
        self.rows: list[dict[str, Any]] = []

    def begin(self, rows: Iterable[dict[str, Any]]) -> None:
        """Replace the report of an earlier run by ``rows``."""
        self.rows = list(rows)
        with files.write_atomically(self.path) as temporary:
            temporary.write_text(files.format_csv(self.columns, self.rows, end=END), encoding="utf-8", newline="")

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Append rows. If the disk is full, the file stays as it was."""
        if not self.rows:
            self.begin(rows)
            return
        before = self.path.stat().st_size
        try:
            with self.path.open("a", encoding="utf-8", newline="") as file:
                file.write(files.format_csv(self.columns, rows, header=False, end=END))
        except BaseException:
            with self.path.open("r+b") as file:
                file.truncate(before)
            raise
        self.rows += rows


def read_report(path: Path) -> list[dict[str, str]]:
    """The rows of a report as column -> cell; [] if there is no file.

    Raises MasqueradeError if a column is missing, because the salts would be lost in silence: a spreadsheet program may
    have saved the file in another form.
    """
    if not path.is_file():
        return []
    reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig", errors="replace"), newline=""))
    columns = set(reader.fieldnames or ())
    if not {"file", "output"} <= columns or ("salt" not in columns and {"maker", "check"} & columns):
        raise MasqueradeError(
            f"{path} has no columns 'file', 'output' and 'salt' that can be read. Restore the file that was written."
        )
    return [{column: files.unguard_formula(cell or "") for column, cell in row.items() if column} for row in reader]
