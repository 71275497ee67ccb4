"""Fetching against a server of our own that does everything that servers of weight files are known to do."""

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
KEPT = 70_000 // fetching.CHUNK * fetching.CHUNK  # of the 70,000 bytes that come before a break
PAGE = b"<!DOCTYPE html><html><body>Too many users have downloaded this file.</body></html>"


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = BODY
        self.tag = '"first"'
        self.asked: list[tuple[str, str]] = []
        """(path, Range) of each request."""
        self.hurdles: dict[str, int] = {}
        """How often a path still misbehaves before it behaves."""

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
        """Nothing: the tests look at ``server.asked``."""

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        self.server.asked.append((self.path, self.headers.get("Range", "")))
        getattr(self, path.strip("/").split("/")[0].replace("-", "_"))()

    def give(self, body: bytes, ranges=True, length=None, kind="application/octet-stream", stop=None, tag=True):
        wanted = self.headers.get("Range") if ranges else None
        same = self.headers.get("If-Range") in (None, self.server.tag)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and same else 0
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
        self.give(self.server.body, ranges=False, stop=70_000 if self.server.stumbles("without-ranges") else None)

    def truncates(self):
        self.give(self.server.body, stop=70_000 if self.server.stumbles("truncates") else None)

    def untagged(self):
        self.give(self.server.body, tag=False, stop=70_000 if self.server.stumbles("untagged") else None)

    def always_truncates(self):
        self.give(self.server.body, stop=70_000, length=len(self.server.body), ranges=False)

    def stalls(self):
        stumbles = self.server.stumbles("stalls")
        self.give(self.server.body, stop=70_000 if stumbles else None)
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

    def elsewhere(self):
        """A range other than the one that was asked for."""
        if self.headers.get("Range"):
            self.send_response(206)
            self.send_header("Content-Range", f"bytes 5-{len(BODY) - 1}/{len(BODY)}")
            self.send_header("Content-Length", str(len(BODY) - 5))
            self.end_headers()
            self.wfile.write(BODY[5:])
        else:
            self.give(BODY, stop=70_000 if self.server.stumbles("elsewhere") else None)

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
    found = Server()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(fetching, "WAITS", (0.0, 0.0))
    monkeypatch.setattr(fetching, "CONNECT", 2.0)
    monkeypatch.setattr(fetching, "SILENCE", 0.3)
    monkeypatch.setattr(fetching, "DRIVE", "unset {}")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


class Fetched:
    """A call of `download`, and what came of it."""

    def __init__(self, folder: Path):
        self.part, self.target, self.said = folder / ".weights.pt.part", folder / "weights.pt", []

    def __call__(self, *urls: str, size: int | None = None, sha256: str = SHA256) -> str:
        def accept(part: Path, url: str) -> None:
            if sha256 and hashlib.sha256(part.read_bytes()).hexdigest() != sha256:
                raise AssetError("it is altered or another file.")
            part.replace(self.target)
            self.origin = url

        fetching.download(urls, self.part, accept, size, bool(sha256), self.said.append)
        assert sorted(path.name for path in self.target.parent.iterdir()) == ["weights.pt"], "something was left behind"
        return self.origin

    @property
    def whole(self) -> bool:
        return self.target.read_bytes() == BODY


@pytest.fixture
def fetch(tmp_path) -> Fetched:
    return Fetched(tmp_path)


def test_a_file_comes_whole(server, fetch):
    assert fetch(f"{server.url}/good") == f"{server.url}/good"
    assert fetch.whole
    assert not fetch.said


@pytest.mark.parametrize("how", ["truncates", "stalls"])
def test_a_broken_download_goes_on_where_it_broke_off(server, fetch, how):
    fetch(f"{server.url}/{how}")
    assert fetch.whole
    assert server.asked == [(f"/{how}", ""), (f"/{how}", f"bytes={KEPT}-")]


def test_a_server_without_ranges_starts_over(server, fetch):
    fetch(f"{server.url}/without-ranges")
    assert fetch.whole
    assert [asked for _, asked in server.asked] == ["", f"bytes={KEPT}-"]


def test_a_later_call_goes_on_with_what_came_before(server, fetch):
    server.hurdles["truncates"] = 3  # as often as one call tries
    with pytest.raises(AssetError, match=r"70000 of 179200|broke"):
        fetch(f"{server.url}/truncates")
    assert fetch.part.is_file()
    server.asked.clear()
    fetch(f"{server.url}/truncates")
    assert fetch.whole
    assert server.asked[0][1].startswith("bytes=")


def test_a_file_that_changed_at_its_server_is_not_mixed_with_the_old_one(server, fetch):
    server.hurdles["truncates"] = 3
    with pytest.raises(AssetError):
        fetch(f"{server.url}/truncates", sha256="")
    server.body, server.tag = BODY[::-1], '"second"'
    fetch(f"{server.url}/truncates", sha256="")
    assert fetch.target.read_bytes() == BODY[::-1]


@pytest.mark.parametrize(("sha256", "asked"), [("", ""), (SHA256, f"bytes={KEPT}-")])
def test_what_nothing_would_prove_whole_is_started_over(server, fetch, sha256, asked):
    """The server names no version of its file: only a published hash would show that the two parts are of one."""
    fetch(f"{server.url}/untagged", sha256=sha256)
    assert fetch.whole
    assert server.asked == [("/untagged", ""), ("/untagged", asked)]


def test_bytes_of_one_mirror_are_not_gone_on_with_at_another(server, fetch):
    fetch(f"{server.url}/always-truncates", f"{server.url}/good")
    assert fetch.whole
    assert server.asked[-1] == ("/good", "")


def test_a_range_that_was_not_asked_for_is_thrown_away(server, fetch):
    fetch(f"{server.url}/elsewhere")
    assert fetch.whole


@pytest.mark.parametrize("how", ["page", "page-in-disguise"])
def test_a_web_page_with_status_200_is_no_weight_file(server, fetch, how):
    with pytest.raises(AssetError, match="web page in place of the file"):
        fetch(f"{server.url}/{how}", sha256="")  # with no hash to hold it against
    assert not fetch.target.exists()
    assert len(server.asked) == 1  # trying again would not help


def test_after_a_404_and_a_wrong_hash_the_good_mirror_is_taken(server, fetch):
    assert fetch(f"{server.url}/lost", f"{server.url}/wrong", f"{server.url}/good") == f"{server.url}/good"
    assert fetch.whole
    assert [path for path, _ in server.asked] == ["/lost", "/wrong", "/good"]
    assert "404" in fetch.said[0]
    assert "another file" in fetch.said[1]


def test_a_busy_server_is_asked_again(server, fetch):
    fetch(f"{server.url}/busy")
    assert [path for path, _ in server.asked] == ["/busy", "/busy"]


def test_every_failure_is_named(server, fetch):
    with pytest.raises(AssetError) as told:
        fetch(f"{server.url}/lost", f"{server.url}/page", "http://127.0.0.1:9/nobody")
    assert all(word in str(told.value) for word in ("/lost", "404", "/page", "web page", "nobody", "connection"))


def test_a_wrong_size_is_refused_before_a_byte_is_kept(server, fetch):
    with pytest.raises(AssetError, match=f"{len(BODY)} bytes, its publisher gives 5"):
        fetch(f"{server.url}/good", size=5)
    assert not fetch.part.exists()


def test_a_full_disk_is_said_before_anything_is_written(server, fetch, monkeypatch):
    usage = fetching.shutil.disk_usage(".")
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: usage._replace(free=fetching.SPARE + len(BODY) - 1))
    with pytest.raises(AssetError, match=r"disk is too small for weights.pt"):
        fetch(f"{server.url}/good")
    assert not fetch.part.exists()
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: usage._replace(free=fetching.SPARE + len(BODY)))
    fetch(f"{server.url}/good")


def test_the_proxy_of_the_environment_is_used(server, fetch, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    fetch("http://weights.invalid/good")
    assert fetch.whole
    assert server.asked == [("http://weights.invalid/good", "")]


def test_google_drives_question_is_answered(server, fetch, monkeypatch):
    monkeypatch.setattr(fetching, "DRIVE", f"{server.url}/drive?id={{}}")
    assert fetch("drive:1PQutd-JboOCOZqmd95XWxWrO8gGEvRcO").startswith("drive:")
    assert fetch.whole
    assert server.asked[1][0] == "/drive?id=1PQutd-JboOCOZqmd95XWxWrO8gGEvRcO&uuid=7%267"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.integers(0, len(BODY) + 1000), body=st.sampled_from([BODY, b"\n" * len(BODY)]))
def test_whatever_was_left_of_an_earlier_try_the_file_comes_whole(server, tmp_path, kept, body):
    """Also where the rest is of another file, or longer than the file."""
    fetch = Fetched(tmp_path)
    fetch.target.unlink(missing_ok=True)
    fetch.part.write_bytes((body + body)[:kept])
    note = fetch.part.with_name(f"{fetch.part.name}.json")
    note.write_text(f'{{"url": "{server.url}/good", "condition": ""}}')
    try:
        fetch(f"{server.url}/good")
    except AssetError:  # it went on with bytes of another file: seen by the hash, and thrown away
        assert body != BODY or kept > len(BODY)
        fetch(f"{server.url}/good")
    assert fetch.whole
