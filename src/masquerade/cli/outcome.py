"""What `masquerade anonymize` and `recover` print at their end, and the status with which they end."""

from collections import Counter
from pathlib import Path
from statistics import mean

import typer
from rich.table import Table
from rich.text import Text

from masquerade.cli import common
from masquerade.core.errors import MasqueradeError
from masquerade.pipeline.inspection import RECOGNIZED
from masquerade.pipeline.outputs import REPORT
from masquerade.pipeline.release import FILE, FOUND, IMAGE, NO, YES, Row
from masquerade.pipeline.whole_photographs import HIDDEN

INCOMPLETE = 3
"""The status of a run that wrote results, but not all those of every file."""


def summarize(report: list[Row], output: Path, title: str, statement: dict, done: str) -> None:
    """Print how many faces were ``done``, what the judge found, and why others were refused.

    Raises MasqueradeError when none was done and no photograph was written, and typer.Exit(INCOMPLETE) when a file
    lacks a result.
    """
    table = Table("faces", "outcome", title=Text(title))
    written = [row for row in report if row["output"]]
    common.add_row(table, str(len(written)), Text(f"{done}, in {output}", style="green"))
    for lines in (_count_recognized(written, done), _count_refusals(report), _count_photographs(report)):
        for count, text, style in lines:
            common.add_row(table, str(count), Text(text, style=style))
    for fact, value in statement.items():
        common.add_row(table, "", Text(f"{fact}: {value}", style="dim"))
    common.print_table(table)
    if not written and not any(row.get("photograph") for row in report):
        raise MasqueradeError(f"No face could be {done}; the reasons are in {output / REPORT}.")
    if any((not row["output"] and row["status"] != HIDDEN) or row.get("photograph_reason") for row in report):
        common.print_error(f"Not every file has its results: see {output / REPORT}.", "yellow")
        raise typer.Exit(INCOMPLETE)


Line = tuple[int, str, str]
"""A number of faces or photographs, a text about them, and its style."""


def _count_recognized(written: list[Row], done: str) -> list[Line]:
    lines: list[Line] = []
    compared = [row for row in written if row.get("distance")]
    recognized = [row for row in compared if row["recognized"] == YES]
    if any("face" in row for row in written):
        found = sum(row["face"] == FOUND for row in written)
        text = f"of them show a face that a detector finds ({found / len(written):.0%})"
        lines.append((found, text, "green" if found == len(written) else "yellow"))
        if recognized:
            text = f"of them are {RECOGNIZED}, and written because of --keep-recognizable ({_range(recognized)})"
            lines.append((len(recognized), text, "red"))
    elif compared:
        text = f"of {len(compared)} {done} faces are recognized as the original (by dlib; {_range(compared)})"
        lines.append((len(recognized), text, "green"))
        nearness = mean(float(row["psnr"]) for row in compared)
        lines.append((len(compared), f"compared with the original: PSNR {nearness:.1f} dB on average", "green"))
    if count := sum(row.get("record") == YES for row in written):
        lines.append((count, "of them hold a sealed record of the original face", "dim"))
    for source, text in ((FILE, "came from the sealed record in their file"), (IMAGE, "came from their image alone")):
        if count := sum(row.get("recovered_from") == source for row in written):
            lines.append((count, text, "dim"))
    unsalted = sum(row.get("salted") == NO for row in written)
    if unsalted:
        lines.append((unsalted, "had no salt, and were recovered with the key alone", "dim"))
    return lines


def _count_refusals(report: list[Row]) -> list[Line]:
    counts = Counter(row["reason"] for row in report if row["reason"] and row["status"] != HIDDEN)
    lines: list[Line] = []
    for reason, count in counts.most_common():
        rows = [row for row in report if row["reason"] == reason]
        distances = f" ({_range(rows)})" if reason == RECOGNIZED else ""
        lines.append((count, f"refused: {reason}{distances}", "yellow"))
    return lines


def _count_photographs(report: list[Row]) -> list[Line]:
    """One line for the photographs that were written, and one for each reason of a refusal. A file counts once."""
    outcomes = {row["file"]: row for row in report if row.get("photograph") or row.get("photograph_reason")}
    if not outcomes:
        return []
    counts = Counter(row["photograph_reason"] for row in outcomes.values())
    hidden = sum(int(row.get("photograph_hidden") or 0) for row in outcomes.values())
    done = "every face replaced or hidden" if hidden else "every face replaced"
    lines: list[Line] = [(counts.pop("", 0), f"whole photographs written, {done}", "green")]
    if hidden:
        why = "too small, or only found by the last search"
        lines.append((hidden, f"faces hidden in them under coarse blocks, because they are {why}", "yellow"))
    return lines + [(count, f"whole photographs refused: {reason}", "yellow") for reason, count in counts.most_common()]


def _range(rows: list[Row]) -> str:
    """The distances of ``rows`` beside their threshold."""
    nearest, *between = sorted({row["distance"] for row in rows}, key=float)
    return f"distance {nearest}{f' to {between[-1]}' if between else ''}; threshold {rows[0]['threshold']}"
