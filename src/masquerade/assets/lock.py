"""``assets.lock.yaml``: what each file was when this lab first saw it (trust on first use). Committed by the lab.

What publishers give the SHA-256 of is held to that; all else is held to the file that was there first.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock
from pydantic import Field, ValidationError

from masquerade.errors import AssetError
from masquerade.settings import Settings

LOCK = Path("assets.lock.yaml")
HEADER = """\
# Files from outside, as they were when they were first seen here (docs/assets.md). Written by `masquerade assets`;
# commit it: whoever builds from this commit is held to the same bytes.
"""


class Seen(Settings):
    """A file, or all files of a folder, as first seen."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the bytes; for a folder, of the sorted lines "<sha256>  <path>" of its files."""
    size: int
    """Bytes; of a folder, of all its files together."""
    first_seen: str
    """When: ISO 8601, UTC."""
    origin: str
    """Where from: an address, ``placed`` (`masquerade assets place`) or ``found`` (`masquerade assets verify`)."""
    rehearsal: bool
    """Whether it only plays the part of the published file: nothing that it makes may enter a table."""


Lock = dict[str, dict[str, Seen]]
"""role -> name of the file or folder -> what it was."""


def read(root: Path = Path()) -> Lock:
    """What was seen; nothing where there is no lock yet. Raises AssetError where the file is damaged."""
    file = root / LOCK
    if not file.is_file():
        return {}
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or {}
        return {role: {name: Seen(**seen) for name, seen in files.items()} for role, files in content.items()}
    except (yaml.YAMLError, ValidationError, AttributeError, TypeError) as error:
        raise AssetError(
            f"{file} is damaged. Take it back from git (`git checkout {LOCK}`), or delete it and run "
            "`masquerade assets verify`, which records what is there now."
        ) from error


def seen(role: str, name: str, root: Path = Path()) -> Seen | None:
    """What a file was when it was first seen; None where it never was."""
    return read(root).get(role, {}).get(name)


def record(role: str, name: str, sha256: str, size: int, origin: str, rehearsal: bool, root: Path = Path()) -> Seen:
    """Write down a file that is seen for the first time; processes that do so at one time wait for each other.

    What was recorded stays: raises AssetError where another file was. A rehearsal's file gives way to any other.
    """
    new = Seen(
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


def _contradiction(role: str, name: str, old: Seen, new: Seen) -> str:
    if new.rehearsal:
        return f"{LOCK} knows the real {name} of '{role}': rehearse in another folder."
    return (
        f"{LOCK} knows another {name} of '{role}': its SHA-256 was {old.sha256} on {old.first_seen}, and now it is "
        f"{new.sha256}. If you trust the new one, delete the old entry by hand, and say why in the commit."
    )


def _write(lock: Mapping[str, Mapping[str, Seen]], root: Path) -> None:
    content: dict[str, Any] = {
        role: {name: lock[role][name].model_dump() for name in sorted(lock[role])} for role in sorted(lock)
    }
    temporary = root / f".{LOCK}.{os.getpid()}.part"
    temporary.write_text(HEADER + yaml.safe_dump(content, sort_keys=False, width=1000), encoding="utf-8")
    temporary.replace(root / LOCK)
