"""The rows of a batch that was stopped: `masquerade anonymize --continue` keeps them and makes the others."""

from itertools import groupby
from pathlib import Path

from masquerade.core.errors import MasqueradeError, PictureError
from masquerade.core.images import OK
from masquerade.pipeline import makers, reports, salts
from masquerade.pipeline.makers import Maker
from masquerade.pipeline.release import Anonymized, Row
from masquerade.pipeline.salts import PersonalKey


def kept(output: Path, maker: Maker, key: PersonalKey | None, large: bool, whole: bool) -> list[Row]:
    """The rows of each photograph that is complete: judged, with its files there. [] without a report.

    A photograph that was refused before a method saw it is not kept, because it may have been mended since. ``large``,
    ``whole``: these pictures belong to it too. Raises MasqueradeError if the report is of another method, variant,
    scale, network or key: half of the results would be of each.
    """
    path = output / reports.REPORT
    rows = [{column: row.get(column, "") for column in Anonymized.columns} for row in reports.read(path)]
    others = {row[makers.MAKER] for row in rows} - {"", str(maker)}
    if others:
        raise MasqueradeError(f"{path} is of '{min(others)}', and this is '{maker}'. Name another folder.")
    checked = [row for row in rows if row[salts.CHECK] not in ("", salts.UNCHECKED)]
    if key and checked:
        try:
            key.verify(checked[0][salts.SALT], checked[0][salts.CHECK])
        except PictureError as error:
            raise MasqueradeError(f"{path} is of another key ({error}). Name another folder.") from error

    def complete(row: Row) -> bool:
        named = [row["output"], *([row["large"]] if large else [])] if row["status"] == OK else []
        if whole and not row["photograph_reason"]:
            named.append(row["photograph"])
        return all(name and _there(output / name) for name in named)

    groups = [list(group) for _, group in groupby(rows, key=lambda row: row["file"])]
    return [row for group in groups if _identified(group) and all(map(complete, group)) for row in group]


def _identified(rows: list[Row]) -> bool:
    """Whether a method saw the photograph, and its name is whole: two names without valid text may look alike."""
    return any(row[makers.MAKER] for row in rows) and "\ufffd" not in rows[0]["file"]


def _there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
