"""Verifies the files in ``assets/``: reads every byte again and compares the hashes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from masquerade.assets import checking, lock
from masquerade.assets.admitting import problem_of
from masquerade.assets.entries import File, Folder
from masquerade.assets.hashing import hashes, tree


@dataclass(frozen=True)
class Finding:
    """The result for one part of a role."""

    role: str
    name: str
    state: Literal["ok", "recorded", "altered", "missing"]
    text: str
    """The details, for the user."""

    @property
    def ok(self) -> bool:
        return self.state in ("ok", "recorded")


def verify(role: str, root: Path = Path()) -> Iterator[Finding]:
    """Hash every part of a role and compare it with the registry and the lock; a part without a record is recorded.

    Large folders take long.
    """
    for name in checking.missing(role, root):
        yield Finding(role, name, "missing", checking.how_to_get(role))
    for part, place in checking.present(role, root):
        old = lock.recorded(role, part.name, root)
        problem, sha256, size = _file(part, place, old) if isinstance(part, File) else _folder(part, place, old)
        published = isinstance(part, File) and bool(part.sha256)
        if problem:
            yield Finding(role, part.name, "altered", problem)
        elif old:
            yield Finding(role, part.name, "ok", f"{'a rehearsal, ' if old.rehearsal else ''}as on {old.first_seen}")
        else:
            lock.record(role, part.name, sha256, size, "found", False, root)
            text = "has the published SHA-256" if published else f"trusted on first use: SHA-256 {sha256}"
            yield Finding(role, part.name, "ok" if published else "recorded", text)


def _file(part: File, place: Path, record: lock.Record | None) -> tuple[str, str, int]:
    """(the problem or '', SHA-256, bytes)."""
    sha256, md5 = hashes(place)
    size = place.stat().st_size
    return problem_of(part, record, size, sha256, md5), sha256, size


def _folder(part: Folder, place: Path, record: lock.Record | None) -> tuple[str, str, int]:
    """(the problem or '', SHA-256, bytes)."""
    count, size, sha256 = tree(place)
    if part.count is not None and count != part.count and not (record and record.rehearsal):
        return f"is not complete: it has {count} files, its publisher gives {part.count}.", sha256, size
    if record and record.sha256 != sha256:
        return f"is not as on {record.first_seen}: a file in it was changed, added or removed.", sha256, size
    return "", sha256, size
