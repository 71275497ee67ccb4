"""External files in archives and folders: extracted, verified, never followed out of their place."""

import hashlib
import tarfile
from pathlib import Path

import pytest

from masquerade import assets
from masquerade.assets import checking, fetching, installing, lock
from masquerade.core.errors import AssetError, CheckpointError
from toy_assets import BYTES, archive, placed, put, toy_registry


@pytest.fixture
def toys(monkeypatch, tmp_path):
    return toy_registry(monkeypatch, tmp_path)


@pytest.mark.parametrize(("kind", "member"), [("zip", "a/b"), ("w", "a/b"), ("w:gz", "a/b"), ("bz2", "")])
def test_one_file_is_extracted_from_an_archive(tmp_path, kind, member):
    packed = tmp_path / "packed"
    packed.write_bytes(archive(kind, {member: BYTES, "../evil": b"never", "a/c": b"never"}))
    fetching.unpack(packed, member, tmp_path / "out" / "net.pt")
    assert (tmp_path / "out" / "net.pt").read_bytes() == BYTES
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["net.pt", "packed"]


@pytest.mark.parametrize(("kind", "member"), [("zip", "a/b"), ("w", "a/b"), ("w:gz", "a/b"), ("bz2", "")])
def test_a_truncated_archive_leaves_no_file(tmp_path, kind, member):
    packed = tmp_path / "packed"
    content = archive(kind, {member: bytes(hashlib.shake_128(b"noise").digest(50_000))})
    packed.write_bytes(content[: len(content) // 2])
    with pytest.raises(AssetError, match="damaged or no archive"):
        fetching.unpack(packed, member, tmp_path / "net.pt")
    assert not (tmp_path / "net.pt").exists()


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    link = tarfile.TarInfo("net.pt")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "packed", "w") as made:
        made.addfile(link)
    with pytest.raises(AssetError, match="no plain file"):
        fetching.unpack(tmp_path / "packed", "net.pt", tmp_path / "net.pt")


def test_a_published_archive_can_be_placed(toys):
    placed("unknown", archive("w", {"inside/net.pt": BYTES}), name="net.tar")
    assert assets.check_asset("unknown").read_bytes() == BYTES


def dataset() -> None:
    put("people", b"a 1\n", "list.txt")
    for name in ("1.jpg", "2.jpg"):
        put("people", name.encode(), f"pictures/{name}")
    put("people", b"?", "more/sub/3.jpg")


def test_a_dataset_may_be_packed_or_unpacked(toys):
    dataset()
    assert checking.missing("people") == []
    Path("assets/people/Anno").mkdir()
    Path("assets/people/list.txt").rename("assets/people/Anno/list.txt")  # in the layout of its publisher
    assert checking.missing("people") == []
    put("people", b"zip", "pictures.zip")
    for path in Path("assets/people/pictures").iterdir():
        path.unlink()
    assert checking.missing("people") == []
    Path("assets/people/pictures.zip").unlink()
    assert checking.missing("people") == ["pictures.zip"]
    with pytest.raises(CheckpointError, match=r"assets/people/pictures.zip is missing"):
        assets.check_asset("people")


def test_every_picture_of_a_folder_is_verified(toys):
    dataset()
    assert {finding.state for finding in installing.verify("people")} == {"recorded"}
    lines = "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in ("1.jpg", "2.jpg"))
    # `lines` is in the format of sha256sum
    assert lock.recorded("people", "pictures").sha256 == hashlib.sha256(lines.encode()).hexdigest()
    put("people", b"hidden", "pictures/.DS_Store")
    assert all(finding.ok for finding in installing.verify("people"))
    put("people", b"other", "more/sub/3.jpg")
    assert [finding.name for finding in installing.verify("people") if not finding.ok] == ["more"]
    put("people", b"3", "pictures/3.jpg")
    text = next(finding.text for finding in installing.verify("people") if finding.name == "pictures")
    assert "has 3 files, its publisher gives 2" in text
    assert assets.check_asset("people") == Path("assets/people")  # fast: it relies on `verify`
