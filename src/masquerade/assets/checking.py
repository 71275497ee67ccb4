"""Whether a file from outside is there, whole, and the one that is meant."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Literal

from masquerade.assets import lock
from masquerade.assets.lock import LOCK, Seen
from masquerade.assets.registry import Asset, File, Weights, asset
from masquerade.errors import CheckpointError

FOLDER = Path("assets")
State = Literal["there", "missing", "altered", "unrecorded", "rehearsal"]


def path(role: str) -> Path:
    """Where the one file of a role lies, or the folder of a dataset, relative to the repository's root. No check.

    Raises AssetError for a role that the registry does not have.
    """
    found = asset(role)
    return FOLDER / role / found.file.name if isinstance(found, Weights) else FOLDER / role


def checked(role: str, root: Path = Path()) -> Path:
    """`path`, after a check: a weight file is hashed (once a process), of a dataset the parts are there in their sizes.

    Raises CheckpointError, saying what to do, where something is missing, cut, altered, not the one of the lock, or
    recorded by nobody.
    """
    found = asset(role)
    for part in (*found.files, *found.folders):
        if not _is_there(root / FOLDER / role / part.name, part):
            raise CheckpointError(missing(role, part.name))
    for file in found.files:
        place, seen = root / FOLDER / role / file.name, lock.seen(role, file.name, root)
        size = place.stat().st_size
        hashed = digest(place) if isinstance(found, Weights) else None
        trouble = wrong(file, seen, size, hashed)
        if trouble:
            raise CheckpointError(f"{FOLDER / role / file.name} {trouble} {_again(role)}")
        if isinstance(found, Weights) and not (seen or file.sha256):
            raise CheckpointError(
                f"{FOLDER / role / file.name} is there, but its publisher gives no SHA-256 and {LOCK} has none: nobody "
                f"vouches for it. If you trust it, `masquerade assets verify {role}` records it as it is now."
            )
    return root / path(role)


def state(role: str, root: Path = Path()) -> State:
    """The state of a role at a glance, by presence and sizes: nothing is hashed."""
    found, seen = asset(role), lock.read(root).get(role, {})
    parts = [*found.files, *found.folders]
    if not all(_is_there(root / FOLDER / role / part.name, part) for part in parts):
        return "missing"
    for file in found.files:
        size = (root / FOLDER / role / file.name).stat().st_size
        if wrong(file, seen.get(file.name), size, None):
            return "altered"
    if any(item.rehearsal for item in seen.values()):
        return "rehearsal"
    vouched = all(part.name in seen or getattr(part, "sha256", None) for part in parts)
    return "there" if vouched else "unrecorded"


def _is_there(place: Path, part: object) -> bool:
    return place.is_file() if isinstance(part, File) else place.is_dir() and any(place.iterdir())


def wrong(file: File, seen: Seen | None, size: int, sha256: str | None) -> str:
    """What speaks against a file of this size and SHA-256 (None: not hashed), as the end of a sentence; '' for nothing.

    What is published counts, and what was first seen; a rehearsal's file is held to itself alone.
    """
    published = () if seen and seen.rehearsal else ((file.size, file.sha256, "its publisher gives"),)
    recorded = ((seen.size, seen.sha256, f"{LOCK} has, of {seen.first_seen},"),) if seen else ()
    for wanted_size, wanted_sha256, who in (*published, *recorded):
        if wanted_size is not None and size != wanted_size:
            return f"is cut, altered or another file: it has {size} bytes, {who} {wanted_size}."
        if sha256 and wanted_sha256 and sha256 != wanted_sha256:
            return f"is altered or another file: its SHA-256 is {sha256}, {who} {wanted_sha256}."
    return ""


def missing(role: str, name: str) -> str:
    """What to do about a file that is not there, as a sentence or two."""
    return f"{FOLDER / role / name} is missing ({asset(role).title}). {how_to_get(role)}"


def how_to_get(role: str) -> str:
    """How a person comes by the files of a role."""
    found = asset(role)
    if not found.form:
        return f"`masquerade assets fetch {role}` fetches it."
    kind: Asset | str = "weight file" if isinstance(found, Weights) else "dataset"
    return f"This {kind} is behind terms that a person must accept: `masquerade assets fetch {role}` says how."


def _again(role: str) -> str:
    return (
        f"Move it away and get it again (`masquerade assets fetch {role}`). If you trust this one: docs/assets.md, "
        "'The lock'."
    )


def digest(place: Path) -> str:
    """The SHA-256 of a file, computed once a process for as long as the file stays what it is."""
    about = place.stat()
    return _digest(place, about.st_size, about.st_mtime_ns, about.st_ino)


@cache
def _digest(place: Path, size: int, changed: int, inode: int) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
