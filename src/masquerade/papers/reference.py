"""What the papers printed, declared as data: one YAML a table or figure in ``reference/<paper>/``, typed and closed.

The files are read as text, without YAML's guessing of types, so that a printed 1.0280 keeps its last zero.
Imports neither torch nor matplotlib: the graph asks ``find`` and ``needs`` while it is built.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from masquerade.errors import ReferenceFileError
from masquerade.papers import mistakes
from masquerade.papers.printed import PrintedNumber
from masquerade.settings import Settings

FOLDER = Path("reference")
Direction = Literal["higher", "lower", "none"]
Need = tuple[str, str, str]
"""(dataset role, method, variant): what a table or figure asks the matrix for."""


class Declared(Settings):
    """A block of a reference file. Closed, as parameters are; what is left out means what the field says."""


class Named(Declared):
    """A dataset or judge of the paper."""

    name: str
    """As the paper writes it."""
    role: str
    """Its key under ``stand_ins`` of params.yaml, or the name of one of our own judges."""


class Measure(Declared):
    """Which number of a cell's metrics is meant."""

    metric: str
    """The module in metrics/."""
    judge: Named | None = None
    """Who judges; left out where the metric needs nobody."""
    part: str = ""
    """Which of several values is meant, where the metric gives more than one a judge (an attribute of a face)."""
    attempt: str = ""
    """Of which pictures: what was recovered, or a wrong key brought back, ...; '' = the anonymized pictures."""


class Column(Measure):
    title: str
    """The header as printed."""
    group: str = ""
    """The header above it, shared with its neighbours."""
    dataset: Named | None = None
    """On whose faces, where not on those of the table."""
    substitute: str = ""
    """What the measured value must be called where another judge stands in (FID: 'FD')."""
    direction: Direction
    """Which values are better."""
    digits: Annotated[int, Field(ge=0, le=6)]
    """Digits of the measured value behind the point."""
    percent: bool = False
    """Shares are printed as 99.99 and without a sign: the measured share is shown in the same unit."""
    spread: Literal["seeds", "metric"] = "seeds"
    """What ± means: standard deviation over seeds, or the one that the metric's own protocol reports (folds)."""
    printed: bool = True
    """False: the paper has no such column; it is ours."""


class Row(Declared):
    title: str
    """The label as printed."""
    method: str
    variant: str
    attempt: str = ""
    """Of which pictures, in every column that names no attempt of its own."""
    printed: tuple[PrintedNumber, ...] = ()
    """One number for each printed column, in their order; left out where the paper has no such row."""
    control: bool = False
    """Floor and ceiling of the metrics: never the best of a column."""
    note: str = ""
    """Why there is no printed number, or what a reader must know of it."""

    def attempt_in(self, column: Column) -> str:
        """Which pictures a place of the table is about; a control is the same in every column, to bracket it."""
        return self.attempt if self.control else column.attempt or self.attempt

    @model_validator(mode="after")
    def _says_why(self) -> "Row":
        if not self.note and (not self.printed or None in self.printed):
            raise ValueError(f"row '{self.title}' has no printed number somewhere: its 'note' must say why")
        return self


class Item(Declared):
    """What tables and figures share. ``paper`` and ``name`` are the folder and the stem of the file."""

    paper: str
    name: str
    title: str
    """'Table I', 'Figure 4'."""
    caption: str
    """As printed."""
    source: str
    """Where the numbers stand: paper, table, section."""
    dataset: Named
    """On whose faces."""
    note: str = ""
    """What a reader must know of the printed numbers."""

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.name}"


class Table(Item):
    endings: ClassVar[tuple[str, ...]] = ("csv", "md", "tex")
    kind: Literal["table"]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    transpose: bool = False
    """The paper prints what is measured as rows, and the methods as columns."""

    @property
    def ours(self) -> bool:
        """Whether the paper prints nothing of this table."""
        return not any(column.printed for column in self.columns)

    @property
    def datasets(self) -> list[Named]:
        """Those of the columns, each once, in their order."""
        return list(dict.fromkeys(column.dataset or self.dataset for column in self.columns))

    @model_validator(mode="after")
    def _rectangular(self) -> "Table":
        printed = [column.printed for column in self.columns]
        if printed != sorted(printed, reverse=True):
            raise ValueError("columns that the paper does not print come after those that it prints")
        for row in self.rows:
            if row.printed and len(row.printed) != sum(printed):
                raise ValueError(
                    f"row '{row.title}' has {len(row.printed)} printed values for {sum(printed)} printed columns"
                )
            for column, number in zip(self.columns, row.printed, strict=False):
                if column.percent and number and number.text.endswith("%"):
                    raise ValueError(
                        f"row '{row.title}': '{number.text}' has a sign, and column '{column.title}' is in percent"
                    )
        return self


class Marker(Declared):
    """A number that the text or a table prints at one place of a curve."""

    at: float
    printed: PrintedNumber
    source: str


class Curve(Measure):
    title: str
    printed: bool = True
    """False: the paper draws no such curve; it is ours."""
    markers: tuple[Marker, ...] = ()


class Panel(Declared):
    title: str
    percent: bool = False
    """The axis is labelled in percent; metric and markers are fractions."""
    curves: tuple[Curve, ...]


class Cell(Declared):
    """One method, with one variant or all that match a pattern (``eps_*``)."""

    title: str
    """May hold facts of the method's statement: 'ε = {epsilon:g}'."""
    method: str
    variant: str


class Curves(Item):
    """Metrics of one method over the variants that match ``variant``, each placed by what it states or measures."""

    endings: ClassVar[tuple[str, ...]] = ("png", "svg")
    kind: Literal["curves"]
    method: str
    variant: str
    fact: str = ""
    """The key of the statement that gives the x axis."""
    x: Measure | None = None
    """The metric that gives the x axis, where no statement does."""
    axis: str
    """The label of the x axis."""
    scale: Literal["log", "linear"] = "log"
    """Of the x axis."""
    states: tuple[str, ...] = ()
    """Further keys of the statement without which the x axis says nothing (the sensitivity)."""
    controls: tuple[Cell, ...] = ()
    """Drawn as horizontal lines."""
    panels: tuple[Panel, ...]

    @model_validator(mode="after")
    def _has_one_axis(self) -> "Curves":
        if bool(self.fact) == (self.x is not None):
            raise ValueError("the x axis is either a 'fact' of the statement or a metric, 'x'")
        return self


class Picture(Cell):
    """A column of a grid."""

    attempt: str = ""
    """Which picture of the face: what was recovered, what a wrong key brought back, ...; '' = the anonymized one."""
    number: Annotated[int, Field(ge=0)] = 0
    """Which of several pictures of one attempt (the second wrong key is 1)."""


class Grid(Item):
    """Pictures: a row a face, a column a method."""

    endings: ClassVar[tuple[str, ...]] = ("png", "svg")
    kind: Literal["grid"]
    faces: Annotated[int, Field(ge=1)]
    """How many faces are shown."""
    choose: Literal["first", "closest_to_mean"]
    """The first faces of the test split, or those (and of each the draw) whose distance is closest to the mean."""
    judge: Named | None = None
    """Whose distance decides."""
    fact: str = ""
    """The key of the statement by which variants of one pattern are ordered."""
    columns: tuple[Picture, ...]

    @model_validator(mode="after")
    def _has_judge(self) -> "Grid":
        if self.choose == "closest_to_mean" and self.judge is None:
            raise ValueError("choose: closest_to_mean needs a 'judge' whose distance decides")
        return self


class Feature(Declared):
    """One of the features that a method takes faces apart into."""

    title: str
    features: str
    """Its key in `Method.features`."""


class Clustered(Feature):
    """A panel: the features of the test faces, coloured by one label."""

    label: str
    """``identity``, or an attribute in CelebA's words."""
    names: tuple[str, ...] = ()
    """What faces are called that have the attribute, and that have it not."""
    people: Annotated[int, Field(ge=0)] = 0
    """The first so many people of the archive alone, where the label is their identity."""

    @model_validator(mode="after")
    def _is_told_apart(self) -> "Clustered":
        identity = self.label == "identity"
        if (identity and (self.names or self.people < 2)) or (not identity and (len(self.names) != 2 or self.people)):
            raise ValueError("an attribute has two 'names', with it and without; identity has 'people', two or more")
        return self


class Clusters(Item):
    """Features of one method in two dimensions, with how well each panel's label is told apart in them."""

    endings: ClassVar[tuple[str, ...]] = ("png", "svg")
    kind: Literal["clusters"]
    method: str
    variant: str
    against: Feature
    """In which features the same labels are told apart for comparison."""
    panels: tuple[Clustered, ...]


Figure = Curves | Grid | Clusters
Reference = Table | Figure
KINDS: dict[str, type[Item]] = {"table": Table, "curves": Curves, "grid": Grid, "clusters": Clusters}


def load(path: Path) -> Reference:
    """Read one reference file. Raises ReferenceFileError naming the file and the key, for the person who wrote it."""
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)  # noqa: S506 - text only
    except OSError as error:
        raise ReferenceFileError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise ReferenceFileError(f"{path} is not valid YAML: {error}") from error
    kind = tree.get("kind") if isinstance(tree, dict) else None
    if kind not in KINDS:
        raise ReferenceFileError(f"{path}: 'kind' is {kind!r}; it must be one of {', '.join(KINDS)}.")
    try:
        return KINDS[kind](**(tree | {"paper": path.parent.name, "name": path.stem}))
    except ValidationError as error:
        told = mistakes.told(error, KINDS[kind], given=("paper", "name"))
        raise ReferenceFileError("\n".join(f"{path}: {line}" for line in told)) from error


def find(paper: str, folder: Path = FOLDER) -> list[Reference]:
    """Every table and figure of one paper, by file name. Raises ReferenceFileError where there is none."""
    paths = sorted((folder / paper).glob("*.yaml"))
    if not paths:
        papers = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        raise ReferenceFileError(f"{folder / paper} declares no table or figure. {mistakes.nearest(paper, papers)}")
    return [load(path) for path in paths]


def needs(item: Reference, offered: Iterable[tuple[str, str]] = ()) -> list[Need]:
    """What ``item`` asks the matrix for, each once, in its order.

    ``offered``: the (method, variant) pairs of the matrix on its datasets, among which a pattern such as ``eps_*``
    chooses. A name without a pattern is asked for whether it is offered or not.
    """
    offered = list(offered)
    asked = [(cell.method, variant) for cell in cells(item) for variant in _variants(cell, offered)]
    return list(dict.fromkeys((dataset.role, *pair) for dataset in datasets(item) for pair in asked))


def attempted(item: Reference, offered: Iterable[tuple[str, str]] = ()) -> list[Need]:
    """Of `needs`, those of which ``item`` shows an attempt: further pictures of the same faces, such as recovered ones.

    Tables and curves find their numbers under ``attempts`` of a cell's metrics, grids their pictures in the cell's
    archive of attempts.
    """
    if isinstance(item, Table):
        pairs = [(row, column) for column in item.columns for row in item.rows if row.attempt_in(column)]
        asked = [((column.dataset or item.dataset).role, row) for row, column in pairs]
    elif isinstance(item, Grid):
        asked = [(item.dataset.role, column) for column in item.columns if column.attempt]
    elif isinstance(item, Curves):
        measures = [curve for panel in item.panels for curve in panel.curves] + [item.x] * (item.x is not None)
        asked = [(item.dataset.role, cells(item)[0])] if any(measure.attempt for measure in measures) else []
    else:
        asked = []
    offered = list(offered)
    return list(dict.fromkeys(
        (role, cell.method, variant) for role, cell in asked for variant in _variants(cell, offered)
    ))  # fmt: skip


def datasets(item: Reference) -> list[Named]:
    """On whose faces; only a table can have several."""
    return item.datasets if isinstance(item, Table) else [item.dataset]


def cells(item: Reference) -> Sequence[Row | Cell]:
    """The methods of a table's rows, a grid's columns, a figure's curves and controls, or its features."""
    if isinstance(item, Table):
        return item.rows
    if isinstance(item, Grid):
        return item.columns
    controls = item.controls if isinstance(item, Curves) else ()
    return (Cell(title="", method=item.method, variant=item.variant), *controls)


def _variants(cell: Row | Cell, offered: Iterable[tuple[str, str]]) -> list[str]:
    if not set("*?[") & set(cell.variant):
        return [cell.variant]
    return [name for method, name in offered if method == cell.method and fnmatchcase(name, cell.variant)]


def stand_in(named: Named, stand_ins: Mapping[str, str]) -> str:
    """Who stands here in the place of a paper's dataset or judge; a role without an entry is our own judge."""
    return stand_ins.get(named.role, named.role)
