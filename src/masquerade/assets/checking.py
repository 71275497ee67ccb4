"""Whether a file from outside is there, whole, and the one that is meant."""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from masquerade import rehearsal, repeated
from masquerade.assets import lock
from masquerade.assets.entries import Asset, Dataset, File, Folder, Remote, Weights, asset
from masquerade.assets.lock import LOCK, Seen
from masquerade.errors import CheckpointError, RehearsalError

FOLDER = Path("assets")
State = Literal["there", "missing", "altered", "unrecorded", "rehearsal"]


def path(role: str) -> Path:
    """Where the one file of a role lies, or the folder of a dataset, relative to the repository's root. No check.

    Raises AssetError for a role that the registry does not have.
    """
    found = asset(role)
    return FOLDER / role / found.file.name if isinstance(found, Weights) else FOLDER / role


def checked(role: str, root: Path = Path()) -> Path:
    """`path`, after a check.

    A weight file is hashed, once a process. A dataset is too large for that (`masquerade assets verify` does it): its
    parts are there, and its files have the sizes of the registry and the lock. Raises CheckpointError, saying what to
    do, where something is missing, cut, altered, not the one of the lock, or a weight file that nobody vouches for;
    RehearsalError for one that was placed for a rehearsal, where this is none.
    """
    found = asset(role)
    if repeated.watcher() is not None:  # who counts what a step costs needs no numbers
        return root / path(role)
    for name in missing(role, root):
        raise CheckpointError(f"{FOLDER / role / name} is missing ({found.title}). {how_to_get(role)}")
    for file, place in present(role, root):
        if isinstance(file, Folder):
            continue
        seen = lock.seen(role, file.name, root)
        if seen and seen.rehearsal and not rehearsal.on():
            raise RehearsalError(
                f"{FOLDER / role / file.name} was placed for a rehearsal, and nothing else may use it: it only plays "
                f"the part of the published file. Move it away and get that file. {how_to_get(role)}"
            )
        trouble = wrong(file, seen, place.stat().st_size, digest(place) if isinstance(found, Weights) else None)
        if trouble:
            raise CheckpointError(f"{place.relative_to(root)} {trouble} {_again(role)}")
        if isinstance(found, Weights) and not (seen or file.sha256):
            raise CheckpointError(
                f"{FOLDER / role / file.name} is there, but nobody vouches for it: its publisher gives no SHA-256, and "
                f"{LOCK} has none. If you trust it, `masquerade assets verify {role}` records it as it is now."
            )
    return root / path(role)


def state(role: str, root: Path = Path()) -> State:
    """The state of a role at a glance, by presence and sizes: nothing is hashed."""
    if missing(role, root):
        return "missing"
    seen = lock.read(root).get(role, {})
    parts = list(present(role, root))
    for part, place in parts:
        if isinstance(part, File) and wrong(part, seen.get(part.name), place.stat().st_size, None):
            return "altered"
    if any(item.rehearsal for item in seen.values()):
        return "rehearsal"
    vouched = all(part.name in seen or (isinstance(part, File) and part.sha256) for part, _ in parts)
    return "there" if vouched else "unrecorded"


def missing(role: str, root: Path = Path()) -> list[str]:
    """Names of the parts that are not there, below ``assets/<role>/``; a folder that holds the same will do."""
    found = asset(role)
    there = {part.name for part, _ in present(role, root)}
    unpacked = {name for tree in found.trees if tree.name in there for name in tree.instead_of}
    lost = [file.name for file in found.parts if file.name not in there | unpacked]
    return lost + [tree.name for tree in found.trees if not tree.instead_of and tree.name not in there]


def present(role: str, root: Path = Path()) -> Iterator[tuple[File | Folder, Path]]:
    """The parts of a role that are there, each with its place."""
    found, folder = asset(role), root / FOLDER / role
    for part in (*found.parts, *found.trees):
        is_there = Path.is_file if isinstance(part, File) else _is_filled
        place = next((place for within in found.places if is_there(place := folder / within / part.name)), None)
        if place:
            yield part, place


def _is_filled(place: Path) -> bool:
    return place.is_dir() and next(place.iterdir(), None) is not None


def wrong(file: Remote, seen: Seen | None, size: int, sha256: str | None) -> str:
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


def how_to_get(role: str) -> str:
    """How a person comes by the files of a role."""
    found: Asset = asset(role)
    if not found.steps:
        return f"`masquerade assets fetch {role}` fetches it."
    kind = "dataset" if isinstance(found, Dataset) else "file"
    return f"The {kind} has terms that a person must accept: `masquerade assets fetch {role}` says how to come by it."


def _again(role: str) -> str:
    return (
        f"Move it away and get it again (`masquerade assets fetch {role}`). If you trust this one: docs/assets.md, "
        "'The lock'."
    )


def digest(place: Path) -> str:
    """The SHA-256 of a file, computed once a process for as long as size, time and inode stay the same."""
    about = place.stat()
    return _digest(place.resolve(), about.st_size, about.st_mtime_ns, about.st_ino)


@cache
def _digest(place: Path, size: int, changed: int, inode: int) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
