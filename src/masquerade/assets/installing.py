"""Brings files into ``assets/``, by download or from a user, and verifies what is there; the lock records new files."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from masquerade.assets import checking, lock
from masquerade.assets.checking import FOLDER, hashes, tree
from masquerade.assets.entries import Archive, File, Folder, Remote, Weights, asset
from masquerade.assets.fetching import Notify, check_space, download, unpack
from masquerade.core.errors import AssetError


def fetch(role: str, notify: Notify, root: Path = Path()) -> bool:
    """Download every missing file of a role. Returns False if nothing was missing.

    ``notify`` receives messages for the user. Raises AssetError if a person has to get the file (the text lists the
    steps), if no address gives it, if the disk is too small, or if another process is fetching it. Raises
    CheckpointError if the file is present and altered.
    """
    entry, folder = asset(role), root / FOLDER / role
    missing = checking.missing(role, root)
    if not missing:
        checking.check_asset(role, root)
        return False
    if entry.steps:
        steps = (f"  {number}. {step}" for number, step in enumerate(entry.steps, 1))
        raise AssetError("\n".join([f"{entry.title}: a person has to get it.", *steps]))
    folder.mkdir(parents=True, exist_ok=True)
    busy = FileLock(folder / ".fetch.lock")
    failures = []
    try:
        with busy.acquire(timeout=0):
            for file in entry.parts:
                if file.name in missing:
                    failures += _fetch(Installer(role, False, notify, root), file)
    except Timeout as error:
        raise AssetError(f"Another process is fetching '{role}'.") from error
    if failures:
        raise AssetError("\n".join([f"'{role}' could not be fetched.", *failures]))
    return True


def place(given: Path, role: str, rehearsal: bool, notify: Notify, root: Path = Path()) -> Path:
    """Copy a user's file to its place in ``assets/``, verify it, and record it in the lock if it is new.

    An archive that contains the file of the role is unpacked. ``rehearsal``: the file only stands in for the published
    one; it is not compared with it, and is marked in the lock. Raises AssetError if it is another file.
    """
    if not given.is_file():
        raise AssetError(
            f"{given} is no file. A folder of images is moved or linked to {FOLDER / role} by hand. Then "
            f"`masquerade assets verify {role}` records it."
        )
    file, archive = _file_of(given, role)
    installer = Installer(role, rehearsal, notify, root)
    target = installer.folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if given.name != (archive or file).name:
        notify(f"{role}: {given.name} is taken for {file.name}.")
    if archive:
        installer.unpack(file, archive, given, "placed")
    elif target.exists() and given.samefile(target):
        installer.install(file, target, "placed")
    else:
        check_space(target.parent, given.stat().st_size, file.name)
        fresh = target.with_name(f".{target.name}.new")
        try:
            shutil.copyfile(given, fresh)
            installer.install(file, fresh, "placed")
        finally:
            fresh.unlink(missing_ok=True)
    return target


def find_problem(file: Remote, record: lock.Record | None, size: int, sha256: str, md5: str) -> str:
    """The reason from `checking.wrong`, or from comparing the MD5 if its publisher gives one; '' if all fit."""
    problem = checking.wrong(file, record, size, sha256)
    if not problem and file.md5 and md5 != file.md5 and not (record and record.rehearsal):
        return f"is altered or another file: its MD5 is {md5}, its publisher gives {file.md5}."
    return problem


@dataclass(frozen=True)
class Installer:
    """Verifies and records the new files of one role, and moves them to their places."""

    role: str
    rehearsal: bool
    notify: Notify
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / FOLDER / self.role

    def install(self, file: File, fresh: Path, origin: str) -> None:
        """Verify the file at ``fresh``, record it, and move it to its place. Raises AssetError."""
        record = lock.recorded(self.role, file.name, self.root)
        sha256 = self._verified(file, fresh)
        size = fresh.stat().st_size
        lock.record(self.role, file.name, sha256, size, origin, self.rehearsal, self.root)
        (self.folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        fresh.replace(self.folder / file.name)
        self.notify(f"{self.role}: {self._verdict(file, record, sha256)}")

    def unpack(self, file: File, archive: Archive, packed: Path, origin: str) -> None:
        """Verify the archive ``packed``, and admit the file in it. Raises AssetError."""
        if not self.rehearsal:
            self._verified(archive, packed)
        fresh = self.folder / f".{file.name}.new"
        try:
            unpack(packed, archive.member, fresh)
            self.install(file, fresh, origin)
        finally:
            fresh.unlink(missing_ok=True)

    def _verified(self, file: File | Archive, fresh: Path) -> str:
        record = lock.recorded(self.role, file.name, self.root)
        sha256, md5 = hashes(fresh)
        if not self.rehearsal:
            expected = None if record and record.rehearsal else record
            problem = find_problem(file, expected, fresh.stat().st_size, sha256, md5)
            if problem:
                raise AssetError(f"{file.name} {problem} It is not installed.")
        return sha256

    def _verdict(self, file: File, record: lock.Record | None, sha256: str) -> str:
        if self.rehearsal:
            return f"{file.name} only stands in for the published file; nothing that it makes may enter a table."
        if file.sha256:
            return f"{file.name} has the published SHA-256."
        if record and not record.rehearsal:
            return f"{file.name} is the file of {lock.LOCK}."
        trust = "has the published MD5" if file.md5 else "is trusted on first use"
        return (
            f"{file.name} {trust}; its SHA-256 is published nowhere. {lock.LOCK} now has "
            f"{sha256}: compare it with another lab's, and commit it."
        )


def _fetch(installer: Installer, file: File) -> list[str]:
    """Download a file. Returns nothing, or why no address gives it, and the steps by which a person gets it."""
    weights = asset(installer.role)
    archives = weights.archives if isinstance(weights, Weights) else ()
    ways = [(file, partial(installer.install, file))] if file.urls else []
    ways += [(archive, partial(installer.unpack, file, archive)) for archive in archives if archive.urls]
    failures = []
    for remote, accept in ways:
        part = installer.folder / f".{Path(remote.name).name}.part"
        try:
            download(remote.urls, part, accept, remote.size, bool(remote.sha256), installer.notify)
            return []
        except AssetError as error:
            failures.append(str(error))
    return [*failures, *_by_hand(installer.role, file)]


def _by_hand(role: str, file: File) -> list[str]:
    """The steps by which a person gets a file that no address gives: a line for each."""
    facts = [f"{file.size} bytes"] if file.size else []
    facts += [f"{kind} {value}" for kind, value in (("SHA-256", file.sha256), ("MD5", file.md5)) if value]
    published = (
        f" ({', '.join(facts)}; source: {file.vouched})" if facts else " (no size and no hash of it is published)"
    )
    return [
        f"{file.name} by hand:",
        f"  1. Get a copy of {file.name}{published}. Where it comes from: {asset(role).source}.",
        f"  2. `masquerade assets place {Path(file.name).name} {role}` checks it and puts it into "
        f"{(FOLDER / role / file.name).as_posix()}.",
        f"  3. `masquerade assets fetch {role}` fetches what is still missing.",
    ]


def _file_of(given: Path, role: str) -> tuple[File, Archive | None]:
    """The file of the role with the name of ``given``, and its archive if ``given`` is one.

    For weights, a file with any other name is taken for the weight file.
    """
    entry = asset(role)
    by_name = {Path(file.name).name: file for file in entry.parts}
    if given.name in by_name:
        return by_name[given.name], None
    if isinstance(entry, Weights):
        return entry.file, next((archive for archive in entry.archives if archive.name == given.name), None)
    raise AssetError(f"{given.name} is no file of '{role}'. Its files: {', '.join(by_name) or 'none, only folders'}.")


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
    return find_problem(part, record, size, sha256, md5), sha256, size


def _folder(part: Folder, place: Path, record: lock.Record | None) -> tuple[str, str, int]:
    """(the problem or '', SHA-256, bytes)."""
    count, size, sha256 = tree(place)
    if part.count is not None and count != part.count and not (record and record.rehearsal):
        return f"is not complete: it has {count} files, its publisher gives {part.count}.", sha256, size
    if record and record.sha256 != sha256:
        return f"is not as on {record.first_seen}: a file in it was changed, added or removed.", sha256, size
    return "", sha256, size
