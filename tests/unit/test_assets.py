"""External files: the registry, the lock, the checks of a file, and the messages to the user."""

import bz2
import hashlib
import io
import json
import re
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from masquerade import assets
from masquerade.assets import checking, entries, fetching, installing, lock
from masquerade.cli import doctor
from masquerade.cli.assets import app
from masquerade.core import discovery
from masquerade.core.errors import AssetError, CheckpointError, ParameterError
from masquerade.lineage import crate
from masquerade.params import loading, overlays
from masquerade.params.blocks import PARAMS

ROLES = (
    "ir_se50", "facenet_vggface2", "facenet_casia", "adaface_ir50", "stylegan2_256", "stylegan2_1024",
    "stylegan2_1024_genforce", "e4e_1024", "psp_1024", "farl_ep64", "farl_ep16", "clip_vit_b32", "bisenet", "fan4",
    "s3fd", "inception_fid", "faceres", "human", "human_models", "faceplugin", "alexnet", "vgg16", "landmarks_68",
    "deepprivacy_default",
    "deepprivacy_large", "deepprivacy2_fdf256", "deepprivacy2_fdf128", "ciagan", "dartblur", "celeba_hq", "celeba",
    "lfw", "ffhq", "casia_webface",
)  # fmt: skip


BYTES = b"weights of a network" * 1000
SHA256 = hashlib.sha256(BYTES).hexdigest()


def remote(**known):
    return {"urls": (), "size": None, "sha256": None, "md5": None, "vouched": ""} | known


def about(**known):
    return {
        "title": "a network", "source": "a test", "roughly": "", "license": "MIT", "terms": "", "steps": (),
        "redistribution": "anybody", "papers": (),
    } | known  # fmt: skip


def weights(name="net.pt", archives=(), more=None, **known):
    file = entries.File(name=name, **remote(**known))
    return entries.Weights(**about(**(more or {})), file=file, archives=archives, layout="", loader="",
                            preprocessing=None)  # fmt: skip


def put(role: str, content: bytes = BYTES, name: str = "net.pt") -> Path:
    file = Path("assets", role, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def given_file(content: bytes = BYTES, name: str = "download.pt") -> Path:
    Path(name).write_bytes(content)
    return Path(name)


def placed(role: str, content: bytes = BYTES, name: str = "download.pt", rehearsal: bool = False) -> list[str]:
    messages = []
    installing.place(given_file(content, name), role, rehearsal, messages.append)
    return messages


def archive(kind: str, members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as made:
            for name, content in members.items():
                made.writestr(name, content)
    elif kind == "bz2":
        return bz2.compress(members[""])
    else:
        with tarfile.open(fileobj=stream, mode=kind) as made:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                made.addfile(info, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def toys(monkeypatch, tmp_path):
    """A registry of a few roles in a separate repository, which is the working directory."""
    (tmp_path / PARAMS).touch()  # a clone
    tar = entries.Archive(name="net.tar", member="inside/net.pt", **remote())
    pictures = (
        entries.Folder(name="pictures", count=2, instead_of=("pictures.zip",)),
        entries.Folder(name="more", count=None, instead_of=()),
    )
    lists = tuple(entries.File(name=name, **remote()) for name in ("list.txt", "pictures.zip"))
    roles = {
        "unknown": weights(archives=(tar,)),
        "published": weights(size=len(BYTES), sha256=SHA256),
        "by_md5": weights(md5=hashlib.md5(BYTES).hexdigest()),
        "form": weights(more={"steps": ("Ask nicely.", "Place it.")}),
        "people": entries.Dataset(**about(), files=lists, folders=pictures, within=("Anno",)),
    }
    monkeypatch.setattr(entries, "registry", lambda: roles)
    monkeypatch.setattr(assets, "registry", lambda: roles)
    monkeypatch.chdir(tmp_path)
    return roles


def test_the_registry_has_every_role_of_the_papers():
    assert tuple(assets.registry()) == ROLES
    packaged = Path(entries.FILE).relative_to(Path(assets.__file__).parents[1])
    project = (Path(assets.__file__).parents[3] / "pyproject.toml").read_text()
    assert f'"{packaged.as_posix()}"' in project, "the package would not contain the registry"


def test_every_entry_has_an_address_or_steps_and_the_source_of_its_hash():
    papers = set(loading.load(Path(assets.__file__).parents[3], "mini").papers)
    for role, entry in assets.registry().items():
        assert set(entry.papers) <= papers
        ways = [file for file in (*entry.parts, *getattr(entry, "archives", ())) if file.urls]
        assert bool(ways) != bool(entry.steps), f"{role}: an entry needs either an address or steps for the user"
        for file in (*entry.parts, *getattr(entry, "archives", ())):
            known = bool(file.size or file.sha256 or file.md5)
            assert known == bool(file.vouched), f"{role}: the source of the size or hash of {file.name} is missing"
        if entry.steps:
            assert any("assets place" in step or "assets verify" in step for step in entry.steps)
            assert f" {role}`" in " ".join(entry.steps), "the steps must name the command with the role"
        for tree in entry.trees:
            assert set(tree.instead_of) <= {file.name for file in entry.parts}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree["weights"]["fan4"].update(color="red"), "weights.fan4.color"),
        (lambda tree: tree["weights"]["fan4"]["file"].update(name="../../etc/passwd"), "no plain path"),
        (lambda tree: tree["datasets"].update(fan4=tree["datasets"]["lfw"]), "one name: fan4"),
    ],
)
def test_a_wrong_registry_is_refused_by_name(tmp_path, change, message):
    tree = yaml.safe_load(entries.FILE.read_text(encoding="utf-8"))
    change(tree)
    file = tmp_path / "assets.yaml"
    file.write_text(yaml.safe_dump(tree))
    with pytest.raises(AssetError, match=message):
        entries.read(file)


@given(st.text(st.sampled_from("ab./\\"), min_size=1, max_size=8))
def test_a_name_that_leaves_the_folder_is_refused(name):
    try:
        allowed = entries.File(name=name, **remote()).name
    except ValueError:
        return
    root = Path("/assets/role")
    assert (root / allowed).resolve().is_relative_to(root)
    assert allowed == (root / allowed).relative_to(root).as_posix()


def test_the_error_for_a_missing_file_says_what_to_do(toys):
    with pytest.raises(CheckpointError, match=r"assets/published/net.pt is missing.*`masquerade assets fetch publ"):
        assets.check_asset("published")
    with pytest.raises(CheckpointError, match="terms that a person must accept"):
        assets.check_asset("form")


def test_a_published_file_must_match_the_hash_of_its_publisher(toys):
    put("published")
    assert assets.check_asset("published") == Path("assets/published/net.pt")
    put("published", BYTES[:-1])
    with pytest.raises(CheckpointError, match=f"cut.*{len(BYTES) - 1} bytes, its publisher gives {len(BYTES)}"):
        assets.check_asset("published")
    put("published", BYTES[::-1])
    with pytest.raises(CheckpointError, match="altered or another file: its SHA-256"):
        assets.check_asset("published")


def test_a_file_without_a_known_hash_is_not_used(toys):
    put("unknown")
    with pytest.raises(CheckpointError, match=r"cannot be checked.*`masquerade assets verify unknown` records it"):
        assets.check_asset("unknown")
    assert assets.state("unknown") == "unrecorded"
    (finding,) = installing.verify("unknown")
    assert finding.state == "recorded"
    assert SHA256 in finding.text
    assert assets.check_asset("unknown").is_file()


def test_the_lock_is_written_once_and_a_later_file_must_match_it(toys):
    messages = placed("unknown")
    assert messages[0] == "unknown: download.pt is taken for net.pt."
    assert any("trusted on first use" in line and SHA256 in line for line in messages)
    before = lock.LOCK.read_text()
    assert before.startswith("# Files from outside")
    placed("unknown")  # the same file again
    assert lock.LOCK.read_text() == before
    with pytest.raises(AssetError, match=r"assets.lock.yaml has, of 20.*It is not installed"):
        placed("unknown", BYTES[::-1])
    assert assets.check_asset("unknown").read_bytes() == BYTES
    put("unknown", BYTES[::-1])
    with pytest.raises(CheckpointError, match=r"assets.lock.yaml has"):
        assets.check_asset("unknown")
    assert [finding.state for finding in installing.verify("unknown")] == ["altered"]
    assert lock.LOCK.read_text() == before


def test_processes_that_record_at_the_same_time_lose_no_entry(toys, tmp_path):
    def record(number: int) -> None:
        lock.record("people", f"{number}.txt", f"{number:064x}", number, "found", False, tmp_path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(record, range(24)))
    assert sorted(lock.read(tmp_path)["people"]) == sorted(f"{number}.txt" for number in range(24))


@pytest.mark.parametrize("text", ["unknown: {net.pt: {size: 3}}", "unknown: ["])
def test_a_damaged_lock_is_an_error_and_not_an_empty_lock(toys, text):
    put("unknown")
    lock.LOCK.write_text(text)
    with pytest.raises(AssetError, match=r"damaged.*git checkout"):
        assets.state("unknown")


def test_a_wrong_file_is_not_placed(toys):
    with pytest.raises(AssetError, match=r"its publisher gives.*not installed"):
        placed("published", BYTES + b"!")
    with pytest.raises(AssetError, match="its MD5 is"):
        placed("by_md5", BYTES[::-1])
    assert [path for path in Path("assets").rglob("*") if path.is_file()] == []
    assert not lock.LOCK.exists()
    placed("by_md5")
    assert assets.check_asset("by_md5").read_bytes() == BYTES


def test_a_rehearsal_file_is_marked_and_the_real_file_replaces_it(toys):
    fake = b"random weights in the official layout"
    assert "nothing that it makes may enter a table" in placed("published", fake, rehearsal=True)[-1]
    assert assets.path("published").read_bytes() == fake
    assert assets.state("published") == "rehearsal"
    assert lock.recorded("published", "net.pt").rehearsal
    placed("published", b"another rehearsal", rehearsal=True)
    placed("published")
    assert not lock.recorded("published", "net.pt").rehearsal
    assert assets.state("published") == "there"
    with pytest.raises(AssetError, match="rehearse in another folder"):
        placed("published", fake, rehearsal=True)
    assert assets.check_asset("published").read_bytes() == BYTES


def test_the_identity_of_an_asset_depends_on_the_lock_and_not_on_the_disk(toys):
    """A pulled build has the lock and no assets, and must still be up to date."""
    placed("unknown")
    file = checking.write_identity("unknown")
    assert json.loads(file.read_text()) == {"net.pt": SHA256}
    written = file.stat().st_mtime_ns
    Path("assets/unknown/net.pt").unlink()
    assert checking.write_identity("unknown").stat().st_mtime_ns == written
    assert checking.describe_identity("published") == {"net.pt": SHA256}
    assert checking.describe_identity("form") == {"net.pt": ""}
    assert checking.role_of(file) == "unknown"
    assert checking.role_of("assets/unknown/net.pt") == ""


def test_an_asset_that_is_not_ready_gives_the_reason(toys):
    assert "fetch unknown" in assets.unready("unknown")
    put("unknown")
    assert "not in assets.lock.yaml" in assets.unready("unknown")
    placed("unknown")
    assert assets.unready("unknown") == ""
    put("unknown", b"cut")
    assert "cut or altered" in assets.unready("unknown")


def test_a_backbone_takes_its_file_from_the_registry(toys):
    cls = discovery.load("backbones", "parsing")
    knobs = loading.load(Path(assets.__file__).parents[3], "mini").backbones["parsing"]
    backbone = cls(knobs.model_copy(update={"published": "asset:published"}))
    assert backbone.published == Path("assets/published/net.pt")
    with pytest.raises(CheckpointError, match="fetch published"):
        backbone.check_published()
    put("published")
    assert backbone.check_published() == SHA256
    with pytest.raises(AssetError, match="no asset 'nobody'"):
        cls(knobs.model_copy(update={"published": "asset:nobody"})).published  # noqa: B018


def test_parameters_with_an_unknown_role_are_refused(tmp_path):
    root = Path(assets.__file__).parents[3]
    for name in ("params.yaml", "scales/evening.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((root / name).read_text())
    overlay = tmp_path / "scales" / "evening.yaml"
    # celeba is a dataset and not a file of a backbone
    for role, advice in {"bisenett": "Did you mean 'bisenet'", "celeba": "Known: .*fan4"}.items():
        block = {"backbones": {"parsing": {"published": f"asset:{role}"}}}
        overlay.write_text(yaml.safe_dump(overlays.overlay(overlays.read_yaml(root / "scales/evening.yaml"), block)))
        with pytest.raises(ParameterError, match=f"backbones.parsing.published names '{role}'.*{advice}"):
            loading.load(tmp_path, "evening")


def test_faces_of_a_known_dataset_have_its_license():
    assert crate.license_of_faces("ffhq", rendered=False) == "CC-BY-NC-SA-4.0"
    assert "non-commercial" in crate.license_of_faces("celeba_hq", rendered=False)
    assert "does not know" in crate.license_of_faces("holidays", rendered=False)


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


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit | AssetError), done.exception
    return done.exit_code, done.output + str(done.exception or "")


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
