"""The classes of the figures in reference files, and all kinds of tables and figures."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from masquerade.core.canvas import COLORS, LINE_STYLES
from masquerade.papers.declarations import Declared, Item, KnownNumber, Measure, Named, PrintedNumber, Table


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
    """The axis is labeled in percent; metric and markers are fractions."""
    curves: Annotated[tuple[Curve, ...], Field(min_length=1, max_length=len(COLORS))]
    """At most one for each color that a reader can tell apart."""


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
    controls: Annotated[tuple[MethodVariant, ...], Field(max_length=len(LINE_STYLES))] = ()
    """Drawn as horizontal lines, each in a style of its own."""
    panels: tuple[Panel, ...]

    @model_validator(mode="after")
    def _has_one_axis(self) -> "Curves":
        if bool(self.fact) == (self.x is not None):
            raise ValueError("the x axis is either a 'fact' of the statement or a metric, 'x'")
        return self


class Axis(Measure):
    """An axis of a trade-off. Better values are up or to the right."""

    title: str
    direction: Literal["higher", "lower"]
    percent: bool = False
    """The axis is labeled in percent; the metric is a fraction."""


class Tradeoff(Item):
    """Privacy against utility, one point for each method, and a hollow point for its privacy under a naive attacker."""

    endings: ClassVar[tuple[str, ...]] = ("png", "svg")
    kind: Literal["tradeoff"]
    privacy: Axis
    """Of the strongest attacker."""
    naive: Measure
    """Of the naive attacker, on the same axis."""
    utility: Axis
    settings: tuple[MethodVariant, ...]
    controls: tuple[MethodVariant, ...] = ()
    """Drawn in gray. They are not on the front of the best methods."""

    @model_validator(mode="after")
    def _has_one_variant_a_point(self) -> "Tradeoff":
        for entry in (*self.settings, *self.controls):
            if set("*?[") & set(entry.variant):
                raise ValueError(f"'{entry.title}' is one point: its 'variant' is a name and no pattern")
        return self


class Picture(MethodVariant):
    """A column of a grid."""

    attempt: str = ""
    """The image of the face: ``recovered``, ``wrong`` (a wrong key), ...; '' = the anonymized one."""
    number: Annotated[int, Field(ge=0)] = 0
    """Selects one of several images of an attempt (the second wrong key is 1)."""
    difference: Annotated[float, Field(ge=0)] = 0
    """Above 0: the absolute difference between image and original in each color, times this; black is none."""


class Grid(Item):
    """Images: one row for each face, one column for each method."""

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
    """A panel: the features of the test faces, colored by one label."""

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


Figure = Curves | Tradeoff | Grid | Clusters
Reference = Table | Figure
KINDS: dict[str, type[Reference]] = {
    "table": Table,
    "leaderboard": Table,
    "curves": Curves,
    "tradeoff": Tradeoff,
    "grid": Grid,
    "clusters": Clusters,
}
