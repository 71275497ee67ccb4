"""``assets.lock.yaml``, which a lab commits: size and SHA-256 of each file when it first came in (trust on first use).

A file with a published SHA-256 must have that. Any other file must be the one that the lock recorded first.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock
from pydantic import Field, ValidationError

from masquerade.core import files
from masquerade.core.errors import AssetError
from masquerade.core.settings import Settings

LOCK = Path("assets.lock.yaml")
HEADER = """\
# Files from outside, as they were when they were first seen here (docs/datasets.md). Written by `masquerade assets`;
# commit it: whoever builds from this commit is held to the same bytes.
"""


class Record(Settings):
    """A file, or all files of a folder, when it first came in."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the bytes; for a folder, of the sorted lines "<sha256>  <path>" of its files."""
    size: int
    """Size in bytes; for a folder, of all its files together."""
    first_seen: str
    """Time at which it came in: ISO 8601, UTC."""
    origin: str
    """An address, ``placed`` (`masquerade assets place`) or ``found`` (`masquerade assets verify`)."""
    rehearsal: bool
    """Whether it only stands in for the published file, so that nothing that it makes may enter a table."""


Lock = dict[str, dict[str, Record]]
"""Role -> name of the file or folder -> its record."""


def read(root: Path = Path()) -> Lock:
    """The lock; empty if there is no file yet. Raises AssetError if the file is damaged."""
    file = root / LOCK
    if not file.is_file():
        return {}
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or {}
        return {role: {name: Record(**fields) for name, fields in parts.items()} for role, parts in content.items()}
    except (yaml.YAMLError, ValidationError, AttributeError, TypeError) as error:
        raise AssetError(
            f"{file} is damaged. Restore it from git (`git checkout {LOCK}`), or delete it and run "
            "`masquerade assets verify`, which records the files that are there now."
        ) from error


def recorded(role: str, name: str, root: Path = Path()) -> Record | None:
    """The record of a file or folder, or None if it has none."""
    return read(root).get(role, {}).get(name)


def record(role: str, name: str, sha256: str, size: int, origin: str, rehearsal: bool, root: Path = Path()) -> Record:
    """Record a file that comes in for the first time; concurrent processes wait for each other.

    Raises AssetError if the lock has another file, unless that one was placed for a rehearsal: it is then replaced.
    """
    new = Record(
        sha256=sha256, size=size, first_seen=datetime.now(UTC).isoformat(timespec="seconds"), origin=origin,
        rehearsal=rehearsal,
    )  # fmt: skip
    (root / ".masquerade").mkdir(exist_ok=True)
    with FileLock(root / ".masquerade" / f"{LOCK}.lock"):
        lock = read(root)
        old = lock.setdefault(role, {}).get(name)
        if old and (old.sha256, old.rehearsal) == (new.sha256, new.rehearsal):
            return old
        if old and not old.rehearsal:
            raise AssetError(_contradiction(role, name, old, new))
        lock[role][name] = new
        _write(lock, root)
    return new


def _contradiction(role: str, name: str, old: Record, new: Record) -> str:
    if new.rehearsal:
        return f"{LOCK} has the published {name} of '{role}': rehearse in another folder."
    return (
        f"{LOCK} has another {name} of '{role}': its SHA-256 was {old.sha256} on {old.first_seen}, and now it is "
        f"{new.sha256}. If you trust the new one, delete the old entry by hand, and say why in the commit."
    )


def _write(lock: Mapping[str, Mapping[str, Record]], root: Path) -> None:
    content: dict[str, Any] = {
        role: {name: lock[role][name].model_dump() for name in sorted(lock[role])} for role in sorted(lock)
    }
    files.write_text(root / LOCK, HEADER + yaml.safe_dump(content, sort_keys=False, width=1000), unique=True)
