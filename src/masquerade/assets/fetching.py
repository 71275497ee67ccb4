"""Downloads one published file: mirrors in order, resumed where it broke off, refused where it is not the file.

`pooch` fetches and verifies, but starts over whenever a connection breaks, and takes any page with status 200 for the
file where no hash is published; so this is ours, on `requests`, which knows the proxies of the environment.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from masquerade.errors import AssetError

if TYPE_CHECKING:
    from requests import Response

DRIVE = "https://drive.usercontent.google.com/download?id={}&export=download&confirm=t"
CONNECT, SILENCE = 15.0, 60.0  # seconds without an answer, and without a byte
WAITS = (2.0, 10.0, 30.0)  # seconds before each further try at one address
SPARE = 200_000_000  # bytes that stay free on the disk
CHUNK = 1 << 16  # bytes: what a break costs at most
LASTING = (401, 403, 404, 410, 451)  # statuses that another try does not change

Say = Callable[[str], None]
Accept = Callable[[Path, str], None]
"""Takes what has come, and the address that gave it, to its place; raises AssetError where it is not the file."""


class MirrorError(AssetError):
    """An address does not give the file; another may."""


class BrokenOff(MirrorError):
    """The connection broke or fell silent; another try goes on from there."""


def download(urls: Sequence[str], part: Path, accept: Accept, size: int | None, known: bool, say: Say) -> None:
    """Bring the file that one of ``urls`` gives to ``part``, and hand it to ``accept``; the first that it takes is it.

    ``size``: bytes as published, or None; ``known``: whether ``accept`` knows the hash. What came before a break stays
    in ``part``, and a later call goes on with it. Raises AssetError naming what was wrong with each address, or that
    the disk is too small.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for url in urls:
        try:
            _persist(url, part, size, known, say)
        except MirrorError as error:
            say(f"{url}: {error}")
            failures.append(f"{url}: {error}")
            continue
        try:
            return accept(part, url)
        except AssetError as error:
            say(f"{url}: {error}")
            failures.append(f"{url}: {error}")
        finally:
            _forget(part)
    raise AssetError("\n".join(["None of the known addresses gives the file:", *failures]))


def _persist(url: str, part: Path, size: int | None, known: bool, say: Say) -> None:
    for wait in (*WAITS, None):
        try:
            return _once(url, part, size, known)
        except BrokenOff as error:
            if wait is None:
                raise
            say(f"{url}: {error}; trying again in {wait:g} s")
            time.sleep(wait)
    return None


def _once(url: str, part: Path, size: int | None, known: bool) -> None:
    """One connection, from where the last one broke off. Raises MirrorError."""
    import requests

    address = DRIVE.format(url.removeprefix("drive:")) if url.startswith("drive:") else url
    start, condition = _resumable(part, url, known)
    headers = {"Accept-Encoding": "identity", "User-Agent": "masquerade"}  # bytes as they are, so that they count
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
        told = "it fell silent" if silent else f"the connection broke ({type(error).__name__})"
        raise BrokenOff(told) from error
    except requests.RequestException as error:
        raise MirrorError(f"{type(error).__name__}: {error}") from error


def _receive(answer: "Response", url: str, part: Path, start: int, size: int | None) -> None:
    if answer.status_code == 416:  # what we have is longer than the file: not of this file
        _forget(part)
        raise BrokenOff("it cannot go on from where it broke off; starting over")
    if answer.status_code not in (200, 206):
        kind = MirrorError if answer.status_code in LASTING else BrokenOff
        raise kind(f"status {answer.status_code} {answer.reason}")
    begins = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    if answer.status_code == 206 and (begins is None or int(begins[1]) != start):
        _forget(part)
        raise BrokenOff("it went on from another place than asked; starting over")
    if answer.status_code == 200:
        start = 0  # it knows no ranges, or the file has changed
    if "html" in answer.headers.get("Content-Type", ""):
        raise MirrorError("it gave a web page in place of the file: a login, a limit of downloads, or a moved file")
    length = answer.headers.get("Content-Length")
    total = start + int(length) if length and length.isdigit() else None
    if size is not None and total is not None and total != size:
        raise MirrorError(f"it has {total} bytes, its publisher gives {size}")
    ask_room(part.parent, (total or size or 0) - start, _title(part))
    _remember(part, url, answer)
    got = _write(answer, part, start, total)
    if total is not None and got != total:
        raise BrokenOff(f"it broke off at {got} of {total} bytes")


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


def ask_room(folder: Path, needed: int, name: str) -> None:
    """Raises AssetError where the disk of ``folder`` has no room for ``needed`` bytes more."""
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        raise AssetError(
            f"The disk is too small for {name}: {needed / 1e9:.2f} GB are to come to {folder}, {free / 1e9:.2f} GB are "
            "free. Make room, or make assets/ a link to a larger disk."
        )


def _title(part: Path) -> str:
    return part.name.strip(".").removesuffix(".part")


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _remember(part: Path, url: str, answer: "Response") -> None:
    """Where the part is from, and by what its server knows the file: an ETag, or the time of its last change."""
    tag = answer.headers.get("ETag", "")
    condition = tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")
    _note(part).write_text(json.dumps({"url": url, "condition": condition}), encoding="utf-8")


def _resumable(part: Path, url: str, known: bool) -> tuple[int, str]:
    """How many bytes may be kept, and on which condition of its server.

    None where they are of another address, or where neither a condition nor a hash would show a changed file.
    """
    try:
        note = json.loads(_note(part).read_text(encoding="utf-8"))
        kept = part.stat().st_size if note["url"] == url and (note["condition"] or known) else 0
        return kept, note["condition"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""  # nothing came yet, or nobody knows from where


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


class _Form(HTMLParser):
    """Google Drive's question whether a file that it did not scan for viruses is wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.action, self.fields = "", {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "form" and found.get("id") == "download-form":
            self.action = found.get("action") or ""
        elif tag == "input" and self.action and found.get("type") == "hidden" and found.get("name"):
            self.fields[found["name"]] = found.get("value") or ""


def _confirmation(answer: "Response") -> str | None:
    """The address behind Google Drive's question; None where the answer is something else."""
    if "html" not in answer.headers.get("Content-Type", ""):
        return None
    from requests import Request

    form = _Form()
    form.feed(answer.raw.read(CHUNK, decode_content=True).decode("utf-8", "replace"))
    return Request("GET", form.action, params=form.fields).prepare().url if form.action else None
