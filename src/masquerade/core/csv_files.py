"""CSV for spreadsheets: no cell is a formula when one opens the file, and each cell is read back as it was.

A text that begins like a formula gets an apostrophe, as OWASP recommends against CSV injection. Every text is quoted,
because spreadsheets of many countries split a line at semicolons.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # also the wide signs of East Asian keyboards
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], header: bool = True, end: str = "\n") -> str:
    """The ``rows`` (column -> cell) as CSV. ``header``: with a line of the ``columns``. ``end``: of a line.

    A cell that is missing becomes empty; one that has no column is left out.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator=end)
    if header:
        writer.writerow(columns)
    writer.writerows([guard(row.get(column, "")) for column in columns] for row in rows)
    return file.getvalue()


def rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file that `text` wrote, column -> cell; '' where a line was cut."""
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="")
    return [{column: unguard(cell) for column, cell in row.items()} for row in reader]


def guard(cell: Any) -> Any:
    """The cell, with an apostrophe before a text that a spreadsheet takes for a formula. A number is none."""
    formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if formula else cell


def unguard(cell: str) -> str:
    """The inverse of `guard`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
