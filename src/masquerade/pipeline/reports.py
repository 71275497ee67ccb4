"""report.csv: written row by row beside the results, and read again, also after a spreadsheet saved it."""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from masquerade.core import files
from masquerade.core.errors import MasqueradeError, PictureError

REPORT = "report.csv"
DELIMITERS = ",;\t"
END = "\r\n"  # of a line


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


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a report as column -> cell; [] if there is no file.

    A spreadsheet may have saved it: with a byte order mark, in UTF-16, with semicolons or tabs, its columns in another
    order. Raises MasqueradeError if it is no report, because its salts would be lost in silence.
    """
    if not path.is_file():
        return []
    text = _decoded(path.read_bytes())
    text = re.sub(r'\A"?sep=.*\s*', "", text)  # a first line that tells Excel the delimiter
    for delimiter in DELIMITERS:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restkey="", restval="")
        try:
            columns = [column.strip().lower() for column in reader.fieldnames or ()]
            if {"file", "output"} <= set(columns) and ("salt" in columns or not {"maker", "check"} & set(columns)):
                reader.fieldnames = columns
                return [
                    {column: files.unguard_formula(cell) for column, cell in row.items() if column} for row in reader
                ]
        except csv.Error:
            continue
    raise MasqueradeError(
        f"{path} has no columns 'file', 'output' and 'salt' that can be read. Restore the file that was written."
    )


def _decoded(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


class Written:
    """The rows of a report by the names of its pictures, also for a picture whose name was changed."""

    def __init__(self, rows: Iterable[dict[str, str]]):
        self._by_name = {row["output"]: row for row in rows if row["output"]}
        self._by_digits: dict[str, list[str]] = {}
        for name in self._by_name:
            for digits in _digits(name)[:1]:
                self._by_digits.setdefault(digits, []).append(name)

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(self._by_name.values())

    def row(self, file: str) -> dict[str, str] | None:
        """The row of the picture that became ``file``; None if no picture did.

        A picture that was sent or converted may have another ending, words around its name, capitals, or hyphens. The
        digits at the end of its name suffice (`names.safe_id`). Raises PictureError if several pictures have them.
        """
        if file in self._by_name:
            return self._by_name[file]
        names = next((self._by_digits[digits] for digits in _digits(file) if digits in self._by_digits), [])
        if len(names) > 1:
            stem = PurePosixPath(file).stem.lower()
            names = [name for name in names if PurePosixPath(name).stem.lower() in stem] or names
        if len(names) > 1:
            raise PictureError(f"it may be {' or '.join(sorted(names)[:2])}: give it the name that was written")
        return self._by_name[names[0]] if names else None


def _digits(file: str) -> list[str]:
    """What a file name may hold of the digits of a picture and of the number of its face: ``3f2a9c1d_0``, ``3f2a9c1d``.

    The ending of ``file`` is left out, and the last digits come first.
    """
    words = re.sub(r"[-_ ]+", "_", PurePosixPath(file).stem.lower())
    found = list(re.finditer(r"(?<![0-9a-z])(?=([0-9a-f]{8})(_[0-9]+)?(?![0-9a-z]))", words))
    return [digits for match in reversed(found) for digits in dict.fromkeys((match[1] + (match[2] or ""), match[1]))]
