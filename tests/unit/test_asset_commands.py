"""`masquerade assets`: list, fetch, verify and place; what the doctor says."""

import hashlib
import re
from pathlib import Path

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from masquerade import assets
from masquerade.assets import entries, fetching, lock
from masquerade.cli import doctor
from masquerade.cli.assets import app
from masquerade.core import discovery
from masquerade.core.errors import AssetError
from masquerade.params import loading
from masquerade.params.blocks import PARAMS
from toy_assets import BYTES, SHA256, about, archive, given_file, placed, put, remote, toy_registry, weights


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit | AssetError), done.exception
    return done.exit_code, done.output + str(done.exception or "")


@pytest.fixture
def toys(monkeypatch, tmp_path):
    (tmp_path / PARAMS).touch()  # a clone
    return toy_registry(monkeypatch, tmp_path)


def test_the_list_shows_every_state(toys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    placed("unknown")
    put("by_md5")
    put("published", b"cut")
    code, output = run("list")
    states = dict(re.findall(r"│ (\w+) .*│ (.*?) +│$", output, re.MULTILINE))
    assert code == 0
    assert states == {"unknown": "there", "published": "altered", "by_md5": "unrecorded", "form": "needs a form",
                      "people": "missing"}  # fmt: skip


def test_fetch_continues_after_a_failed_role_and_lists_the_files_that_exist(toys):
    put("published")
    code, output = run("fetch", "form", "published")
    assert code == 1
    assert "1. Ask nicely." in output
    assert "published: there already" in output
    put("published", BYTES[::-1])
    code, output = run("fetch", "published")
    assert (code, "altered" in output) == (1, True)


def test_fetch_uses_the_archive_if_the_direct_file_is_wrong(toys, monkeypatch):
    """The file has two sources: an address with a wrong file, then the archive with the right one."""
    packed = archive("w", {"inside/net.pt": BYTES})
    served = {"https://one": b"something else", "https://two": packed}
    tar = entries.Archive(name="net.tar", member="inside/net.pt",
                           **remote(urls=("https://two",), sha256=hashlib.sha256(packed).hexdigest()))  # fmt: skip
    toys["both"] = weights(archives=(tar,), urls=("https://one",), sha256=SHA256)
    monkeypatch.setattr("masquerade.assets.fetching._persist", lambda url, part, *_: part.write_bytes(served[url]))
    code, output = run("fetch", "both")
    assert code == 0, output
    assert assets.check_asset("both").read_bytes() == BYTES
    assert lock.recorded("both", "net.pt").origin == "https://two"
    assert sorted(path.name for path in Path("assets/both").iterdir() if path.suffix != ".lock") == ["net.pt"]


def test_fetch_prints_the_steps_by_hand_if_every_address_of_a_file_is_dead_and_fetches_the_other_files(
    toys, monkeypatch
):
    md5 = hashlib.md5(BYTES).hexdigest()
    lists = (
        entries.File(
            name="people.txt", **remote(urls=("https://dead",), size=len(BYTES), md5=md5, vouched="a library")
        ),
        entries.File(name="pairs.txt", **remote(urls=("https://alive",), sha256=SHA256)),
    )
    toys["faces"] = entries.Dataset(**about(source="its makers"), files=lists, folders=(), within=())

    def receive(url: str, part: Path, *_: object) -> None:
        if url == "https://dead":
            raise fetching.MirrorError("its name is not found")
        part.write_bytes(BYTES)

    monkeypatch.setattr(fetching, "_persist", receive)
    code, output = run("fetch", "faces")
    assert code == 1
    assert "https://dead: its name is not found" in output
    assert f"Get a copy of people.txt ({len(BYTES)} bytes, MD5 {md5}; source: a library)" in output
    assert "Where it comes from: its makers." in output
    assert "`masquerade assets place people.txt faces` checks it and puts it into assets/faces/people.txt." in output
    assert Path("assets/faces/pairs.txt").read_bytes() == BYTES
    given_file(BYTES, "people.txt")
    assert run("place", "people.txt", "faces")[0] == 0
    assert run("fetch", "faces")[0] == 0


def test_two_processes_do_not_fetch_the_same_file(toys):
    Path("assets/unknown").mkdir(parents=True)
    with FileLock("assets/unknown/.fetch.lock"):
        code, output = run("fetch", "unknown")
    assert (code, "Another process is fetching 'unknown'" in output) == (1, True)


def test_verify_checks_existing_files_and_fails_if_a_named_role_is_missing(toys):
    assert run("verify") == (
        0,
        "Nothing lies in assets yet: `masquerade assets list`, `masquerade assets fetch ROLE`.\n",
    )
    placed("unknown")
    code, output = run("verify")
    assert code == 0
    assert "ok" in output
    assert run("verify", "form")[0] == 1
    put("unknown", BYTES[::-1])
    code, output = run("verify")
    assert code == 1
    assert "altered" in output


def test_place_advises_to_commit_the_lock(toys):
    code, output = run("place", str(given_file()), "unknown")
    assert code == 0
    assert "Commit assets.lock.yaml" in output
    code, output = run("place", ".", "people")
    assert "A folder of pictures is moved or linked" in output
    code, output = run("place", str(given_file()), "people")
    assert "no file of 'people'. Its files: list.txt, pictures.zip" in output


def test_the_doctor_names_what_the_scale_lacks(toys, monkeypatch):
    parameters = loading.load(Path(assets.__file__).parents[3], "mini")
    assert list(doctor.check_assets(Path(), parameters)) == [], "mini needs no external file"
    knobs = parameters.backbones["parsing"].model_copy(update={"published": "asset:unknown"})
    parameters.backbones["parsing"] = knobs
    monkeypatch.setattr(discovery.load("judges", "mtcnn"), "assets", ("published", "form"), raising=False)
    monkeypatch.setattr(assets, "registry", lambda: toys)
    put("published")
    (check,) = doctor.check_assets(Path(), parameters)
    assert (check.ok, check.state) == (False, "1 of 3 (without unknown, form)")
    assert "fetch unknown" in check.remedy
