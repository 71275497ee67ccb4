"""The classes of a table in a reference file, with its printed numbers, and what tables and figures share."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from masquerade.core.settings import Settings

Direction = Literal["higher", "lower", "none"]
Need = tuple[str, str, str]
"""(dataset role, method, variant): what a table, figure or claim needs from the matrix."""


class Printed(Settings):
    """A number as the paper prints it: the ``text`` and its ``value``. A percent sign divides the value by 100."""

    text: str
    value: float
    spread: float | None = None
    """The number behind the ± sign."""

    def scale(self, factor: float) -> "Printed":
        """The same text with its value and spread in another unit."""
        spread = None if self.spread is None else self.spread * factor
        return self.model_copy(update={"value": self.value * factor, "spread": spread})


def _parse_printed(text: Any) -> Any:
    """'0.965 ± 0.016', '1.0280', '3.2e-4', '97.367%' or 'null' (the paper gives none) -> Printed or None."""
    if not isinstance(text, str) or text == "null":
        return None if text == "null" else text
    number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
    if not (match := re.fullmatch(rf"({number})(?: ± ({number}))?(%?)", text)):
        raise ValueError(f"'{text}' is not a printed number such as 1.0280, 0.965 ± 0.016, 97.367%, or null for none")
    unit = 0.01 if match[3] else 1.0
    return {"text": text, "value": float(match[1]) * unit, "spread": match[2] and float(match[2]) * unit}


PrintedNumber = Annotated[Printed | None, BeforeValidator(_parse_printed)]
KnownNumber = Annotated[Printed, BeforeValidator(_parse_printed)]
"""A number that the paper gives: null is refused."""


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
    """The images: ``recovered``, ``wrong`` (a wrong key), ...; '' = the anonymized images."""


class Column(Measure):
    """A column of a table."""

    title: str
    """The header as printed."""
    group: str = ""
    """The header above it, shared with its neighbors."""
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
    """The images, in every column that names no attempt of its own."""
    printed: tuple[PrintedNumber, ...] = ()
    """One number for each printed column, in their order. Empty if the paper has no such row."""
    control: bool = False
    """A control gives the floor or the ceiling of a metric. It is never the best of a column."""
    note: str = ""
    """Why there is no printed number, or what a reader must know of it."""

    def attempt_in(self, column: Column) -> str:
        """The images behind one place of the table. A control has the same images in every column."""
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
    kind: Literal["table", "leaderboard"]
    """A leaderboard also ranks its rows in each column, and is a file of its own (papers/leaderboard.py)."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    transpose: bool = False
    """The paper prints the measures as rows and the methods as columns."""
    imported: bool = True
    """Whether images of other programs get a row."""

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
