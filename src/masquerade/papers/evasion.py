"""Marks the rows of methods that are made for later recognition (`Capabilities.poisons`): they measure evasion."""

from collections.abc import Iterable

from masquerade.core import discovery
from masquerade.papers.declarations import Row

MARK = " (evasion)"


def measured(row: Row) -> bool:
    """Whether the numbers of a row measure evasion, for which its method was not made."""
    known = row.method in discovery.names("methods")
    return known and discovery.load("methods", row.method).capabilities.poisons


def notes(rows: Iterable[Row]) -> list[str]:
    """The sentence below a table that explains the mark; none if no row has it."""
    titles = list(dict.fromkeys(row.title for row in rows if measured(row)))
    if not titles:
        return []
    return [
        f"{', '.join(titles)}: evasion. The method is made for pictures that a recogniser enrols, so that it fails on "
        "later clear photographs. These numbers compare its pictures with clear ones."
    ]
