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
        f"`{judge}` by {title}" for judge, method, title in asked if _needs("methods", method) & _needs("judges", judge)
    )
    return f"Judges seen in training: {', '.join(seen)}." if seen else f"No judge of this {where} was seen in training."


def _needs(room: str, name: str) -> set[str]:
    """The backbones of a method or judge; one that is not built needs none."""
    return set(discovery.load(room, name).needs) if name in discovery.names(room) else set()
