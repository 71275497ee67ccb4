"""Whether what lies in ``assets/`` is still what it was: every byte is read again."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from masquerade.assets import checking, lock
from masquerade.assets.admitting import compared
from masquerade.assets.entries import File, Folder
from masquerade.assets.hashing import hashes, tree


@dataclass(frozen=True)
class Finding:
    """What is to be said of one part of a role."""

    role: str
    name: str
    word: Literal["ok", "recorded", "altered", "missing"]
    told: str

    @property
    def ok(self) -> bool:
        return self.word in ("ok", "recorded")


def verify(role: str, root: Path = Path()) -> Iterator[Finding]:
    """Hash every part of a role and compare it; what was not known is recorded. Large folders take their time."""
    for name in checking.missing(role, root):
        yield Finding(role, name, "missing", checking.how_to_get(role))
    for part, place in checking.present(role, root):
        seen = lock.seen(role, part.name, root)
        trouble, sha256, size = _file(part, place, seen) if isinstance(part, File) else _folder(part, place, seen)
        published = isinstance(part, File) and bool(part.sha256)
        if trouble:
            yield Finding(role, part.name, "altered", trouble)
        elif seen:
            yield Finding(role, part.name, "ok", f"{'a rehearsal, ' if seen.rehearsal else ''}as on {seen.first_seen}")
        else:
            lock.record(role, part.name, sha256, size, "found", False, root)
            told = "has the published SHA-256" if published else f"trusted on first use: SHA-256 {sha256}"
            yield Finding(role, part.name, "ok" if published else "recorded", told)


def _file(part: File, place: Path, seen: lock.Seen | None) -> tuple[str, str, int]:
    sha256, md5 = hashes(place)
    size = place.stat().st_size
    return compared(part, seen, size, sha256, md5), sha256, size


def _folder(part: Folder, place: Path, seen: lock.Seen | None) -> tuple[str, str, int]:
    count, size, sha256 = tree(place)
    if part.count is not None and count != part.count and not (seen and seen.rehearsal):
        return f"is not whole: it has {count} files, its publisher gives {part.count}.", sha256, size
    if seen and seen.sha256 != sha256:
        return f"is not as on {seen.first_seen}: a file in it was changed, added or removed.", sha256, size
    return "", sha256, size
