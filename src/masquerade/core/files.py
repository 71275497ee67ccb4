"""Writes files under a temporary name and renames them, so that no reader sees an incomplete file; JSON and CSV.

CSV is for spreadsheets: no cell is a formula when one opens the file, and each cell is read back as it was. A text that
begins like a formula gets an apostrophe, as OWASP recommends against CSV injection. Every text is quoted, because
spreadsheets of many countries split a line at semicolons.
"""

import csv
import io
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from masquerade.core import rehearsal


def expand_home(path: str | os.PathLike[str]) -> Path:
    """The path with the home folder in place of a first ``~`` or ``~name``; one of a name that nobody has stays so."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for a file such as ~draft.jpg


@contextmanager
def write_atomically(path: Path, unique: bool = False) -> Iterator[Path]:
    """Yields a temporary path beside ``path``; the file written there becomes ``path`` when the block ends.

    Makes the parent folder. If the block fails, the temporary file is removed and ``path`` stays as it was.
    ``unique``: use another temporary name in each call, for a file that several processes may write at one time.
    Otherwise the name is always the same, so that the file that a killed process left behind is overwritten.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part" if unique else f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:  # an interruption, too
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str, unique: bool = False) -> None:
    """Write text in UTF-8; ``unique`` as in `write_atomically`."""
    with write_atomically(path, unique) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_if_changed(path: Path, text: str) -> Path:
    """Write text unless ``path`` already holds it, and return ``path``. Several processes may do so at one time."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text, unique=True)
    return path


def write_json(path: Path, tree: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys; a rehearsal marks it."""
    write_text(path, json.dumps(rehearsal.mark(tree), indent=1, sort_keys=True) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """What `write_json` wrote. Raises RehearsalError for a file of a rehearsal, which only a rehearsal may read."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    rehearsal.admit(tree, path)
    return tree


def read_numbers(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The JSON files of metrics or qualities, for a table. Raises RehearsalError for one of a rehearsal."""
    trees = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    for path, tree in zip(paths, trees, strict=True):
        rehearsal.refuse_numbers(tree, path)
    return trees


_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # also the wide signs of East Asian keyboards
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], header: bool = True, end: str = "\n") -> str:
    """The ``rows`` (column -> cell) as CSV. ``header``: with a line of the ``columns``. ``end``: of a line.

    A cell that is missing becomes empty; one that has no column is left out.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator=end)
    if header:
        writer.writerow(columns)
    writer.writerows([guard_formula(row.get(column, "")) for column in columns] for row in rows)
    return file.getvalue()


def parse_csv(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file that `format_csv` wrote, column -> cell; '' where a line was cut."""
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="")
    return [{column: unguard_formula(cell) for column, cell in row.items()} for row in reader]


def guard_formula(cell: Any) -> Any:
    """The cell, with an apostrophe before a text that a spreadsheet takes for a formula. A number is none."""
    formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell


def unguard_formula(cell: str) -> str:
    """The inverse of `guard_formula`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
