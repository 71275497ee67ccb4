"""Marks the rows of methods that are made for later recognition (`Capabilities.poisons`): they measure evasion."""

from collections.abc import Iterable

from masquerade.core import discovery
from masquerade.papers.declarations import Table

MARK = " (evasion)"
PURPOSE = ("poisoning_protection_rate",)
"""The metrics of what these methods are made for."""


def measures_evasion(method: str) -> bool:
    """Whether the numbers of a method measure evasion, for which it was not made."""
    return method in discovery.list_names("methods") and discovery.load("methods", method).capabilities.poisons


def of_table(table: Table) -> bool:
    """Whether the rows of these methods need the mark: a column measures something else than what they are made for."""
    return any(column.metric not in PURPOSE for column in table.columns)


def notes(methods: Iterable[tuple[str, str]]) -> list[str]:
    """The sentence that explains this for the (method, title) pairs of a table or page; none if it is true of none."""
    titles = list(dict.fromkeys(title for method, title in methods if measures_evasion(method)))
    if not titles:
        return []
    return [
        f"{', '.join(titles)}: evasion. The method is made for images that a recognizer enrols, so that it fails on "
        "later unprotected photographs. These numbers compare its images with unprotected ones."
    ]
