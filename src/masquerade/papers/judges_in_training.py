"""Which judges share a network or its teacher with the training of a method that they judge."""

from collections.abc import Iterable

from masquerade.core import discovery
from masquerade.papers.context import Context
from masquerade.papers.declarations import Table

IN_A_LOSS, TEACHER = " (its network is in a loss)", " (teacher of a network in a loss)"


def of_table(table: Table, context: Context) -> str:
    """The sentence for a table: the judges that took part in the training of its methods, or that there is none.

    A table without judges has no sentence: ''.
    """
    judges = {context.judge(column.judge) for column in table.columns if column.judge}
    if not judges:
        return ""
    uses = {(judge, row.method, row.title) for row in table.rows for judge in judges}
    return sentence(uses, "table", context.stand_ins.datasets.values())


def sentence(uses: Iterable[tuple[str, str, str]], document: str, datasets: Iterable[str] = ()) -> str:
    """The same for the uses (judge, method, title of the method) of a ``document``, such as a table or a page.

    ``datasets``: those of the scale. A judge that labeled their faces taught the networks that learned these labels.
    """
    labelers = {judge for dataset in datasets for judge in _declaration("faces", dataset, "labeled_by")}
    titles: dict[str, list[str]] = {}
    for judge, method, title in sorted(uses):
        for how in _ways(judge, method, labelers):
            titles.setdefault(f"`{judge}`{how}", []).append(title)
    if titles:
        shared = (f"{judge} by {', '.join(sorted(set(names)))}" for judge, names in sorted(titles.items()))
        return f"Judges seen in training: {'; '.join(shared)}."
    return f"No judge of this {document} was seen in training."


def unknown(measured: Iterable[tuple[str, str]]) -> str:
    """The sentence for the imported methods among these (method, title) pairs: their training is not known.

    Returns '' when no method is imported.
    """
    titles = list(dict.fromkeys(title for method, title in measured if method not in discovery.list_names("methods")))
    return f"What {', '.join(titles)} saw in training is not known here." if titles else ""


def _ways(judge: str, method: str, labelers: set[str]) -> list[str]:
    """How a judge took part in the training of a method: the first that applies of '', a loss, a teacher; or none."""
    backbones = _training(method)
    losses = {name for room, role in [("methods", method), *backbones] for name in _declaration(room, role, "losses")}
    teachers = {name for room, role in backbones for name in _declaration(room, role, "teachers")}
    own = _declaration("judges", judge, "needs") | _declaration("judges", judge, "shares")
    if own & {name for _, name in backbones}:
        return [""]
    if _declaration("judges", judge, "assets") & losses:
        return [IN_A_LOSS]
    return [TEACHER] if judge in teachers & labelers else []


def _training(method: str) -> set[tuple[str, str]]:
    """('backbones', role) of every backbone that a method needs, and that the training of one of these needs."""
    found: set[tuple[str, str]] = set()
    open_ = _declaration("methods", method, "needs")
    while open_:
        role = open_.pop()
        found.add(("backbones", role))
        open_ |= {name for name in _declaration("backbones", role, "needs") if ("backbones", name) not in found}
    return found


def _declaration(room: str, name: str, what: str) -> set[str]:
    """What a dataset, backbone, judge or method declares under ``what``; nothing if no module of that name exists."""
    return set(getattr(discovery.load(room, name), what)) if name in discovery.list_names(room) else set()
