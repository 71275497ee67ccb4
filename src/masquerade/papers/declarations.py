"""The classes that a reference file declares: tables, curves, grids and clusters, with their printed numbers."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from masquerade.core.settings import Settings
from masquerade.papers.printed import KnownNumber, PrintedNumber

Direction = Literal["higher", "lower", "none"]
Need = tuple[str, str, str]
"""(dataset role, method, variant): what a table, figure or claim needs from the matrix."""


class Declared(Settings):
    """A block of a reference file. Unknown keys are errors, as in params.yaml."""


class Named(Declared):
    """A dataset or judge of the paper."""

    name: str
    """As the paper writes it."""
    role: str
    """Its key under ``stand_ins`` of params.yaml, or the name of one of our own judges."""


class Measure(Declared):
    """One number among a cell's metrics."""

    metric: str
    """The module in metrics/."""
    judge: Named | None = None
    """Left out if the metric has no judge."""
    part: str = ""
    """Selects one value if the metric gives several for a judge (an attribute of a face)."""
    attempt: str = ""
    """The pictures: ``recovered``, ``wrong`` (a wrong key), ...; '' = the anonymized pictures."""


class Column(Measure):
    """A column of a table."""

    title: str
    """The header as printed."""
    group: str = ""
    """The header above it, shared with its neighbours."""
    dataset: Named | None = None
    """The dataset, if it is not that of the table."""
    substitute: str = ""
    """The title of the measured value if another judge replaces the paper's (FID: 'FD')."""
    direction: Direction
    """Which values are better."""
    digits: Annotated[int, Field(ge=0, le=6)]
    """Digits of the measured value behind the point."""
    percent: bool = False
    """The paper prints shares as 99.99, without a sign. The measured share is shown in the same unit."""
    spread: Literal["seeds", "metric"] = "seeds"
    """What ± means: the standard deviation over seeds, or the one that the metric's own protocol reports (folds)."""
    printed: bool = True
    """False: the paper has no such column; it is ours."""


class Row(Declared):
    """A row of a table: one variant of one method, with its printed numbers."""

    title: str
    """The label as printed."""
    method: str
    variant: str
    attempt: str = ""
    """The pictures, in every column that names no attempt of its own."""
    printed: tuple[PrintedNumber, ...] = ()
    """One number for each printed column, in their order. Empty if the paper has no such row."""
    control: bool = False
    """A control gives the floor or the ceiling of a metric. It is never the best of a column."""
    note: str = ""
    """Why there is no printed number, or what a reader must know of it."""

    def attempt_in(self, column: Column) -> str:
        """The pictures behind one place of the table. A control has the same pictures in every column."""
        return self.attempt if self.control else column.attempt or self.attempt

    @model_validator(mode="after")
    def _says_why(self) -> "Row":
        if not self.note and (not self.printed or None in self.printed):
            raise ValueError(f"row '{self.title}' lacks a printed number: its 'note' must say why")
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
    """The place of the numbers: paper, table, section."""
    dataset: Named
    note: str = ""
    """What a reader must know of the printed numbers."""

    @property
    def key(self) -> str:
        return f"{self.paper}/{self.name}"


class Table(Item):
    """A table: one row for each method, one column for each measure."""

    endings: ClassVar[tuple[str, ...]] = ("csv", "md", "tex")
    kind: Literal["table"]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    transpose: bool = False
    """The paper prints the measures as rows and the methods as columns."""

    @property
    def ours(self) -> bool:
        """Whether the paper prints nothing of this table."""
        return not any(column.printed for column in self.columns)

    @property
    def datasets(self) -> list[Named]:
        """The datasets of the columns, each once, in their order."""
        return list(dict.fromkeys(column.dataset or self.dataset for column in self.columns))

    @model_validator(mode="after")
    def _rectangular(self) -> "Table":
        printed = [column.printed for column in self.columns]
        if printed != sorted(printed, reverse=True):
            raise ValueError("columns that the paper does not print must come after those that it prints")
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
    """A printed number at one place of a curve, from the text or a table of the paper."""

    at: float
    printed: PrintedNumber
    source: str


class Threshold(Declared):
    """A printed number by which a paper decides, such as the largest distance of one person."""

    printed: KnownNumber
    source: str


class Curve(Measure):
    """A curve of a panel: one measure over the variants of the figure."""

    title: str
    printed: bool = True
    """False: the paper draws no such curve; it is ours."""
    markers: tuple[Marker, ...] = ()
    threshold: Threshold | None = None
    """Drawn as a thin line across the panel."""


class Panel(Declared):
    """A panel of curves with one axis."""

    title: str
    percent: bool = False
    """The axis is labelled in percent; metric and markers are fractions."""
    curves: tuple[Curve, ...]


class MethodVariant(Declared):
    """One method, with one variant or with all variants that match a pattern (``eps_*``)."""

    title: str
    """May hold facts of the method's statement: 'ε = {epsilon:g}'."""
    method: str
    variant: str


class Curves(Item):
    """Metrics of one method over the variants that match ``variant``; a fact or a metric gives the x axis."""

    endings: ClassVar[tuple[str, ...]] = ("png", "svg")
    kind: Literal["curves"]
    method: str
    variant: str
    fact: str = ""
    """The key of the statement that gives the x axis."""
    x: Measure | None = None
    """The metric that gives the x axis if no fact does."""
    axis: str
    """The label of the x axis."""
    scale: Literal["log", "linear"] = "log"
    """Of the x axis."""
    states: tuple[str, ...] = ()
    """Further keys of the statement that the x axis needs to have a meaning (the sensitivity)."""
    controls: tuple[MethodVariant, ...] = ()
    """Drawn as horizontal lines."""
    panels: tuple[Panel, ...]

    @model_validator(mode="after")
    def _has_one_axis(self) -> "Curves":
        if bool(self.fact) == (self.x is not None):
            raise ValueError("the x axis is either a 'fact' of the statement or a metric, 'x'")
        return self


class Picture(MethodVariant):
    """A column of a grid."""

    attempt: str = ""
    """The picture of the face: ``recovered``, ``wrong`` (a wrong key), ...; '' = the anonymized one."""
    number: Annotated[int, Field(ge=0)] = 0
    """Selects one of several pictures of an attempt (the second wrong key is 1)."""
    difference: Annotated[float, Field(ge=0)] = 0
    """Above 0: the absolute difference between picture and original in each colour, times this; black is none."""


class Grid(Item):
    """Pictures: one row for each face, one column for each method."""

    endings: ClassVar[tuple[str, ...]] = ("png", "svg")
    kind: Literal["grid"]
    faces: Annotated[int, Field(ge=1)]
    """How many faces are shown."""
    choose: Literal["first", "closest_to_mean"]
    """The first faces of the test split, or the faces (and of each the draw) whose distance is closest to the mean."""
    judge: Named | None = None
    """The judge of that distance."""
    fact: str = ""
    """The key of the statement by which variants of one pattern are ordered."""
    columns: tuple[Picture, ...]

    @model_validator(mode="after")
    def _has_judge(self) -> "Grid":
        if self.choose == "closest_to_mean" and self.judge is None:
            raise ValueError("choose: closest_to_mean needs a 'judge', which measures the distance")
        return self


class Feature(Declared):
    """One kind of features that a method extracts from a face."""

    title: str
    features: str
    """Its key in `Method.features`."""


class Clustered(Feature):
    """A panel: the features of the test faces, coloured by one label."""

    label: str
    """``identity``, or the CelebA name of an attribute."""
    names: tuple[str, ...] = ()
    """Two names: of faces with the attribute, and of faces without it."""
    people: Annotated[int, Field(ge=0)] = 0
    """How many people are shown, the first of the archive, if the label is the identity."""

    @model_validator(mode="after")
    def _has_labels(self) -> "Clustered":
        identity = self.label == "identity"
        if (identity and (self.names or self.people < 2)) or (not identity and (len(self.names) != 2 or self.people)):
            raise ValueError("an attribute has two 'names', with it and without; identity has 'people', two or more")
        return self


class Clusters(Item):
    """Features of one method in two dimensions, with the silhouette score of each panel's label in them."""

    endings: ClassVar[tuple[str, ...]] = ("png", "svg")
    kind: Literal["clusters"]
    method: str
    variant: str
    against: Feature
    """The features in which the same labels are scored for comparison."""
    panels: tuple[Clustered, ...]


Figure = Curves | Grid | Clusters
Reference = Table | Figure
KINDS: dict[str, type[Reference]] = {"table": Table, "curves": Curves, "grid": Grid, "clusters": Clusters}
