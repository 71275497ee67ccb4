"""Which judges of a table share a network with the training of one of its methods."""

from collections.abc import Iterable

from masquerade import discovery
from masquerade.papers.measured import Context
from masquerade.papers.reference import Table


def sentence(table: Table, context: Context) -> str:
    """What a privacy table must say: the judges that a method of this table saw in training, or that there is none."""
    judges = {context.judge(column.judge) for column in table.columns if column.judge}
    return told({(judge, row.method, row.title) for row in table.rows for judge in judges}, "table")


def told(asked: Iterable[tuple[str, str, str]], where: str) -> str:
    """The same of any (judge, method, what to call the method) that stand together somewhere."""
    seen = sorted(
        f"`{judge}` by {title}" for judge, method, title in asked if _needs("methods", method) & _looks_like(judge)
    )
    return f"Judges seen in training: {', '.join(seen)}." if seen else f"No judge of this {where} was seen in training."


def strangers(measured: Iterable[tuple[str, str]]) -> str:
    """What must be said of imported methods, of the (method, what to call it) that were measured; '' without any."""
    titles = list(dict.fromkeys(title for method, title in measured if method not in discovery.names("methods")))
    return f"What {', '.join(titles)} saw in training is not known here." if titles else ""


def _looks_like(judge: str) -> set[str]:
    """The backbones that a judge is, or whose published weights it has."""
    known = judge in discovery.names("judges")
    return _needs("judges", judge) | (set(discovery.load("judges", judge).shares) if known else set())


def _needs(room: str, name: str) -> set[str]:
    """The backbones of a method or judge; one that is not built needs none."""
    return set(discovery.load(room, name).needs) if name in discovery.names(room) else set()
