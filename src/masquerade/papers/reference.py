"""Reads what the papers printed: one YAML file for each table or figure in ``reference/<paper>/``.

It also says which numbers and images a table or figure needs. The graph calls it while it is built, so it imports
neither torch nor matplotlib.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ReferenceFileError, suggest_nearest
from masquerade.papers import cautions
from masquerade.papers.declarations import Declared, KnownNumber, Measure, Named, Need, Row, Table
from masquerade.papers.figure_declarations import KINDS, Curves, Grid, MethodVariant, Reference, Tradeoff
from masquerade.params.blocks import ImportedImages, StandIns

FOLDER = Path("reference")
COSTS = FOLDER / "costs.yaml"
Block = TypeVar("Block", bound=BaseModel)
OURS = {"attackers": "Attackers who know the method"}
"""The folders of tables that no paper has -> title."""


def load(path: Path, stand_ins: cautions.StandIns = MappingProxyType({})) -> Reference:
    """Read one reference file. Titles of methods in ``stand_ins`` say that another method runs in their place.

    Raises ReferenceFileError naming the file and the key.
    """
    tree = _read(path)
    kind = tree.get("kind") if isinstance(tree, dict) else None
    if kind not in KINDS:
        raise ReferenceFileError(f"{path}: 'kind' is {kind!r}; it must be one of {', '.join(KINDS)}.")
    named = {"paper": path.parent.name, "name": path.stem}
    return cautions.mark_stand_ins(check(KINDS[kind], tree | named, str(path), given=named), stand_ins)


def find(paper: str, folder: Path = FOLDER, stand_ins: cautions.StandIns = MappingProxyType({})) -> list[Reference]:
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


def parse_imported(text: str) -> dict[str, ImportedImages]:
    """What other programs made, by the name of the variant, from the JSON that the graph passes."""
    return {key.rpartition(".")[2]: ImportedImages(**block) for key, block in json.loads(text).items()}


def add_imported_rows(item: Reference, imported: Mapping[str, ImportedImages], stand_ins: StandIns) -> Reference:
    """``item`` with one more row, or point of a trade-off, for each program that made images of one of its datasets.

    A row of the paper that names the program is filled instead. Other figures stay as they are, and tables of recovered
    faces take only programs that recover.
    """
    if not isinstance(item, Table | Tradeoff) or (isinstance(item, Table) and not item.imported):
        return item
    names = {stand_in(dataset, stand_ins.datasets) for dataset in datasets(item)}
    recovered = isinstance(item, Table) and item.kind == "table" and bool(list_attempts(item))
    shown = {
        variant: images
        for variant, images in imported.items()
        if names & images.images.keys() and (images.recovers or not recovered)
    }
    if isinstance(item, Tradeoff):
        points = [MethodVariant(title=images.title, method=IMPORTED, variant=name) for name, images in shown.items()]
        return item.model_copy(update={"settings": (*item.settings, *points)})
    printed = {row.variant for row in item.rows if row.method == IMPORTED}
    rows = [
        Row(title=images.title, method=IMPORTED, variant=variant, note="images that another program made, imported")
        for variant, images in shown.items()
        if variant not in printed
    ]
    return item.model_copy(update={"rows": (*item.rows, *rows)})


class PrintedCost(Declared):
    """The time in which a paper anonymizes one image."""

    paper: str
    """Its folder in reference/."""
    method: str
    variant: str
    printed: KnownNumber
    """Seconds per image."""
    device: str
    """As the paper writes it."""
    source: str
    """The place in the paper."""
    note: str = ""
    """What the paper leaves open."""


def load_costs(path: Path = COSTS) -> list[PrintedCost]:
    """The seconds per image that the papers print. benchmarks/ measures them here. Raises ReferenceFileError."""
    return [check(PrintedCost, item, str(path)) for item in read_entries(path, "printed times")]


def _read(path: Path) -> Any:
    """The tree of a file, with strings as leaves: a printed 1.0280 keeps its last zero. Raises ReferenceFileError."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)
    except OSError as error:
        raise ReferenceFileError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise ReferenceFileError(f"{path} is not valid YAML: {error}") from error


def read_entries(path: Path, contents: str) -> list[dict[str, Any]]:
    """The entries of a file that is a list of ``contents``. Raises ReferenceFileError."""
    tree = _read(path)
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise ReferenceFileError(f"{path} must be a list of {contents}, each with its keys.")
    return tree


def check(kind: type[Block], fields: Mapping[str, Any], place: str, given: Collection[str] = ()) -> Block:
    """``fields`` as an object of ``kind``. ``given``: the fields that do not stand in the file.

    Raises ReferenceFileError with a line for each mistake, which begins with ``place``.
    """
    try:
        return kind(**fields)
    except ValidationError as error:
        texts = dict.fromkeys(_list_mistakes(error, kind, given))
        raise ReferenceFileError("\n".join(f"{place}: {text}" for text in texts)) from error


def _list_mistakes(error: ValidationError, kind: type[BaseModel], given: Collection[str]) -> Iterator[str]:
    for item in error.errors():
        place = item["loc"]
        key = ".".join(map(str, place))
        if item["type"] == "extra_forbidden":
            allowed = _list_fields(kind, place[:-1], given)
            yield f"unknown key '{key}'. {suggest_nearest(str(place[-1]), allowed)}"
        elif item["type"] == "missing":
            yield f"'{key}' is missing."
        else:
            yield f"{f'{key}: ' * bool(key)}{item['msg'].removeprefix('Value error, ')}."


def _list_fields(kind: type[BaseModel], place: Iterable[str | int], given: Collection[str]) -> list[str]:
    """The keys that are allowed at one place of a file."""
    model = kind
    for part in place:
        if part in model.model_fields:
            model = _find_model(model.model_fields[part].annotation) or model
    return [name for name in model.model_fields if model is not kind or name not in given]


def _find_model(annotation: Any) -> type[BaseModel] | None:
    """The model class inside an annotation such as ``tuple[Column, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _find_model(part))), None)
