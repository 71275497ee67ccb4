"""The results of another program form a method: imported completely, checked by hash, and never an original."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from masquerade.pipeline.imported import pictures, recognized, registry
from PIL import Image

from masquerade.cli import main
from masquerade.core.errors import ArchiveError, ParameterError
from masquerade.core.images import ArchiveWriter, FaceArchive, to_uint8
from masquerade.papers import reference
from masquerade.params import loading, matrix
from masquerade.params.blocks import ImportedMethod, ImportedSet, StandIns

ROOT = Path(__file__).parents[2]
SIDE = 32
OURS = "the name is not the id of a test face"


def pixels(number: int) -> np.ndarray:
    """A smooth image, like a photograph, so that a codec changes it little."""
    small = np.random.default_rng(number).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


@pytest.fixture
def faces(tmp_path: Path) -> FaceArchive:
    """Faces f0 to f4 of the test split, of which f2 was refused, and t0 of the train split."""
    with ArchiveWriter(tmp_path / "faces.zip", {"dataset": "made up", "size": SIDE}) as out:
        for number in range(5):
            row = {"id": f"f{number}", "identity": f"p{number}", "split": "test"}
            if number == 2:
                out.add(None, {**row, "status": "refused", "reason": "no face was found"})
            else:
                out.add(pixels(number), row)
        out.add(pixels(9), {"id": "t0", "identity": "p9", "split": "train"})
    return FaceArchive(tmp_path / "faces.zip")


@pytest.fixture
def originals(faces: FaceArchive) -> pictures.Originals:
    return pictures.Originals(faces)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """The results of a program for the four faces: negatives in several formats."""
    folder = tmp_path / "theirs"
    (folder / "deeper").mkdir(parents=True)
    for number, name in ((0, "f0.png"), (1, "deeper/f1.jpg"), (3, "f3.webp"), (4, "f4.bmp")):
        Image.fromarray(255 - pixels(number)).save(folder / name, lossless=True)
    return folder


def collect(folder: Path, originals, output: Path, near=6.0, partial=False, resize=False) -> int:
    return pictures.collect(folder, originals, output, near, partial, resize)


def take_in(faces, stored: Path, output: Path, **changes) -> FaceArchive:
    knobs = {"sha256": pictures.sha256(stored), "originals": pictures.Originals(faces).digest, "near": 2.0}
    about = {"method": "theirs", "variant": "default", "seed": 0}
    pictures.import_cell(faces, stored, output, ImportedSet(**{**knobs, **changes}), "They 2020, program 1.0", about)
    return FaceArchive(output)


def test_export_writes_every_test_face_and_no_other(faces, tmp_path):
    assert pictures.export(faces, tmp_path / "out") == 4
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["f0.png", "f1.png", "f3.png", "f4.png"]
    assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / "f3.png")), pixels(3))


def test_every_picture_is_imported_unchanged_with_the_row_of_its_original(faces, originals, theirs, tmp_path):
    assert collect(theirs, originals, tmp_path / "stored.zip") == 4
    result = take_in(faces, tmp_path / "stored.zip", tmp_path / "result.zip")
    assert result.index["id"].tolist() == ["f0", "f1", "f2", "f3", "f4"]
    assert result.index["source_id"].tolist() == result.index["id"].tolist()
    assert result.index["identity"].tolist() == ["p0", "p1", "p2", "p3", "p4"]
    assert result.index.set_index("id").loc["f2", "reason"] == "no face was found"
    images = dict(zip(result.load().ids, to_uint8(result.load().images), strict=True))
    assert np.array_equal(images["f0"], 255 - pixels(0))
    assert np.array_equal(images["f4"], 255 - pixels(4))
    assert np.abs(images["f1"].astype(int) - (255 - pixels(1))).mean() < 8  # a JPEG
    stated = {"imported": f"sha256:{pictures.sha256(tmp_path / 'stored.zip')}", "program": "They 2020, program 1.0"}
    assert result.metadata["statement"] == stated
    assert result.metadata["method"] == "theirs"


def test_all_errors_are_listed_together_and_nothing_is_written(originals, theirs, tmp_path):
    (theirs / "f0.png").unlink()
    (theirs / "readme.txt").write_text("how we did it")
    Image.fromarray(pixels(8)).save(theirs / "f1.png")  # beside deeper/f1.jpg
    Image.fromarray(pixels(8)[:-1]).save(theirs / "f3.webp")
    (theirs / "f4.bmp").write_text("no image")
    with pytest.raises(ArchiveError) as error:
        collect(theirs, originals, tmp_path / "stored.zip")
    message = str(error.value)
    assert "for the 4 test faces" in message
    assert "- f0: no image (--partial" in message
    assert f"- readme.txt: {OURS}" in message
    assert "- f1: several files" in message
    assert "- f3: not 32 x 32 pixels (--resize" in message
    assert "- f4: not an image in a format that is read" in message
    assert not (tmp_path / "stored.zip").exists()


def test_missing_picture_is_a_refusal_with_a_reason_and_not_the_original(faces, originals, theirs, tmp_path):
    (theirs / "f3.webp").unlink()
    assert collect(theirs, originals, tmp_path / "stored.zip", partial=True) == 3
    result = take_in(faces, tmp_path / "stored.zip", tmp_path / "result.zip")
    row = result.index.set_index("id").loc["f3"]
    assert (row["status"], row["reason"]) == ("refused", pictures.NO_PICTURE)
    assert "f3" not in result.load().ids


@pytest.mark.parametrize("number", [3, 0], ids=["its own original", "the original of another face"])
@pytest.mark.parametrize(
    ("ending", "message"), [("png", "an original, unchanged"), ("jpg", "within 6 gray levels of an original")]
)
def test_original_is_refused_under_every_name(originals, theirs, tmp_path, number, ending, message):
    (theirs / "f3.webp").unlink()
    Image.fromarray(pixels(number)).save(theirs / f"f3.{ending}", quality=95)
    with pytest.raises(ArchiveError, match=f"- f3: {message}"):
        collect(theirs, originals, tmp_path / "stored.zip")


def shifted(picture: np.ndarray) -> np.ndarray:
    return np.pad(picture, ((3, 0), (0, 2), (0, 0)))[:SIDE, -SIDE:]


def brighter(picture: np.ndarray) -> np.ndarray:
    return np.clip(picture.astype(int) + 30, 0, 255).astype(np.uint8)


DISGUISES = {
    "mirrored": lambda picture: picture[:, ::-1],
    "turned": lambda picture: picture[::-1, ::-1],
    "shifted": shifted,
    "brighter": brighter,
    "darker": lambda picture: (picture * 0.7).round().astype(np.uint8),
    "red and blue exchanged": lambda picture: picture[..., ::-1],
    "all of these": lambda picture: brighter(shifted(picture[:, ::-1, ::-1])),
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_an_original_in_disguise_is_refused(originals, theirs, tmp_path, disguise):
    (theirs / "f3.webp").unlink()
    Image.fromarray(DISGUISES[disguise](pixels(3))).save(theirs / "f3.png")
    with pytest.raises(ArchiveError, match="- f3: an original, but mirrored"):
        collect(theirs, originals, tmp_path / "stored.zip", near=0.0)


@pytest.mark.parametrize(("shift", "known"), [(0, 4), (1, 0)])
def test_judge_counts_the_faces_of_which_it_finds_the_person(originals, tmp_path, shift, known):
    names = originals.rows["id"].tolist()
    shown = {name: pixels(int(names[(place + shift) % 4][1:])) for place, name in enumerate(names)}
    pictures._store(shown, tmp_path / "stored.zip")
    assert recognized.count(tmp_path / "stored.zip", originals) == (known, 4)


def test_near_zero_accepts_small_differences_and_refuses_an_original(originals, theirs, tmp_path):
    (theirs / "f3.webp").unlink()
    cloaked = pixels(3).copy()
    cloaked[0, 0, 0] ^= 1
    Image.fromarray(cloaked).save(theirs / "f3.png")
    assert collect(theirs, originals, tmp_path / "stored.zip", near=0.0) == 4
    Image.fromarray(pixels(3)).save(theirs / "f3.png")
    with pytest.raises(ArchiveError, match="unchanged; such an image is never imported"):
        collect(theirs, originals, tmp_path / "stored.zip", near=0.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_every_near_original_is_detected(tmp_path_factory, seed, most):
    """Compares the result with a search over every pixel of every original."""
    random = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("near")
    with ArchiveWriter(folder / "faces.zip", {"size": SIDE}) as out:
        made = [random.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8) for _ in range(3)]
        for number, picture in enumerate(made):
            out.add(picture, {"id": f"f{number}", "identity": "", "split": "test"})
    noise = random.integers(-most, most + 1, (SIDE, SIDE, 3))
    picture = np.clip(made[1].astype(int) + noise, 0, 255).astype(np.uint8)
    distance = np.abs(picture.astype(int) - made[1]).mean()
    index = pictures.Originals(FaceArchive(folder / "faces.zip"))
    assert index.match(picture, distance) == "f1"
    assert index.match(picture, np.nextafter(distance, -1.0)) == ""
    shutil.rmtree(folder)


def test_a_file_with_another_hash_than_params_is_refused(faces, originals, theirs, tmp_path):
    stored = tmp_path / "stored.zip"
    collect(theirs, originals, stored)
    sha256 = pictures.sha256(stored)
    whole = stored.read_bytes()
    stored.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    with pytest.raises(ArchiveError, match=f"params.yaml names {sha256}"):
        take_in(faces, stored, tmp_path / "result.zip", sha256=sha256)
    assert not (tmp_path / "result.zip").exists()


def test_pictures_of_other_faces_are_refused(faces, originals, theirs, tmp_path):
    collect(theirs, originals, tmp_path / "stored.zip")
    with pytest.raises(ArchiveError, match="was made of other faces than those of"):
        take_in(faces, tmp_path / "stored.zip", tmp_path / "result.zip", originals="0" * 64)


def test_stored_original_is_detected_when_the_cell_is_built(faces, theirs, tmp_path):
    """Holds even if the hash is right, because a file written by hand can hold any image."""
    stored = tmp_path / "stored.zip"
    pictures._store({"f0": 255 - pixels(0), "f1": pixels(4)}, stored)
    with pytest.raises(ArchiveError, match="f1 is an original, unchanged"):
        take_in(faces, stored, tmp_path / "result.zip")


BLOCK = {
    "deepprivacy_official": {
        "title": "DeepPrivacy",
        "source": "Hukkelås et al. 2019, version 1.0",
        "variants": {"default": {"synthetic_hq": {"sha256": "a" * 64, "originals": "b" * 64, "near": 2.0}}},
    }
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of the parameters of this repository that a test may change."""
    root = tmp_path / "repository"
    shutil.copytree(ROOT / "scales", root / "scales")
    shutil.copy2(ROOT / "params.yaml", root)
    return root


def test_a_second_registration_replaces_its_own_set_and_keeps_the_others(repository):
    file = repository / "scales" / "tiny.yaml"
    registry.register(repository, "tiny", BLOCK)
    file.write_text(file.read_text() + "# the end\nseeds: [0, 1]\n")
    more = yaml.safe_load(yaml.safe_dump(BLOCK))
    more["deepprivacy_official"]["variants"] = {
        "default": {"synthetic_wild": {"sha256": "c" * 64, "originals": "d" * 64, "near": 0.0}}
    }
    registry.register(repository, "tiny", more)
    registry.register(repository, "tiny", {"fawkes_official": BLOCK["deepprivacy_official"]})
    parameters = loading.load(repository, "tiny")
    assert set(parameters.imported) == {"deepprivacy_official", "fawkes_official"}
    assert set(parameters.imported["deepprivacy_official"].variants["default"]) == {"synthetic_hq", "synthetic_wild"}
    assert parameters.seeds == [0, 1]
    assert "# the end\nseeds: [0, 1]" in file.read_text()
    assert file.read_text().count("imported:") == 1


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"fit": BLOCK["deepprivacy_official"]}, "imported.fit has the name of a module of methods/"),
        ({"Deep Privacy": BLOCK["deepprivacy_official"]}, "Deep Privacy"),
        (
            {"deepprivacy_official": {**BLOCK["deepprivacy_official"], "variants": {"default": {"celeba": {}}}}},
            "sha256",
        ),
    ],
)
def test_refused_block_does_not_change_the_overlay(repository, block, message):
    before = (repository / "scales" / "tiny.yaml").read_bytes()
    with pytest.raises(ParameterError, match=message):
        registry.register(repository, "tiny", block)
    assert (repository / "scales" / "tiny.yaml").read_bytes() == before


def test_imported_set_is_a_cell_of_only_its_dataset_and_one_seed(repository):
    registry.register(repository, "tiny", BLOCK)
    registry_file = repository / "scales" / "tiny.yaml"
    registry_file.write_text(registry_file.read_text() + "seeds: [3, 4]\n")
    parameters = loading.load(repository, "tiny")
    planned = matrix.plan_cells(parameters)
    mine = [cell for cell in planned if cell.method == "deepprivacy_official"]
    assert mine == [matrix.Cell("synthetic_hq", "deepprivacy_official", "default", 3)]
    requested = [
        ("synthetic_wild", "deepprivacy_official", "default"),
        ("synthetic_hq", "deepprivacy_official", "default"),
    ]
    reasons = matrix.explain_skipped(parameters, requested, matrix.group_by_setting(planned))
    assert reasons == {requested[0]: "no images of deepprivacy_official/default were imported for synthetic_wild"}
    assert matrix.runs_once("deepprivacy_official")


IMPORTED = {name: ImportedMethod(**block) for name, block in BLOCK.items()}
STAND_INS = StandIns(datasets={"celeba_hq": "synthetic_hq"}, judges={})


def test_imported_method_fills_the_row_of_the_paper_and_adds_no_second_row():
    table = reference.load(ROOT / "reference" / "falco" / "table1.yaml")
    assert "deepprivacy" in {row.method for row in table.rows}
    renamed = {"deepprivacy": "deepprivacy_official"}  # as in a paper whose method has no module here
    rows = tuple(row.model_copy(update={"method": renamed.get(row.method, row.method)}) for row in table.rows)
    table = table.model_copy(update={"rows": rows})
    assert reference.add_imported_rows(table, IMPORTED, STAND_INS) == table


def test_imported_method_without_a_row_gets_a_new_row():
    table = reference.load(ROOT / "reference" / "falco" / "table1.yaml")
    block = IMPORTED["deepprivacy_official"]
    other = {"theirs": block.model_copy(update={"title": "Theirs"})}
    seated = reference.add_imported_rows(table, other, STAND_INS)
    assert seated.rows[:-1] == table.rows
    assert (seated.rows[-1].title, seated.rows[-1].method, seated.rows[-1].printed) == ("Theirs", "theirs", ())
    assert ("celeba_hq", "theirs", "default") in reference.needs(seated)
    elsewhere = StandIns(datasets={"celeba_hq": "synthetic_wild"}, judges={})
    assert reference.add_imported_rows(table, other, elsewhere) == table


def test_import_commands_lead_from_faces_to_a_cell(repository, faces, theirs, tmp_path, capsys):
    place = repository / "data" / "tiny" / "faces"
    place.mkdir(parents=True)
    shutil.copy2(faces.path, place / "synthetic_hq.zip")
    shutil.copy2(faces.path.with_suffix(".parquet"), place / "synthetic_hq.parquet")

    def run(*words) -> int:
        with pytest.raises(SystemExit) as ended:
            main.main(
                [str(word) for word in (*words, "--dataset", "synthetic_hq", "--root", repository, "--scale", "tiny")]
            )
        return ended.value.code

    assert run("export-faces", tmp_path / "handed_out") == 0
    assert len(list((tmp_path / "handed_out").iterdir())) == 4
    assert run("import-method", theirs, "--name", "deepprivacy_official") == 1
    assert "--source is missing" in capsys.readouterr().err
    named = ("--name", "deepprivacy_official", "--title", "DeepPrivacy", "--source", "Hukkelås et al. 2019")
    assert run("import-method", tmp_path / "handed_out", *named) == 1
    assert "f0, f1, f3, f4: an original, unchanged" in capsys.readouterr().err
    assert not (repository / "imported").exists()
    assert run("import-method", theirs, *named) == 0
    stored = repository / "imported" / "tiny" / "synthetic_hq" / "deepprivacy_official" / "default.zip"
    written = loading.load(repository, "tiny").imported["deepprivacy_official"].variants["default"]["synthetic_hq"]
    assert written.sha256 == pictures.sha256(stored)
    assert written.originals == pictures.Originals(faces).digest
    output = capsys.readouterr().out
    assert "4 of 4 faces" in output
    assert written.sha256 in output
