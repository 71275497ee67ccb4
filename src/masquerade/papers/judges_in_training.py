"""Which judges share a network with the training of a method that they judge."""

from collections.abc import Iterable

from masquerade.core import discovery
from masquerade.papers.context import Context
from masquerade.papers.declarations import Table


def of_table(table: Table, context: Context) -> str:
    """The sentence for a table: the judges that took part in the training of its methods, or that there is none."""
    judges = {context.judge(column.judge) for column in table.columns if column.judge}
    return sentence({(judge, row.method, row.title) for row in table.rows for judge in judges}, "table")


def sentence(uses: Iterable[tuple[str, str, str]], document: str) -> str:
    """The same for the uses (judge, method, title of the method) of a ``document``, such as a table or a page."""
    shared = sorted(
        f"`{judge}` by {title}" for judge, method, title in uses if _needs("methods", method) & _backbones_of(judge)
    )
    if shared:
        return f"Judges seen in training: {', '.join(shared)}."
    return f"No judge of this {document} was seen in training."


def unknown(measured: Iterable[tuple[str, str]]) -> str:
    """The sentence for the imported methods among these (method, title) pairs: their training is not known.

    Returns '' when no method is imported.
    """
    titles = list(dict.fromkeys(title for method, title in measured if method not in discovery.names("methods")))
    return f"What {', '.join(titles)} saw in training is not known here." if titles else ""


def _backbones_of(judge: str) -> set[str]:
    """The backbones that a judge uses, and those with which it shares published weights."""
    known = judge in discovery.names("judges")
    return _needs("judges", judge) | (set(discovery.load("judges", judge).shares) if known else set())


def _needs(room: str, name: str) -> set[str]:
    """The backbones of a method or judge; none if no module of that name exists."""
    return set(discovery.load(room, name).needs) if name in discovery.names(room) else set()
