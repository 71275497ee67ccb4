"""The page of one program whose images were scored: where it stands among all methods, and its extreme faces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from masquerade.core.discovery import IMPORTED
from masquerade.core.images import FaceArchive
from masquerade.papers import grids, layout
from masquerade.papers.context import Context
from masquerade.papers.documents import markdown_grid
from masquerade.papers.leaderboard import RANKS, Rank
from masquerade.params import sharing

SHOWN = 4
"""Faces with the smallest distance, and faces with the largest."""
JUDGE = "dlib_face"
CONTROLS = ("original", "random_identity")
Record = Mapping[str, str]
"""A line of leaderboard.csv."""


@dataclass(frozen=True)
class Standing:
    """One column of the leaderboard, for one method: its record, the best one, and those of the controls."""

    own: Record
    ranked: int
    best: Record
    controls: Mapping[str, Record]
    """By the title of their row."""

    @property
    def rank(self) -> str:
        return f"{Rank(int(self.own['rank_first']), int(self.own['rank_last']))} of {self.ranked}"


def explain_absence(records: Sequence[Record], variant: str) -> str:
    """Why a leaderboard has no row of a program, as one sentence; '' if it has one."""
    if _select_own(records, variant):
        return ""
    return f"The leaderboard is of `{records[0]['dataset']}`, and no images of this dataset were scored."


def find_standings(records: Sequence[Record], variant: str) -> list[Standing]:
    """The columns in which a program has a number, from the records of a leaderboard."""
    standings = []
    for own in _select_own(records, variant):
        if not own["measured"]:
            continue
        column = [record for record in records if record["column"] == own["column"] and record["measured"]]
        ranked = [record for record in column if record["rank_first"]]
        if own["rank_first"]:
            sign = 1 if own["direction"] == "lower" else -1
            best = min(ranked, key=lambda record: sign * float(record["measured"]))
            controls = {record["row"]: record for record in column if record["method"] in CONTROLS}
            standings.append(Standing(own, len(ranked), best, controls))
    return standings


def explain_missing(records: Sequence[Record], variant: str) -> list[str]:
    """What a program has no number for, one line for each reason."""
    titles: dict[str, list[str]] = {}
    for own in _select_own(records, variant):
        if own["reason"] and not own["measured"]:
            titles.setdefault(own["reason"].rstrip("."), []).append(own["column"])
    return [f"{', '.join(names)}: {reason}." for reason, names in titles.items()]


def _select_own(records: Sequence[Record], variant: str) -> list[Record]:
    return [record for record in records if record["method"] == IMPORTED and record["variant"] == variant]


def write(
    records: Sequence[Record], variant: str, about: Mapping[str, str], refused: tuple[int, int], context: Context
) -> str:
    """The page as Markdown.

    ``about``: title and source of the program. ``refused``: faces without an image, of all that the program got.
    """
    if absence := explain_absence(records, variant):
        place, missing = [absence], []
    else:
        place = [
            _format_standings(find_standings(records, variant)),
            f"{RANKS} The numbers of all methods: [leaderboard](../leaderboard.md).",
        ]
        reasons = explain_missing(records, variant) or ["Nothing."]
        missing = ["## What is missing", "\n".join(f"- {reason}" for reason in reasons)]
    parts = [
        f"# Score of {about['title']}",
        f"*{about['source']}*",
        f"> Scale `{context.scale}`. {context.caution}".rstrip(),
        f"{refused[1] - refused[0]} of {refused[1]} test faces have an image. A face without one counts as refused: it "
        "is a failure in each share where higher is better.",
        describe_attackers(records, variant),
        "## Where it stands",
        *place,
        "## Faces",
        f"![The faces with the smallest and the largest distance]({variant}.png)",
        f"Left: the {SHOWN} faces whose image is nearest to the original by `{JUDGE}`, so look here for people who are "
        f"still recognized. Right: the {SHOWN} farthest.",
        *missing,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _format_standings(standings: Sequence[Standing]) -> str:
    controls = list(dict.fromkeys(title for standing in standings for title in standing.controls))
    rows = [
        [
            standing.own["column"],
            format_number(standing.own),
            standing.rank,
            f"{format_number(standing.best)} ({standing.best['row']})",
            *(format_number(standing.controls[title]) if title in standing.controls else layout.NONE
              for title in controls),
        ]
        for standing in standings
    ]  # fmt: skip
    return markdown_grid(["Column", "Here", "Rank", "Best", *controls], rows, left=1)


def describe_attackers(records: Sequence[Record], variant: str) -> str:
    """How many images the naive and the strongest attacker identify, as one sentence; '' if none was measured."""
    own = {
        record["part"]: record
        for record in _select_own(records, variant)
        if record["metric"] == "attack_rank1_rate" and record["measured"]
    }
    if "strongest" not in own:
        return ""
    name, _, note = own["strongest"]["note"].partition(": ")
    naive = ""
    if "naive" in own and name != "naive":
        naive = f"; the naive attacker, who knows nothing about the method, identifies {format_number(own['naive'])} %"
    return (
        f"The strongest attacker (`{name}`, {note.split(',')[0]}) identifies {format_number(own['strongest'])} % of "
        f"the images (rank 1){naive}."
    )


def format_number(record: Record) -> str:
    """The value of a record with its interval, as `format_value` gives them."""
    interval = f" [{format_value(record, 'low')}, {format_value(record, 'high')}]" if record["low"] else ""
    return format_value(record) + interval


def format_value(record: Record, key: str = "measured") -> str:
    """One number of a record, in percent in a column of percent."""
    unit, digits = (100.0, 1) if "(%)" in record["column"] else (1.0, 3)
    return f"{float(record[key]) * unit:z.{digits}f}"


def select_extremes(distances: grids.Distances) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `SHOWN` draws with the smallest and with the largest distance, from the extreme ones on."""
    measured = distances[distances["distance"].notna()].sort_values("distance", kind="stable")
    return measured.head(SHOWN), measured.tail(SHOWN).iloc[::-1]


def draw(
    source: FaceArchive, derived: FaceArchive, distances: grids.Distances, private: bool, context: Context,
    output: Path,
) -> None:  # fmt: skip
    """The faces of `select_extremes`: each original beside its image. ``private``: no image may be drawn."""
    nearest, farthest = select_extremes(distances)
    rows: list[list[np.ndarray | str]] = [[] for _ in range(max(len(nearest), len(farthest)))]
    for extremes in (nearest, farthest):
        for row, name in zip(rows, extremes["source_id"], strict=False):
            for archive, column in ((source, "id"), (derived, "source_id")):
                images = archive.load(rows=archive.index[archive.index[column] == name].head(1)).images
                row.append(grids.NOT_SHOWN if private else images[0])
    texts = [
        f"{title}, from above: {', '.join(f'{value:.2f}' for value in extremes['distance'])}."
        for title, extremes in (("Nearest", nearest), ("Farthest", farthest))
    ]
    notes = [f"Scale {context.scale}. Distance by {JUDGE}. {' '.join(texts)}"]
    if private:
        notes = [sharing.explain_withheld(derived.metadata["dataset"]), *notes]
    grids.draw_tiles(["original", "nearest", "original", "farthest"], rows or [[layout.NONE] * 4], notes, [output],
                     source.metadata["size"])  # fmt: skip
