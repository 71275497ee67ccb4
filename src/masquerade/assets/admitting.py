"""How files come into ``assets/``, fetched or placed: each is verified, and recorded where it is seen first."""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from masquerade.assets import checking, lock
from masquerade.assets.checking import FOLDER
from masquerade.assets.entries import Archive, File, Remote, Weights, asset
from masquerade.assets.fetching import Say, ask_room, download
from masquerade.assets.hashing import hashes
from masquerade.assets.unpacking import unpack
from masquerade.errors import AssetError


def fetch(role: str, say: Say, root: Path = Path()) -> bool:
    """Bring every missing file of a role to its place; False where nothing was missing.

    ``say`` is told what a person should know. Raises AssetError: with the steps, where a person has to get it;
    where no address gives the file; where the disk is too small; where somebody else is fetching it. Raises
    CheckpointError where it is there and altered.
    """
    found, folder = asset(role), root / FOLDER / role
    lost = checking.missing(role, root)
    if not lost:
        checking.checked(role, root)
        return False
    if found.steps:
        steps = (f"  {number}. {step}" for number, step in enumerate(found.steps, 1))
        raise AssetError("\n".join([f"{found.title}: a person has to get it.", *steps]))
    folder.mkdir(parents=True, exist_ok=True)
    busy = FileLock(folder / ".fetch.lock")
    try:
        with busy.acquire(timeout=0):
            for file in found.parts:
                if file.name in lost:
                    _fetch(Door(role, False, say, root), file)
    except Timeout as error:
        raise AssetError(f"Another process is fetching '{role}'.") from error
    return True


def place(given: Path, role: str, rehearsal: bool, say: Say, root: Path = Path()) -> Path:
    """Copy a file that somebody has into its place, verify it, and record it where it is seen for the first time.

    An archive that holds the file of the role is unpacked. ``rehearsal``: it only plays the part of the published file;
    it is held to itself alone, and marked in the lock. Raises AssetError where it is not the file that is meant.
    """
    if not given.is_file():
        raise AssetError(
            f"{given} is no file. A folder of pictures is moved or linked to {FOLDER / role} by hand; then "
            f"`masquerade assets verify {role}` records it."
        )
    file, archive = _meant(given, role)
    door = Door(role, rehearsal, say, root)
    target = door.folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if archive:
        door.unpack(file, archive, given, "placed")
    elif target.exists() and given.samefile(target):
        door.admit(file, target, "placed")
    else:
        ask_room(target.parent, given.stat().st_size, file.name)
        fresh = target.with_name(f".{target.name}.new")
        try:
            shutil.copyfile(given, fresh)
            door.admit(file, fresh, "placed")
        finally:
            fresh.unlink(missing_ok=True)
    return target


def compared(file: Remote, seen: lock.Seen | None, size: int, sha256: str, md5: str) -> str:
    """`checking.wrong`, and the MD5 where its publisher gives one."""
    trouble = checking.wrong(file, seen, size, sha256)
    if not trouble and file.md5 and md5 != file.md5 and not (seen and seen.rehearsal):
        return f"is altered or another file: its MD5 is {md5}, its publisher gives {file.md5}."
    return trouble


@dataclass(frozen=True)
class Door:
    """Where files of one role come in."""

    role: str
    rehearsal: bool
    say: Say
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / FOLDER / self.role

    def admit(self, file: File, fresh: Path, origin: str) -> None:
        """Verify what lies at ``fresh``, record it, and move it to its place. Raises AssetError."""
        seen = lock.seen(self.role, file.name, self.root)
        sha256 = self._verified(file, fresh)
        size = fresh.stat().st_size
        lock.record(self.role, file.name, sha256, size, origin, self.rehearsal, self.root)
        (self.folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        fresh.replace(self.folder / file.name)
        self.say(f"{self.role}: {self._vouching(file, seen, sha256)}")

    def unpack(self, file: File, archive: Archive, packed: Path, origin: str) -> None:
        """Verify an archive, and admit the file in it. Raises AssetError."""
        if not self.rehearsal:
            self._verified(archive, packed)
        fresh = self.folder / f".{file.name}.new"
        try:
            unpack(packed, archive.member, fresh)
            self.admit(file, fresh, origin)
        finally:
            fresh.unlink(missing_ok=True)

    def _verified(self, file: File | Archive, fresh: Path) -> str:
        seen = lock.seen(self.role, file.name, self.root)
        sha256, md5 = hashes(fresh)
        if not self.rehearsal:
            held_to = None if seen and seen.rehearsal else seen
            trouble = compared(file, held_to, fresh.stat().st_size, sha256, md5)
            if trouble:
                raise AssetError(f"{file.name} {trouble} It is not admitted.")
        return sha256

    def _vouching(self, file: File, seen: lock.Seen | None, sha256: str) -> str:
        if self.rehearsal:
            return f"{file.name} only plays the part of the published file; nothing that it makes may enter a table."
        if file.sha256:
            return f"{file.name} has the published SHA-256."
        if seen and not seen.rehearsal:
            return f"{file.name} is the one of {lock.LOCK}."
        return (
            f"{file.name} is trusted on first use, since nobody publishes its SHA-256. {lock.LOCK} now has {sha256}: "
            "compare it with another lab's, and commit it."
        )


def _fetch(door: Door, file: File) -> None:
    archives = asset(door.role).archives if isinstance(asset(door.role), Weights) else ()
    ways = [(file, partial(door.admit, file))] if file.urls else []
    ways += [(archive, partial(door.unpack, file, archive)) for archive in archives if archive.urls]
    failures = []
    for remote, accept in ways:
        part = door.folder / f".{Path(remote.name).name}.part"
        try:
            return download(remote.urls, part, accept, remote.size, bool(remote.sha256), door.say)
        except AssetError as error:
            failures.append(str(error))
    raise AssetError("\n".join([f"'{door.role}' could not be fetched.", *failures]))


def _meant(given: Path, role: str) -> tuple[File, Archive | None]:
    """Which file of the role this is, by its name; of weights, any other name is the weight file's."""
    found = asset(role)
    named = {Path(file.name).name: file for file in found.parts}
    if given.name in named:
        return named[given.name], None
    if isinstance(found, Weights):
        return found.file, next((archive for archive in found.archives if archive.name == given.name), None)
    raise AssetError(f"{given.name} is no file of '{role}'. Its files: {', '.join(named) or 'none, folders alone'}.")
