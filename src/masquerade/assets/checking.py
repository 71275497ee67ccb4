"""Checks that a file from outside is present, complete, and the expected one."""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from masquerade.assets import lock
from masquerade.assets.entries import Asset, Dataset, File, Folder, Remote, Weights, asset
from masquerade.assets.lock import LOCK, Record
from masquerade.assets.packaged import stand_in
from masquerade.core import files, rehearsal
from masquerade.core.errors import CheckpointError, RehearsalError

FOLDER = Path("assets")
State = Literal["there", "missing", "altered", "unrecorded", "rehearsal"]


def path(role: str) -> Path:
    """The path of a role's weight file, or of a dataset's folder, relative to the repository's root. Checks no file.

    Raises AssetError for a role that is not in the registry.
    """
    entry = asset(role)
    return FOLDER / role / entry.file.name if isinstance(entry, Weights) else FOLDER / role


def check_asset(role: str, root: Path = Path()) -> Path:
    """Check the files of a role, and return `path` below ``root``.

    A weight file is hashed, once per process. A dataset is too large to hash here (`masquerade assets verify` does
    that): its parts must exist, and its files must have the sizes of the registry and the lock. Raises CheckpointError
    when a file is missing, cut, altered, not the one in the lock, or a weight file without a known SHA-256. Raises
    RehearsalError when a file was placed for a rehearsal and this is not a rehearsal.

    If the file is missing and an installed package has one in its place (`stand_in`), the path of that one is returned.
    """
    entry = asset(role)
    if missing(role, root) and (instead := stand_in(role)):
        return instead
    for name in missing(role, root):
        raise CheckpointError(f"{FOLDER / role / name} is missing ({entry.title}). {how_to_get(role)}")
    for file, place in present(role, root):
        if isinstance(file, Folder):
            continue
        record = lock.recorded(role, file.name, root)
        if record and record.rehearsal and not rehearsal.is_rehearsing():
            raise RehearsalError(
                f"{FOLDER / role / file.name} was placed for a rehearsal, and nothing else may use it: it only stands "
                f"in for the published file. Move it away and get the published file. {how_to_get(role)}"
            )
        problem = wrong(file, record, place.stat().st_size, digest(place) if isinstance(entry, Weights) else None)
        if problem:
            raise CheckpointError(f"{place.relative_to(root)} {problem} {_again(role)}")
        if isinstance(entry, Weights) and not (record or file.sha256):
            raise CheckpointError(
                f"{FOLDER / role / file.name} cannot be checked: its publisher gives no SHA-256, and {LOCK} has none. "
                f"If you trust this file, `masquerade assets verify {role}` records it as it is now."
            )
    return root / path(role)


def state(role: str, root: Path = Path()) -> State:
    """The state of a role, by the presence and the sizes of its files. Nothing is hashed."""
    if missing(role, root):
        return "missing"
    locked = lock.read(root).get(role, {})
    parts = list(present(role, root))
    for part, place in parts:
        if isinstance(part, File) and wrong(part, locked.get(part.name), place.stat().st_size, None):
            return "altered"
    if any(item.rehearsal for item in locked.values()):
        return "rehearsal"
    recorded = all(part.name in locked or (isinstance(part, File) and part.sha256) for part, _ in parts)
    return "there" if recorded else "unrecorded"


def missing(role: str, root: Path = Path()) -> list[str]:
    """Names of the missing parts, below ``assets/<role>/``. A folder with the content of a part replaces the part."""
    entry = asset(role)
    names = {part.name for part, _ in present(role, root)}
    unpacked = {name for tree in entry.trees if tree.name in names for name in tree.instead_of}
    missing_files = [file.name for file in entry.parts if file.name not in names | unpacked]
    return missing_files + [tree.name for tree in entry.trees if not tree.instead_of and tree.name not in names]


def present(role: str, root: Path = Path()) -> Iterator[tuple[File | Folder, Path]]:
    """Yields the parts of a role that exist, each with its path."""
    entry, folder = asset(role), root / FOLDER / role
    for part in (*entry.parts, *entry.trees):
        exists = Path.is_file if isinstance(part, File) else _is_filled
        place = next((place for within in entry.places if exists(place := folder / within / part.name)), None)
        if place:
            yield part, place


def _is_filled(place: Path) -> bool:
    return place.is_dir() and next(place.iterdir(), None) is not None


def wrong(file: Remote, record: Record | None, size: int, sha256: str | None) -> str:
    """Compares a file's size and SHA-256 (None: not hashed) with what is expected. Returns '' when they fit.

    Otherwise returns the reason, as the end of a sentence. Expected are the publisher's values and those of the lock;
    for a file of a rehearsal, those of the lock alone.
    """
    published = () if record and record.rehearsal else ((file.size, file.sha256, "its publisher gives"),)
    recorded = ((record.size, record.sha256, f"{LOCK} has, of {record.first_seen},"),) if record else ()
    for expected_size, expected_sha256, source in (*published, *recorded):
        if expected_size is not None and size != expected_size:
            return f"is cut, altered or another file: it has {size} bytes, {source} {expected_size}."
        if sha256 and expected_sha256 and sha256 != expected_sha256:
            return f"is altered or another file: its SHA-256 is {sha256}, {source} {expected_sha256}."
    return ""


def how_to_get(role: str) -> str:
    """One sentence on how to get the files of a role."""
    entry: Asset = asset(role)
    if not entry.steps:
        return f"`masquerade assets fetch {role}` fetches it."
    kind = "dataset" if isinstance(entry, Dataset) else "file"
    return f"The {kind} has terms that a person must accept: `masquerade assets fetch {role}` says how to come by it."


def _again(role: str) -> str:
    return (
        f"Move it away and get it again (`masquerade assets fetch {role}`). If you trust this file, see 'The lock' in "
        "docs/datasets.md."
    )


def digest(place: Path) -> str:
    """The SHA-256 of a file. Computed once per process while size, modification time and inode stay the same."""
    status = place.stat()
    return _digest(place.resolve(), status.st_size, status.st_mtime_ns, status.st_ino)


@cache
def _digest(place: Path, size: int, modified: int, inode: int) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


CHUNK = 1 << 22
QUICK = 1 << 28  # bytes; smaller files get no bar


def hashes(path: Path) -> tuple[str, str]:
    """SHA-256 and MD5 of a file in hexadecimal; the file is read once."""
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    size = path.stat().st_size
    bar = tqdm(total=size, desc=f"hashing {path.name}", unit="B", unit_scale=True, disable=size < QUICK or None)
    with bar, path.open("rb") as file:
        while chunk := file.read(CHUNK):
            sha256.update(chunk)
            md5.update(chunk)
            bar.update(len(chunk))
    return sha256.hexdigest(), md5.hexdigest()


def tree(folder: Path) -> tuple[int, int, str]:
    """(number of files, bytes, SHA-256 of the sorted lines "<sha256>  <path>") of a folder without its hidden files."""
    below = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    visible = sorted(name for name in below if not any(part.startswith(".") for part in name.split("/")))
    together, size = hashlib.sha256(), 0
    for name in tqdm(visible, desc=f"hashing {folder.name}", unit="file", disable=None):
        with below[name].open("rb") as file:
            together.update(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode())
        size += below[name].stat().st_size
    return len(visible), size, together.hexdigest()


IDENTITIES = Path(".masquerade/assets")


def describe_identity(role: str, root: Path = Path()) -> dict[str, str]:
    """Name of each part of a role -> its SHA-256 from the lock, else as published, else ''."""
    entry, records = asset(role), lock.read(root).get(role, {})
    published = {file.name: file.sha256 or "" for file in entry.parts} | {tree.name: "" for tree in entry.trees}
    return {name: records[name].sha256 if name in records else sha256 for name, sha256 in published.items()}


def write_identity(role: str, root: Path = Path()) -> Path:
    """Write the identity of a role if it changed, and return its path relative to ``root``."""
    file = IDENTITIES / f"{role}.json"
    files.write_if_changed(root / file, json.dumps(describe_identity(role, root), indent=0) + "\n")
    return file


def role_of(path: str | Path) -> str:
    """The role of an identity file, or '' for any other file."""
    return Path(path).stem if Path(path).parent == IDENTITIES else ""


def unready(role: str, root: Path = Path()) -> str:
    """Why a job that needs a role cannot run, and what to do, or '' if it can. Hashes nothing (`checking.state`)."""
    current = state(role, root)
    if current == "missing" and stand_in(role):
        return ""
    if current == "missing":
        return f"{FOLDER / role / missing(role, root)[0]} is missing ({asset(role).title}). {how_to_get(role)}"
    if current == "altered":
        return f"'{role}' is cut or altered: `masquerade assets verify {role}` names the file."
    if current == "unrecorded":
        return f"'{role}' is there, but not in {LOCK}: `masquerade assets verify {role}` records it, if you trust it."
    if current == "rehearsal" and not rehearsal.is_rehearsing():
        return f"'{role}' was placed for a rehearsal: it only stands in for the published file. {how_to_get(role)}"
    return ""
