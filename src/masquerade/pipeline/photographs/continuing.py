"""The rows of a batch that was stopped: a batch that goes on keeps them and makes the others."""

from pathlib import Path

from masquerade.core.errors import MasqueradeError, PictureError
from masquerade.core.images import OK
from masquerade.methods import Method
from masquerade.pipeline import makers, reports, salts
from masquerade.pipeline.makers import Maker
from masquerade.pipeline.release import Anonymized, Row
from masquerade.pipeline.salts import PersonalKey
from masquerade.pipeline.whole_photographs import HIDDEN


def resume(output: Path, method: Method, maker: Maker, key: PersonalKey | None, large: bool, whole: bool) -> list[Row]:
    """The rows of each photograph that is complete: judged, with its files there. [] without a report.

    The pictures of the other rows are removed. A photograph that was refused before a method saw it is not kept,
    because it may have been mended since. ``large``, ``whole``: these pictures belong to it too.
    Raises MasqueradeError if the report is of another method, variant, scale, network or key, because half of the
    results would be of each, and for a method that sees all faces together.
    """
    path = output / reports.REPORT
    rows = [{column: row.get(column, "") for column in Anonymized.columns} for row in reports.read(path)]
    if rows and method.observes:
        raise MasqueradeError(f"{method.title} must see all faces together, so it cannot go on. Take --overwrite.")
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

    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["file"], []).append(row)
    kept: list[Row] = []
    for group in groups.values():
        if _identified(group) and all(map(complete, group)):
            kept += group
        else:
            _remove(output, group)
    return kept


def _remove(output: Path, rows: list[Row]) -> None:
    """Remove the pictures that rows name, inside ``output`` alone: somebody may have edited the report."""
    for path in [output / row[column] for row in rows for column in ("output", "large", "photograph") if row[column]]:
        if path.is_file() and path.resolve().is_relative_to(output.resolve()):
            path.unlink()


def _identified(rows: list[Row]) -> bool:
    """Whether a method saw the photograph, or all its faces were hidden, and its name is whole: two names without valid
    text may look alike.
    """
    return any(row[makers.MAKER] or row["status"] == HIDDEN for row in rows) and "\ufffd" not in rows[0]["file"]


def _there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
