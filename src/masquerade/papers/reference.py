"""Reads what the papers printed: one YAML file for each table or figure in ``reference/<paper>/``.

It also says which numbers and images a table or figure needs. The graph calls it while it is built, so it imports
neither torch nor matplotlib.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from masquerade.core.errors import ReferenceFileError, suggest_nearest
from masquerade.papers import latent_stand_ins, reference_files
from masquerade.papers.declarations import Measure, Named, Need, Row, Table
from masquerade.papers.figure_declarations import KINDS, Curves, Grid, MethodVariant, Reference, Tradeoff

FOLDER = Path("reference")
OURS = {"attackers": "Attackers who know the method"}
"""The folders of tables that no paper has -> title."""


def load(path: Path, stand_ins: latent_stand_ins.StandIns = MappingProxyType({})) -> Reference:
    """Read one reference file. Titles of methods in ``stand_ins`` say that another method runs in their place.

    Raises ReferenceFileError naming the file and the key.
    """
    tree = reference_files.read(path)
    kind = tree.get("kind") if isinstance(tree, dict) else None
    if kind not in KINDS:
        raise ReferenceFileError(f"{path}: 'kind' is {kind!r}; it must be one of {', '.join(KINDS)}.")
    named = {"paper": path.parent.name, "name": path.stem}
    return latent_stand_ins.mark(reference_files.check(KINDS[kind], tree | named, str(path), given=named), stand_ins)


def find(
    paper: str, folder: Path = FOLDER, stand_ins: latent_stand_ins.StandIns = MappingProxyType({})
) -> list[Reference]:
    """Every table and figure of one paper, by file name, as `load` reads it.

    Raises ReferenceFileError when there is none.
    """
    paths = sorted((folder / paper).glob("*.yaml"))
    if not paths:
        papers = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
        raise ReferenceFileError(f"{folder / paper} declares no table or figure. {suggest_nearest(paper, papers)}")
    return [load(path, stand_ins) for path in paths]


def needs(item: Reference, offered: Iterable[tuple[str, str]] = ()) -> list[Need]:
    """What ``item`` needs from the matrix, each need once, in the order of the file.

    ``offered``: the (method, variant) pairs of the matrix on its datasets. A pattern such as ``eps_*`` selects among
    them. A name without a pattern is needed even if it is not offered.
    """
    offered = list(offered)
    pairs = [(entry.method, variant) for entry in method_entries(item) for variant in _variants(entry, offered)]
    return list(dict.fromkeys((dataset.role, *pair) for dataset in datasets(item) for pair in pairs))


def list_attempts(item: Reference, offered: Iterable[tuple[str, str]] = ()) -> list[Need]:
    """The part of `needs` of which ``item`` shows an attempt: further images of the same faces, as recovered ones.

    Tables and curves read these numbers under ``attempts`` of a cell's metrics. Grids read the images in the cell's
    archive of attempts.
    """
    if isinstance(item, Table):
        pairs = [(row, column) for column in item.columns for row in item.rows if row.attempt_in(column)]
        entries = [((column.dataset or item.dataset).role, row) for row, column in pairs]
    elif isinstance(item, Grid):
        entries = [(item.dataset.role, column) for column in item.columns if column.attempt]
    elif isinstance(item, Curves):
        measures: list[Measure] = [curve for panel in item.panels for curve in panel.curves] + (
            [item.x] if item.x else []
        )
        first = method_entries(item)[0]
        entries = [(item.dataset.role, first)] if any(measure.attempt for measure in measures) else []
    else:
        entries = []
    offered = list(offered)
    return list(dict.fromkeys(
        (role, entry.method, variant) for role, entry in entries for variant in _variants(entry, offered)
    ))  # fmt: skip


def datasets(item: Reference) -> list[Named]:
    """The datasets of ``item``. Only a table can have several."""
    return item.datasets if isinstance(item, Table) else [item.dataset]


def method_entries(item: Reference) -> Sequence[Row | MethodVariant]:
    """The methods with their variants: a table's rows, a grid's columns, or a figure's methods and its controls."""
    if isinstance(item, Table):
        return item.rows
    if isinstance(item, Grid):
        return item.columns
    if isinstance(item, Tradeoff):
        return (*item.settings, *item.controls)
    controls = item.controls if isinstance(item, Curves) else ()
    return (MethodVariant(title="", method=item.method, variant=item.variant), *controls)


def _variants(entry: Row | MethodVariant, offered: Iterable[tuple[str, str]]) -> list[str]:
    if not set("*?[") & set(entry.variant):
        return [entry.variant]
    return [name for method, name in offered if method == entry.method and fnmatchcase(name, entry.variant)]


def stand_in(named: Named, stand_ins: Mapping[str, str]) -> str:
    """What takes the place of a paper's dataset or judge. A role without a stand-in is the name of our own judge."""
    return stand_ins.get(named.role, named.role)
