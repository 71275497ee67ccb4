"""Marks what a scale runs in the place of a published method: its name alone stands for the published method only."""

from collections.abc import Iterable, Mapping

from masquerade.papers.declarations import Row, Table
from masquerade.papers.figure_declarations import Grid, MethodVariant, Reference, Tradeoff

MARK = "latent stand-in"
StandIns = Mapping[str, str]
"""Method that does not run as published -> what runs in its place (`Method.latent_stand_in`)."""


def mark_title(title: str, method: str, stand_ins: StandIns, between: str = " ") -> str:
    """The title of a method, with the mark after ``between`` if another method runs in its place."""
    return f"{title}{between}({MARK})" if method in stand_ins else title


def note(methods: Iterable[tuple[str, str]], stand_ins: StandIns) -> str:
    """The sentences that explain the mark for these (method, title) pairs; '' if none of them has it."""
    titles: dict[str, list[str]] = {}
    for method, title in dict.fromkeys(methods):
        if method in stand_ins:
            titles.setdefault(stand_ins[method], []).append(title)
    described = (f"{', '.join(dict.fromkeys(names))}: {words}" for words, names in titles.items())
    return f"Latent stand-ins are not the published methods. {'; '.join(described)}." if titles else ""


def mark(item: Reference, stand_ins: StandIns) -> Reference:
    """A table or figure in which every title of a method in ``stand_ins`` has the mark, and the note explains it."""
    if not stand_ins:
        return item
    if isinstance(item, Table):
        lists, shown = {"rows": item.rows}, [(row.method, row.title) for row in item.rows]
    elif isinstance(item, Grid):
        lists, shown = {"columns": item.columns}, [(column.method, column.title) for column in item.columns]
    elif isinstance(item, Tradeoff):
        lists = {"settings": item.settings, "controls": item.controls}
        shown = [(entry.method, entry.title) for entry in item.settings]
    else:  # the panels of curves and clusters show one method
        lists, shown = {}, [(item.method, item.method)]
        if item.method in stand_ins:
            panels = [panel.model_copy(update={"title": f"{panel.title} ({MARK})"}) for panel in item.panels]
            item = item.model_copy(update={"panels": tuple(panels), "caption": f"{item.caption} ({MARK})"})
    explained = note(shown, stand_ins)
    between = "\n" if isinstance(item, Grid) else " "  # the columns of a grid are narrow
    marked = {
        name: tuple(_mark_entry(entry, stand_ins, between) for entry in entries) for name, entries in lists.items()
    }
    return item.model_copy(update=marked | {"note": " ".join(filter(None, [explained, item.note]))})


def _mark_entry(entry: Row | MethodVariant, stand_ins: StandIns, between: str) -> Row | MethodVariant:
    return entry.model_copy(update={"title": mark_title(entry.title, entry.method, stand_ins, between)})
