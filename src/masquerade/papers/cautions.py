"""Marks and sentences for what a reader of a table or page must know of its methods and judges.

- A latent stand-in runs in the place of a published method, whose name alone stands for the published method only.
- The rows of methods that are made for later recognition (`Capabilities.poisons`) measure evasion.
- A judge that shares a network or its teacher with the training of a method is no independent judge of that method.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from masquerade.core import discovery
from masquerade.core.discovery import IMPORTED
from masquerade.papers.declarations import Row, Table
from masquerade.papers.figure_declarations import Grid, MethodVariant, Reference, Tradeoff

STAND_IN, EVASION = "latent stand-in", " (evasion)"
POISONING_METRICS = ("poisoning_protection_rate",)
"""The metrics of what methods that poison are made for."""
IN_A_LOSS, TEACHER = " (its network is in a loss)", " (teacher of a network in a loss)"
StandIns = Mapping[str, str]
"""Method that does not run as published -> what runs in its place (`Method.latent_stand_in`)."""
Entry = TypeVar("Entry", bound=Row | MethodVariant)


def mark_title(title: str, method: str, stand_ins: StandIns, between: str = " ") -> str:
    """The title of a method, with the mark after ``between`` if another method runs in its place."""
    return f"{title}{between}({STAND_IN})" if method in stand_ins else title


def explain_stand_ins(methods: Iterable[tuple[str, str]], stand_ins: StandIns) -> str:
    """The sentences that explain the mark for these (method, title) pairs; '' if none of them has it."""
    titles: dict[str, list[str]] = {}
    for method, title in dict.fromkeys(methods):
        if method in stand_ins:
            titles.setdefault(stand_ins[method], []).append(title)
    described = (f"{', '.join(dict.fromkeys(names))}: {words}" for words, names in titles.items())
    return f"Latent stand-ins are not the published methods. {'; '.join(described)}." if titles else ""


def mark_stand_ins(item: Reference, stand_ins: StandIns) -> Reference:
    """A table or figure in which every title of a method in ``stand_ins`` has the mark, and the note explains it."""
    if not stand_ins:
        return item

    def mark(entries: tuple[Entry, ...], between: str = " ") -> tuple[Entry, ...]:
        return tuple(
            entry.model_copy(update={"title": mark_title(entry.title, entry.method, stand_ins, between)})
            for entry in entries
        )

    if isinstance(item, Table):
        marked, shown = {"rows": mark(item.rows)}, item.rows
    elif isinstance(item, Grid):
        marked, shown = {"columns": mark(item.columns, "\n")}, item.columns  # these columns are narrow
    elif isinstance(item, Tradeoff):
        marked, shown = {"settings": mark(item.settings), "controls": mark(item.controls)}, item.settings
    else:  # the panels of curves and clusters show one method
        panels = [
            panel.model_copy(update={"title": mark_title(panel.title, item.method, stand_ins)}) for panel in item.panels
        ]
        marked = {"panels": tuple(panels), "caption": mark_title(item.caption, item.method, stand_ins)}
        shown = [MethodVariant(title=item.method, method=item.method, variant=item.variant)]
    explained = explain_stand_ins(((entry.method, entry.title) for entry in shown), stand_ins)
    return item.model_copy(update=marked | {"note": " ".join(filter(None, [explained, item.note]))})


def measures_evasion(method: str) -> bool:
    """Whether the numbers of a method measure evasion, for which it was not made."""
    return method in discovery.list_names("methods") and discovery.load("methods", method).capabilities.poisons


def needs_evasion_mark(table: Table) -> bool:
    """Whether a column of a table measures something else than what methods that poison are made for."""
    return any(column.metric not in POISONING_METRICS for column in table.columns)


def explain_evasion(methods: Iterable[tuple[str, str]]) -> list[str]:
    """The sentence that explains this for the (method, title) pairs of a table or page; none if it is true of none."""
    titles = list(dict.fromkeys(title for method, title in methods if measures_evasion(method)))
    if not titles:
        return []
    return [
        f"{', '.join(titles)}: these numbers measure evasion, because they compare the method's images with "
        "unprotected ones. The method is made for images that a recognizer enrolls, so that it fails on later "
        "unprotected photographs."
    ]


def list_judges_in_training(table: Table, judges: Collection[str], datasets: Iterable[str]) -> str:
    """The sentence for a table: which of its ``judges`` took part in the training of its methods, or that none did.

    A table without judges has no sentence: ''.
    """
    uses = {(judge, row.method, row.title) for row in table.rows for judge in judges}
    return describe_judges(uses, "table", datasets) if judges else ""


def describe_judges(uses: Iterable[tuple[str, str, str]], document: str, datasets: Iterable[str] = ()) -> str:
    """The same for the uses (judge, method, title of the method) of a ``document``, such as a table or a page.

    ``datasets``: those of the scale. A judge that labeled their faces taught the networks that learned these labels.
    """
    labelers = {judge for dataset in datasets for judge in _read_declaration("faces", dataset, "labeled_by")}
    titles: dict[str, list[str]] = {}
    for judge, method, title in sorted(uses):
        how = _find_way(judge, method, labelers)
        if how is not None:
            titles.setdefault(f"`{judge}`{how}", []).append(title)
    if titles:
        shared = (f"{judge} by {', '.join(sorted(set(names)))}" for judge, names in sorted(titles.items()))
        return f"Evaluators that took part in the training of a method: {'; '.join(shared)}."
    return f"No evaluator of this {document} took part in the training of a method."


def name_unknown_trainings(methods: Iterable[tuple[str, str]]) -> str:
    """The sentence for the imported methods among these (method, title) pairs: their training is not known.

    Returns '' when no method is imported.
    """
    titles = list(dict.fromkeys(title for method, title in methods if method == IMPORTED))
    return f"It is not known what {', '.join(titles)} saw in training." if titles else ""


def _find_way(judge: str, method: str, labelers: set[str]) -> str | None:
    """How a judge took part in the training of a method: the first that applies of '', a loss, a teacher; or None."""
    backbones = _list_backbones(method)
    trained = [("methods", method), *(("backbones", role) for role in backbones)]
    losses = {name for room, role in trained for name in _read_declaration(room, role, "losses")}
    teachers = {name for role in backbones for name in _read_declaration("backbones", role, "teachers")}
    networks = _read_declaration("judges", judge, "needs") | _read_declaration("judges", judge, "shares")
    if networks & backbones:
        return ""
    if _read_declaration("judges", judge, "assets") & losses:
        return IN_A_LOSS
    return TEACHER if judge in teachers & labelers else None


def _list_backbones(method: str) -> set[str]:
    """Every backbone that a method needs, and that the training of one of these needs."""
    backbones: set[str] = set()
    waiting = _read_declaration("methods", method, "needs")
    while waiting:
        role = waiting.pop()
        backbones.add(role)
        waiting |= _read_declaration("backbones", role, "needs") - backbones
    return backbones


def _read_declaration(room: str, name: str, what: str) -> set[str]:
    """What a dataset, backbone, judge or method declares under ``what``; nothing if no module of that name exists."""
    return set(getattr(discovery.load(room, name), what)) if name in discovery.list_names(room) else set()
