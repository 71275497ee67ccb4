"""Downloads from a test server that shows all known faults of servers of weight files."""

import hashlib
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masquerade.assets import fetching
from masquerade.core.errors import AssetError

BODY = bytes(range(256)) * 700  # 179,200 bytes
SHA256 = hashlib.sha256(BODY).hexdigest()
STOP = 70_000  # bytes that the server sends before it breaks off
RESUMED = f"bytes={STOP // fetching.CHUNK * fetching.CHUNK}-"
PAGE = b"<!DOCTYPE html><html><body>Too many users have downloaded this file.</body></html>"


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = BODY
        self.tag = '"first"'
        self.requests: list[tuple[str, str]] = []
        """(path, Range) of each request."""
        self.hurdles: dict[str, int] = {}
        """The number of faulty answers that are left for a path."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def stumbles(self, path: str) -> bool:
        left = self.hurdles.get(path, 1)
        self.hurdles[path] = left - 1
        return left > 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_):
        """Prints nothing: the tests check ``server.requests``."""

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        self.server.requests.append((self.path, self.headers.get("Range", "")))
        getattr(self, path.strip("/").split("/")[0].replace("-", "_"))()

    def give(self, body: bytes, ranges=True, length=None, kind="application/octet-stream", stop=None, tag=True):
        requested_range = self.headers.get("Range") if ranges else None
        same = self.headers.get("If-Range") in (None, self.server.tag)
        start = int(requested_range.removeprefix("bytes=").removesuffix("-")) if requested_range and same else 0
        if start >= len(body) > 0:
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", kind)
        if length is not False:
            self.send_header("Content-Length", str(length or len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if tag:
            self.send_header("ETag", self.server.tag)
        self.end_headers()
        self.wfile.write(body[start:stop])
        self.wfile.flush()

    def good(self):
        self.give(self.server.body)

    def without_ranges(self):
        self.give(self.server.body, ranges=False, stop=STOP if self.server.stumbles("without-ranges") else None)

    def truncates(self):
        self.give(self.server.body, stop=STOP if self.server.stumbles("truncates") else None)

    def untagged(self):
        self.give(self.server.body, tag=False, stop=STOP if self.server.stumbles("untagged") else None)

    def always_truncates(self):
        self.give(self.server.body, stop=STOP, length=len(self.server.body), ranges=False)

    def stalls(self):
        stumbles = self.server.stumbles("stalls")
        self.give(self.server.body, stop=STOP if stumbles else None)
        if stumbles:
            time.sleep(1.0)

    def page(self):
        self.give(PAGE, kind="text/html; charset=utf-8")

    def page_in_disguise(self):
        self.give(b"\n " + PAGE)

    def wrong(self):
        self.give(self.server.body[::-1])

    def lost(self):
        self.send_error(404)

    def busy(self):
        self.send_error(503) if self.server.stumbles("busy") else self.give(self.server.body)

    def drive(self):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        if query.get("uuid") == "7&7":
            return self.give(self.server.body)
        form = f'<form id="download-form" action="{self.server.url}/drive" method="get">'
        hidden = (
            f'<input type="hidden" name="id" value="{query["id"]}"><input type="hidden" name="uuid" value="7&amp;7">'
        )
        return self.give(f"<html><body>{form}{hidden}</form></body></html>".encode(), kind="text/html")


@pytest.fixture
def server() -> Iterator[Server]:
    test_server = Server()
    thread = threading.Thread(target=test_server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield test_server
    test_server.shutdown()
    test_server.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(fetching, "WAITS", (0.0, 0.0))
    monkeypatch.setattr(fetching, "CONNECT", 2.0)
    monkeypatch.setattr(fetching, "SILENCE", 0.3)
    monkeypatch.setattr(fetching, "DRIVE", "unset {}")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


class Fetched:
    """A call of `download`, and its result."""

    def __init__(self, folder: Path):
        self.part, self.target, self.messages = folder / ".weights.pt.part", folder / "weights.pt", []

    def __call__(self, *urls: str, size: int | None = None, sha256: str = SHA256) -> str:
        def accept(part: Path, url: str) -> None:
            if sha256 and hashlib.sha256(part.read_bytes()).hexdigest() != sha256:
                raise AssetError("it is altered or another file.")
            part.replace(self.target)
            self.origin = url

        fetching.download(urls, self.part, accept, size, bool(sha256), self.messages.append)
        assert sorted(path.name for path in self.target.parent.iterdir()) == ["weights.pt"], "a temporary file is left"
        return self.origin

    @property
    def whole(self) -> bool:
        return self.target.read_bytes() == BODY


@pytest.fixture
def fetch(tmp_path) -> Fetched:
    return Fetched(tmp_path)


@pytest.mark.parametrize(
    ("how", "sha256", "ranges"),
    [
        ("good", SHA256, [""]), ("truncates", SHA256, ["", RESUMED]), ("stalls", SHA256, ["", RESUMED]),
        ("without-ranges", SHA256, ["", RESUMED]), ("busy", SHA256, ["", ""]),
        # No version of the file is given, so only a published hash can show that both parts are of one file.
        ("untagged", "", ["", ""]), ("untagged", SHA256, ["", RESUMED]),
    ],
)  # fmt: skip
def test_a_broken_download_resumes_where_it_stopped_or_starts_again(server, fetch, how, sha256, ranges):
    assert fetch(f"{server.url}/{how}", sha256=sha256) == f"{server.url}/{how}"
    assert fetch.whole
    assert server.requests == [(f"/{how}", requested_range) for requested_range in ranges]
    assert bool(fetch.messages) == (len(ranges) > 1)


def test_a_later_call_resumes_an_earlier_download(server, fetch):
    server.hurdles["truncates"] = 3  # the number of attempts of one call
    with pytest.raises(AssetError, match=r"70000 of 179200|broke"):
        fetch(f"{server.url}/truncates")
    assert fetch.part.is_file()
    server.requests.clear()
    fetch(f"{server.url}/truncates")
    assert fetch.whole
    assert server.requests[0][1].startswith("bytes=")


def test_a_file_that_changed_at_its_server_is_not_mixed_with_the_old_one(server, fetch):
    server.hurdles["truncates"] = 3
    with pytest.raises(AssetError):
        fetch(f"{server.url}/truncates", sha256="")
    server.body, server.tag = BODY[::-1], '"second"'
    fetch(f"{server.url}/truncates", sha256="")
    assert fetch.target.read_bytes() == BODY[::-1]


def test_a_download_from_one_mirror_is_not_resumed_at_another(server, fetch):
    fetch(f"{server.url}/always-truncates", f"{server.url}/good")
    assert fetch.whole
    assert server.requests[-1] == ("/good", "")


@pytest.mark.parametrize("how", ["page", "page-in-disguise"])
def test_a_web_page_with_status_200_is_not_accepted_as_a_weight_file(server, fetch, how):
    with pytest.raises(AssetError, match="web page in place of the file"):
        fetch(f"{server.url}/{how}", sha256="")  # without a hash to compare with
    assert not fetch.target.exists()
    assert len(server.requests) == 1  # a second attempt would not help


def test_the_good_mirror_is_used_after_a_404_and_a_wrong_hash(server, fetch):
    assert fetch(f"{server.url}/lost", f"{server.url}/wrong", f"{server.url}/good") == f"{server.url}/good"
    assert fetch.whole
    assert [path for path, _ in server.requests] == ["/lost", "/wrong", "/good"]
    assert "404" in fetch.messages[0]
    assert "another file" in fetch.messages[1]


def test_a_wrong_size_is_refused_before_any_byte_is_stored(server, fetch):
    with pytest.raises(AssetError, match=f"{len(BODY)} bytes, its publisher gives 5"):
        fetch(f"{server.url}/good", size=5)
    assert not fetch.part.exists()


def test_a_full_disk_is_reported_before_anything_is_written(server, fetch, monkeypatch):
    usage = fetching.shutil.disk_usage(".")
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: usage._replace(free=fetching.SPARE + len(BODY) - 1))
    with pytest.raises(AssetError, match=r"disk is too small for weights.pt"):
        fetch(f"{server.url}/good")
    assert not fetch.part.exists()
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: usage._replace(free=fetching.SPARE + len(BODY)))
    fetch(f"{server.url}/good")


def test_the_confirmation_page_of_google_drive_is_answered(server, fetch, monkeypatch):
    monkeypatch.setattr(fetching, "DRIVE", f"{server.url}/drive?id={{}}")
    assert fetch("drive:1PQutd-JboOCOZqmd95XWxWrO8gGEvRcO").startswith("drive:")
    assert fetch.whole
    assert server.requests[1][0] == "/drive?id=1PQutd-JboOCOZqmd95XWxWrO8gGEvRcO&uuid=7%267"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.integers(0, len(BODY) + 1000), body=st.sampled_from([BODY, b"\n" * len(BODY)]))
def test_the_file_is_complete_whatever_an_earlier_attempt_left_behind(server, tmp_path, kept, body):
    """Also if the partial file is of another file, or longer than the file."""
    fetch = Fetched(tmp_path)
    fetch.target.unlink(missing_ok=True)
    fetch.part.write_bytes((body + body)[:kept])
    note = fetch.part.with_name(f"{fetch.part.name}.json")
    note.write_text(f'{{"url": "{server.url}/good", "condition": ""}}')
    try:
        fetch(f"{server.url}/good")
    except AssetError:  # it resumed with bytes of another file; the hash detects this, and the bytes are discarded
        assert body != BODY or kept > len(BODY)
        fetch(f"{server.url}/good")
    assert fetch.whole
