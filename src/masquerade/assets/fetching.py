"""Downloads one published file: tries its addresses in order, resumes after a break, and refuses any other file.

`pooch` is not enough: it starts again when a connection breaks, and without a published hash it accepts any page with
status 200. `requests` uses the proxies of the environment.
"""

import bz2
import json
import re
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tqdm import tqdm

from masquerade.core.errors import AssetError

if TYPE_CHECKING:
    from requests import Response


DRIVE = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"
CONNECT, SILENCE = 15.0, 60.0  # seconds without an answer, and without a byte
WAITS = (2.0, 10.0, 30.0)  # seconds before each further try at one address
SPARE = 200_000_000  # bytes that stay free on the disk
CHUNK = 1 << 16  # bytes: the most that a break loses
LASTING = (401, 403, 404, 410, 451)  # statuses for which no second try is made

Notify = Callable[[str], None]
"""Receives a message for the user."""
Accept = Callable[[Path, str], None]
"""Moves the downloaded file to its place, given its address too; raises AssetError if it is another file."""


class MirrorError(AssetError):
    """An address does not give the file; another address may."""


class BrokenOff(MirrorError):
    """The connection broke or stalled; another try resumes the download."""


def download(urls: Sequence[str], part: Path, accept: Accept, size: int | None, has_hash: bool, notify: Notify) -> None:
    """Download from ``urls`` in order to ``part``, until ``accept`` accepts the file.

    ``size``: the published size in bytes, or None. ``has_hash``: whether ``accept`` compares a published hash. After a
    break ``part`` stays, and a later call resumes it. Raises AssetError with the reason for each address, or if the
    disk is too small.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for url in urls:
        try:
            _persist(url, part, size, has_hash, notify)
        except MirrorError as error:
            notify(f"{url}: {error}")
            failures.append(f"{url}: {error}")
            continue
        try:
            return accept(part, url)
        except AssetError as error:
            notify(f"{url}: {error}")
            failures.append(f"{url}: {error}")
        finally:
            _forget(part)
    raise AssetError("\n".join(["None of the known addresses gives the file:", *failures]))


def _persist(url: str, part: Path, size: int | None, has_hash: bool, notify: Notify) -> None:
    for wait in (*WAITS, None):
        try:
            return _once(url, part, size, has_hash)
        except BrokenOff as error:
            if wait is None:
                raise
            notify(f"{url}: {error}; trying again in {wait:g} s")
            time.sleep(wait)
    return None


def _once(url: str, part: Path, size: int | None, has_hash: bool) -> None:
    """One connection, which resumes where the last one broke off. Raises MirrorError."""
    import requests

    address = DRIVE.format(url.removeprefix("drive:")) if url.startswith("drive:") else url
    start, condition = _resumable(part, url, has_hash)
    headers = {"Accept-Encoding": "identity", "User-Agent": "masquerade"}  # not compressed, to count the bytes
    if start:
        headers |= {"Range": f"bytes={start}-"} | ({"If-Range": condition} if condition else {})
    try:
        with requests.Session() as session:
            answer = session.get(address, headers=headers, stream=True, timeout=(CONNECT, SILENCE))
            form = _confirmation(answer) if url.startswith("drive:") else None
            if form:
                answer = session.get(form, headers=headers, stream=True, timeout=(CONNECT, SILENCE))
            with answer:
                _receive(answer, url, part, start, size)
    except (requests.Timeout, requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        silent = isinstance(error, requests.Timeout) or "timed out" in str(error)
        reason = "it sent nothing more" if silent else f"the connection broke ({type(error).__name__})"
        raise BrokenOff(reason) from error
    except requests.RequestException as error:
        raise MirrorError(f"{type(error).__name__}: {error}") from error


def _receive(answer: "Response", url: str, part: Path, start: int, size: int | None) -> None:
    if answer.status_code == 416:  # the part is longer than the file, so it is of another file
        _forget(part)
        raise BrokenOff("it cannot resume the download; starting again")
    if answer.status_code not in (200, 206):
        kind = MirrorError if answer.status_code in LASTING else BrokenOff
        raise kind(f"status {answer.status_code} {answer.reason}")
    begins = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    if answer.status_code == 206 and (begins is None or int(begins[1]) != start):
        _forget(part)
        raise BrokenOff("it resumed from another position than requested; starting again")
    if answer.status_code == 200:
        start = 0  # it does not support ranges, or the file has changed
    if "html" in answer.headers.get("Content-Type", ""):
        raise MirrorError("it gave a web page in place of the file: a login, a limit of downloads, or a moved file")
    length = answer.headers.get("Content-Length")
    total = start + int(length) if length and length.isdigit() else None
    if size is not None and total is not None and total != size:
        raise MirrorError(f"it has {total} bytes, its publisher gives {size}")
    check_space(part.parent, (total or size or 0) - start, _title(part))
    _remember(part, url, answer)
    written = _write(answer, part, start, total)
    if total is not None and written != total:
        raise BrokenOff(f"it broke off at {written} of {total} bytes")


def _write(answer: "Response", part: Path, start: int, total: int | None) -> int:
    title = _title(part)
    bar = tqdm(total=total, initial=start, unit="B", unit_scale=True, unit_divisor=1024, desc=title, disable=None)
    with bar, part.open("ab" if start else "wb") as file:
        for chunk in answer.iter_content(CHUNK):
            if not file.tell() and chunk.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
                raise MirrorError("it gave a web page in place of the file: a login or a limit of downloads")
            file.write(chunk)
            bar.update(len(chunk))
        return file.tell()


def check_space(folder: Path, needed: int, name: str) -> None:
    """Raises AssetError if the disk of ``folder`` has no space for ``needed`` more bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        raise AssetError(
            f"The disk is too small for {name}: it needs {needed / 1e9:.2f} GB in {folder}, and {free / 1e9:.2f} GB "
            "are free. Free some space, or make assets/ a link to a larger disk."
        )


def _title(part: Path) -> str:
    return part.name.strip(".").removesuffix(".part")


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _remember(part: Path, url: str, answer: "Response") -> None:
    """Keep the address of the part, and the server's version of the file: its ETag or the time of its last change."""
    tag = answer.headers.get("ETag", "")
    condition = tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")
    _note(part).write_text(json.dumps({"url": url, "condition": condition}), encoding="utf-8")


def _resumable(part: Path, url: str, has_hash: bool) -> tuple[int, str]:
    """The number of bytes to keep, and the version (for If-Range) under which the server may continue them.

    0 bytes if they are from another address, or if neither a version nor a hash would reveal a changed file.
    """
    try:
        note = json.loads(_note(part).read_text(encoding="utf-8"))
        start = part.stat().st_size if note["url"] == url and (note["condition"] or has_hash) else 0
        return start, note["condition"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""  # there is no part, or its address is unknown


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


class _Form(HTMLParser):
    """Google Drive's form that asks to confirm the download of a file that it did not scan for viruses."""

    def __init__(self) -> None:
        super().__init__()
        self.action, self.fields = "", {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        name = attributes.get("name")
        if tag == "form" and attributes.get("id") == "download-form":
            self.action = attributes.get("action") or ""
        elif tag == "input" and self.action and attributes.get("type") == "hidden" and name:
            self.fields[name] = attributes.get("value") or ""


def _confirmation(answer: "Response") -> str | None:
    """The address to which Google Drive's form leads, or None if the answer is no such form."""
    if "html" not in answer.headers.get("Content-Type", ""):
        return None
    from requests import Request

    form = _Form()
    form.feed(next(answer.iter_content(CHUNK), b"").decode("utf-8", "replace"))
    return Request("GET", form.action, params=form.fields).prepare().url if form.action else None


_BROKEN = (OSError, EOFError, ValueError, RuntimeError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
BLOCK = 1 << 20  # bytes of an archive in memory


def unpack(archive: Path, member: str, target: Path) -> None:
    """Write the file ``member`` of a .zip, a .tar (however packed) or a .bz2 (``member`` is '') to ``target``.

    Raises AssetError if the member is missing or no plain file, or if the archive is damaged. No ``target`` is left.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _opened(archive, member) as (source, size), target.open("wb") as file:
            check_space(target.parent, size, target.name)
            while chunk := source.read(BLOCK):
                if not size:  # a .bz2 does not give the size of its content
                    check_space(target.parent, len(chunk), target.name)
                file.write(chunk)
    except _BROKEN as error:
        target.unlink(missing_ok=True)
        raise AssetError(
            f"{archive} is damaged or no archive ({type(error).__name__}: {error}). Get it again."
        ) from error
    except AssetError:
        target.unlink(missing_ok=True)
        raise


@contextmanager
def _opened(archive: Path, member: str) -> Iterator[tuple[IO[bytes], int]]:
    """(the member, its size in bytes, or 0 if unknown)."""
    if not member:
        with bz2.open(archive) as source:
            yield source, 0
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            if member not in opened.namelist():
                raise _lacking(archive, member, opened.namelist())
            with opened.open(member) as source:
                yield source, opened.getinfo(member).file_size
    else:
        with tarfile.open(archive) as opened:
            entry = next((item for item in opened if item.name.removeprefix("./") == member), None)
            if entry is None:
                raise _lacking(archive, member, opened.getnames())
            if not entry.isreg():
                raise AssetError(f"{archive}: {member} is no plain file, but a link or a device. Do not trust it.")
            content = opened.extractfile(entry)
            assert content is not None  # it is a plain file
            yield content, entry.size


def _lacking(archive: Path, member: str, names: list[str]) -> AssetError:
    return AssetError(f"{archive} holds no {member}; it holds {', '.join(sorted(names)[:8])}.")
