"""Images of another program form a variant of a method: collected completely, checked by hash, never an original."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from masquerade.cli import main
from masquerade.core import fingerprints
from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ArchiveError, ParameterError
from masquerade.core.images import ArchiveWriter, FaceArchive, to_uint8
from masquerade.core.settings import NoParameters
from masquerade.methods import Resources
from masquerade.methods.imported.method import NO_PICTURE, Imported, store
from masquerade.methods.imported.originals import Originals
from masquerade.papers import reference
from masquerade.params import loading, matrix
from masquerade.params.blocks import ImportedImages, StandIns
from masquerade.pipeline import anonymization, exchange

ROOT = Path(__file__).parents[2]
SIDE = 32


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
def theirs(tmp_path: Path) -> Path:
    """The results of a program for the four faces: negatives in several formats."""
    folder = tmp_path / "theirs"
    (folder / "deeper").mkdir(parents=True)
    for number, name in ((0, "f0.png"), (1, "deeper/f1.jpg"), (3, "f3.webp"), (4, "f4.bmp")):
        Image.fromarray(255 - pixels(number)).save(folder / name, lossless=True)
    return folder


def collect(folder: Path, faces: FaceArchive, output: Path, **options) -> int:
    return exchange.collect(exchange.Results(folder, **options), faces, faces.select("test"), output)


def build(faces: FaceArchive, stored: Path, near: float = 2.0, sha256: str = "") -> Imported:
    about = {"title": "Theirs", "source": "They 2020, program 1.0", "near": near, "recovers": False}
    images = {"made_up": sha256 or fingerprints.sha256(stored)}
    return Imported(NoParameters(), ImportedImages(**about, images=images), Resources(images=stored, originals=faces))


def anonymize(faces: FaceArchive, stored: Path, output: Path) -> FaceArchive:
    plan = anonymization.Plan("theirs", 0, 2)
    anonymization.anonymize(faces, output, build(faces, stored), faces.select("test", status=None), plan)
    return FaceArchive(output)


def test_every_image_is_taken_unchanged_with_the_row_of_its_original(faces, theirs, tmp_path):
    assert collect(theirs, faces, tmp_path / "stored.zip") == 4
    result = anonymize(faces, tmp_path / "stored.zip", tmp_path / "result.zip")
    assert result.index["id"].tolist() == ["f0", "f1", "f2", "f3", "f4"]
    assert result.index["source_id"].tolist() == result.index["id"].tolist()
    assert result.index["identity"].tolist() == ["p0", "p1", "p2", "p3", "p4"]
    assert result.index.set_index("id").loc["f2", "reason"] == "no face was found"
    images = dict(zip(result.load().ids, to_uint8(result.load().images), strict=True))
    assert np.array_equal(images["f0"], 255 - pixels(0))
    assert np.array_equal(images["f4"], 255 - pixels(4))
    assert np.abs(images["f1"].astype(int) - (255 - pixels(1))).mean() < 8  # a JPEG
    digest = fingerprints.sha256(tmp_path / "stored.zip")
    assert result.metadata["statement"] == {"imported": f"sha256:{digest}", "program": "They 2020, program 1.0"}


def test_all_mistakes_are_listed_together_and_nothing_is_written(faces, theirs, tmp_path):
    (theirs / "f0.png").unlink()
    (theirs / "readme.txt").write_text("how we did it")
    Image.fromarray(pixels(8)).save(theirs / "f1.png")  # beside deeper/f1.jpg
    Image.fromarray(pixels(8)[:-1]).save(theirs / "f3.webp")
    (theirs / "f4.bmp").write_text("no image")
    with pytest.raises(ArchiveError) as error:
        collect(theirs, faces, tmp_path / "stored.zip")
    message = str(error.value)
    assert "for the 4 faces" in message
    assert "- f0: no image (--partial" in message
    assert "- readme.txt: the name is not the id of a face" in message
    assert "- f1: several files" in message
    assert "- f3: 32 x 31 pixels, and the faces have 32 x 32" in message
    assert "- f4: not an image in a format that is read" in message
    assert not (tmp_path / "stored.zip").exists()


FORMATS = {
    "an alpha channel": lambda image: image.convert("RGBA"),
    "one channel": lambda image: image.convert("L"),
    "more than 8 bits": lambda image: Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257),
}


@pytest.mark.parametrize("fault", FORMATS)
def test_a_format_that_is_no_rgb_of_8_bits_is_named(faces, theirs, tmp_path, fault):
    FORMATS[fault](Image.fromarray(255 - pixels(0))).save(theirs / "f0.png")
    with pytest.raises(ArchiveError, match=f"- f0: {fault}"):
        collect(theirs, faces, tmp_path / "stored.zip")


def test_colors_in_the_order_blue_green_red_are_noticed(tmp_path):
    count = exchange.COMPARED
    folder = tmp_path / "theirs"
    folder.mkdir()
    with ArchiveWriter(tmp_path / "faces.zip", {"size": SIDE}) as out:
        for number in range(count):
            picture = np.clip(pixels(number) * 0.5 + [100 - 5 * number, 60, 20], 0, 255).astype(np.uint8)
            out.add(picture, {"id": f"f{number}", "identity": f"p{number}", "split": "test"})
            other = pixels(100 + number) * 0.3 + picture.mean(axis=(0, 1))
            Image.fromarray(other.clip(0, 255).astype(np.uint8)[..., ::-1]).save(folder / f"f{number}.png")
    with pytest.raises(ArchiveError, match="the colors are in the order blue, green, red"):
        collect(folder, FaceArchive(tmp_path / "faces.zip"), tmp_path / "stored.zip")


def test_a_folder_that_was_exported_of_other_faces_says_so(faces, theirs, tmp_path):
    exchange.export(faces, faces.select("test").assign(part="test"), tmp_path / "out", "tiny", "made_up")
    about = json.loads((tmp_path / "out" / exchange.MANIFEST).read_text())
    assert about["ids"]["test"] == ["f0", "f1", "f3", "f4"]
    (theirs / exchange.MANIFEST).write_text(json.dumps({**about, "scale": "mini", "faces": "another"}))
    with pytest.raises(ArchiveError, match="Give --scale mini, or export the faces again"):
        collect(theirs, faces, tmp_path / "stored.zip")


def test_a_missing_image_is_a_refusal_with_a_reason_and_not_the_original(faces, theirs, tmp_path):
    (theirs / "f3.webp").unlink()
    assert collect(theirs, faces, tmp_path / "stored.zip", partial=True) == 3
    result = anonymize(faces, tmp_path / "stored.zip", tmp_path / "result.zip")
    row = result.index.set_index("id").loc["f3"]
    assert (row["status"], row["reason"]) == ("refused", NO_PICTURE)
    assert "f3" not in result.load().ids


@pytest.mark.parametrize("number", [3, 0], ids=["its own original", "the original of another face"])
@pytest.mark.parametrize(
    ("ending", "message"), [("png", "an original, unchanged"), ("jpg", "within 6 gray levels of an original")]
)
def test_original_is_refused_under_every_name(faces, theirs, tmp_path, number, ending, message):
    (theirs / "f3.webp").unlink()
    Image.fromarray(pixels(number)).save(theirs / f"f3.{ending}", quality=95)
    with pytest.raises(ArchiveError, match=f"- f3: {message}"):
        collect(theirs, faces, tmp_path / "stored.zip")


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
def test_an_original_in_disguise_is_refused(faces, theirs, tmp_path, disguise):
    (theirs / "f3.webp").unlink()
    Image.fromarray(DISGUISES[disguise](pixels(3))).save(theirs / "f3.png")
    with pytest.raises(ArchiveError, match="- f3: an original, but mirrored"):
        collect(theirs, faces, tmp_path / "stored.zip", near=0.0)


def test_near_zero_accepts_small_differences_and_refuses_an_original(faces, theirs, tmp_path):
    (theirs / "f3.webp").unlink()
    cloaked = pixels(3).copy()
    cloaked[0, 0, 0] ^= 1
    Image.fromarray(cloaked).save(theirs / "f3.png")
    assert collect(theirs, faces, tmp_path / "stored.zip", near=0.0) == 4
    Image.fromarray(pixels(3)).save(theirs / "f3.png")
    with pytest.raises(ArchiveError, match="unchanged; such an image is never imported"):
        collect(theirs, faces, tmp_path / "stored.zip", near=0.0)


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
    index = Originals((archive := FaceArchive(folder / "faces.zip")), archive.index)
    assert index.match(picture, distance) == "f1"
    assert index.match(picture, np.nextafter(distance, -1.0)) == ""
    shutil.rmtree(folder)


def test_another_file_than_the_parameters_name_is_refused(faces, theirs, tmp_path):
    collect(theirs, faces, tmp_path / "stored.zip")
    with pytest.raises(ArchiveError, match="which the parameters do not name"):
        build(faces, tmp_path / "stored.zip", sha256="0" * 64)


def test_images_of_other_faces_are_refused(faces, theirs, tmp_path):
    collect(theirs, faces, tmp_path / "stored.zip")
    with ArchiveWriter(tmp_path / "others.zip", {"size": SIDE}) as out:
        out.add(pixels(7), {"id": "f0", "identity": "p0", "split": "test"})
    with pytest.raises(ArchiveError, match="was made of other faces than those of"):
        anonymize(FaceArchive(tmp_path / "others.zip"), tmp_path / "stored.zip", tmp_path / "result.zip")


def test_an_original_in_the_file_is_found_when_the_cell_is_built(faces, tmp_path):
    """Holds even if the hash is right, because a file written by hand can hold any image."""
    store(tmp_path / "stored.zip", faces.metadata["checksum"], {"f0": 255 - pixels(0), "f1": pixels(4)}, {})
    with pytest.raises(ArchiveError, match="f1 is an original, unchanged"):
        anonymize(faces, tmp_path / "stored.zip", tmp_path / "result.zip")


def test_what_a_program_recovered_is_found_by_its_image(faces, theirs, tmp_path):
    back = tmp_path / "back"
    back.mkdir()
    for number in (0, 1, 3, 4):
        Image.fromarray(pixels(number)).save(back / f"f{number}.png")
    collect(theirs, faces, tmp_path / "stored.zip", recovered=back)
    result = anonymize(faces, tmp_path / "stored.zip", tmp_path / "result.zip").load()
    recovered = to_uint8(build(faces, tmp_path / "stored.zip").recover(result.images, None))
    assert np.array_equal(recovered, np.stack([pixels(int(name[1:])) for name in result.ids]))


def run_function(name: str, faces: FaceArchive, folder: Path) -> Path:
    exchange.run_function(name, 3, faces, faces.select("test"), folder)
    return folder


def test_a_python_function_takes_the_place_of_the_folder(faces, tmp_path, monkeypatch):
    (tmp_path / "their_module.py").write_text(
        "def negate(images, seed):\n"
        "    assert images.dtype == 'uint8' and seed == 3\n"
        "    return [255 - image if image.mean() != images[0].mean() else None for image in images]\n"
        "def cut(images, seed):\n    return images[:1]\n"
        "def gray(images, seed):\n    return images.mean(axis=3)\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    folder = run_function("their_module:negate", faces, tmp_path / "made")
    assert sorted(path.stem for path in folder.iterdir()) == ["f1", "f3", "f4"], "it refused the first face"
    assert np.array_equal(np.asarray(Image.open(folder / "f3.png")), 255 - pixels(3))
    for name, message in (
        ("their_module:cut", "returned 1 images for 4"),
        ("their_module:gray", "return uint8"),
        ("their_module:absent", "Write package.module:function"),
        ("no_such_module:absent", "Write package.module:function"),
    ):
        with pytest.raises(ArchiveError, match=message):
            run_function(name, faces, tmp_path / name.replace(":", "_"))


def test_a_command_takes_the_place_of_the_folder(faces, tmp_path):
    program = tmp_path / "their program.py"
    program.write_text(
        "import sys\nfrom PIL import Image, ImageOps\n"
        "if sys.argv[1].endswith('f1.png'): sys.exit('no face')\n"
        "ImageOps.invert(Image.open(sys.argv[1])).save(sys.argv[2])\n"
    )
    command = f"{sys.executable} '{program}' {{input}} {{output}}"
    exchange.run_command(command, faces, faces.select("test"), tmp_path / "made")
    assert sorted(path.stem for path in (tmp_path / "made").iterdir()) == ["f0", "f3", "f4"]
    with pytest.raises(ArchiveError, match="must hold"):
        exchange.run_command("cp {input}", faces, faces.select("test"), tmp_path / "second")
    with pytest.raises(ArchiveError, match="Its first run: status 1"):
        exchange.run_command("false {input} {output}", faces, faces.select("test"), tmp_path / "third")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A copy of the parameters of this repository that a test may change."""
    root = tmp_path / "repository"
    shutil.copytree(ROOT / "scales", root / "scales")
    shutil.copy2(ROOT / "params.yaml", root)
    return root


BLOCK = {"title": "Theirs", "source": "They 2020", "near": 2.0, "recovers": False, "images": {"synthetic_hq": "a" * 64}}


def test_a_second_registration_keeps_the_other_datasets_and_programs(repository):
    exchange.register(repository, "tiny", "theirs", BLOCK)
    exchange.register(repository, "tiny", "theirs", {**BLOCK, "near": 0.0, "images": {"synthetic_wild": "b" * 64}})
    exchange.register(repository, "tiny", "other", BLOCK)
    variants = matrix.list_imported(loading.load(repository, "tiny"))
    assert list(variants) == ["theirs", "other"]
    assert variants["theirs"].images == {"synthetic_hq": "a" * 64, "synthetic_wild": "b" * 64}
    assert variants["theirs"].near == 0.0
    assert matrix.list_imported(loading.load(repository, "mini")) == {}, "another scale has other faces"


def test_images_of_an_unknown_dataset_are_refused(repository):
    exchange.register(repository, "tiny", "theirs", {**BLOCK, "images": {"celebs": "a" * 64}})
    with pytest.raises(ParameterError, match="celebs"):
        loading.load(repository, "tiny")


def test_images_are_cells_of_only_their_dataset_and_one_seed(repository):
    exchange.register(repository, "tiny", "theirs", BLOCK)
    parameters = loading.load(repository, "tiny", {"seeds": [3, 4]})
    planned = matrix.plan_cells(parameters)
    assert matrix.select_imported(planned) == [matrix.Cell("synthetic_hq", IMPORTED, "theirs", 3)]
    missing = ("synthetic_wild", IMPORTED, "theirs")
    reasons = matrix.explain_skipped(parameters, [missing], matrix.group_by_setting(planned))
    assert reasons == {missing: "no images of theirs were imported for synthetic_wild"}


STAND_INS = StandIns(datasets={"celeba_hq": "synthetic_hq"}, judges={})
PROGRAMS = {"theirs": ImportedImages(**BLOCK)}


def test_a_program_gets_a_row_in_tables_of_its_dataset(root):
    table = reference.load(root / "reference" / "falco" / "table1.yaml")
    seated = reference.add_imported_rows(table, PROGRAMS, STAND_INS)
    assert seated.rows[:-1] == table.rows
    assert (seated.rows[-1].title, seated.rows[-1].variant, seated.rows[-1].printed) == ("Theirs", "theirs", ())
    assert ("celeba_hq", IMPORTED, "theirs") in reference.needs(seated)
    elsewhere = StandIns(datasets={"celeba_hq": "synthetic_wild"}, judges={})
    assert reference.add_imported_rows(table, PROGRAMS, elsewhere) == table


@pytest.mark.parametrize(
    ("item", "taken", "taken_if_it_recovers"),
    [("attackers/informed", True, True), ("attackers/leaderboard", True, True), ("attackers/keys", False, False),
     ("attackers/poisoning", False, False), ("ifadit/table5", False, True), ("attackers/tradeoff", True, True)],
)  # fmt: skip
def test_tables_take_the_programs_that_they_can_measure(root, item, taken, taken_if_it_recovers):
    declared = reference.load(root / f"reference/{item}.yaml")
    recovering = {"theirs": PROGRAMS["theirs"].model_copy(update={"recovers": True})}
    for programs, expected in ((PROGRAMS, taken), (recovering, taken_if_it_recovers)):
        shown = reference.method_entries(reference.add_imported_rows(declared, programs, STAND_INS))
        assert any(entry.method == IMPORTED for entry in shown) == expected


def test_wrong_words_of_the_commands_are_refused_before_anything_is_written(repository, faces, theirs, capsys):
    place = repository / "data" / "tiny" / "faces"
    place.mkdir(parents=True)

    def run(*words) -> int:
        with pytest.raises(SystemExit) as ended:
            main.main([str(word) for word in (*words, "--root", repository, "--scale", "tiny")])
        return ended.value.code

    assert run("score", "theirs", theirs) == 1
    assert "are not built" in capsys.readouterr().err
    for words, message in (
        (("Their Method", theirs), "is no name"),
        (("theirs",), "Give one of three"),
        (("theirs", theirs, "--call", "a:b"), "Give one of three"),
        (("theirs", theirs, "--dataset", "celebs"), "There is no dataset 'celebs'"),
    ):
        assert run("score", *words) == 1
        assert message in capsys.readouterr().err
    exchange.register(repository, "tiny", "theirs", BLOCK)
    assert run("score", "theirs", theirs) == 1
    assert "Give --replace" in capsys.readouterr().err
    assert not (repository / "imported").exists()
