"""Images of another program form a variant of a method: collected completely, checked by hash, never an original."""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from masquerade.cli import main, score
from masquerade.core import fingerprints
from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ArchiveError, ParameterError, PictureError
from masquerade.core.images import ArchiveWriter, FaceArchive, to_uint8
from masquerade.core.settings import NoParameters
from masquerade.methods import Resources
from masquerade.methods.imported.method import NO_PICTURE, Imported, StoredPictures, store
from masquerade.methods.imported.originals import Originals
from masquerade.papers import reference, score_page
from masquerade.papers.context import Context
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


def path_of(folder: Path, faces: FaceArchive, file: str) -> Path:
    """The path of a file such as f0.png under the name with which the face was exported."""
    face, ending = file.split(".")
    return folder / f"{exchange.name_file(faces, face)}.{ending}"


@pytest.fixture
def theirs(faces, tmp_path: Path) -> Path:
    """The results of a program for the four faces: negatives in several formats."""
    folder = tmp_path / "theirs"
    (folder / "deeper").mkdir(parents=True)
    for number, place, file in ((0, "", "f0.png"), (1, "deeper", "f1.jpg"), (3, "", "f3.webp"), (4, "", "f4.bmp")):
        Image.fromarray(255 - pixels(number)).save(path_of(folder / place, faces, file), lossless=True)
    return folder


def collect(folder: Path, faces: FaceArchive, output: Path, parts: Mapping[str, str] | None = None, **options) -> int:
    """``parts``: id -> part of the exported faces; default: all of them are of the part `test`."""
    rows = faces.select() if parts else faces.select("test")
    rows = rows.assign(part=rows["id"].map(parts or dict.fromkeys(rows["id"], "test")))
    return exchange.collect(exchange.Results(folder, **options), faces, rows.dropna(subset="part"), output, 0.25)


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
    path_of(theirs, faces, "f0.png").unlink()
    (theirs / "readme.txt").write_text("how we did it")
    Image.fromarray(pixels(8)).save(path_of(theirs, faces, "f1.png"))  # beside deeper/f1.jpg
    Image.fromarray(pixels(8)[:-1]).save(path_of(theirs, faces, "f3.webp"))
    path_of(theirs, faces, "f4.bmp").write_text("no image")
    with pytest.raises(ArchiveError) as error:
        collect(theirs, faces, tmp_path / "stored.zip")
    message = str(error.value)
    assert "for the 4 faces" in message
    f0, f1, f3, f4 = (exchange.name_file(faces, face) for face in ("f0", "f1", "f3", "f4"))
    assert f"- {f0} in {theirs}: no image (--partial" in message
    assert f"- readme.txt in {theirs}: the name is not that of an exported face; remove the file" in message
    assert f"- {f1} in {theirs}: several files" in message
    assert f"- {f3} in {theirs}: 32 x 31 pixels, and the faces have 32 x 32" in message
    assert f"- {f4} in {theirs}: not an image in a format that is read" in message
    assert not (tmp_path / "stored.zip").exists()


FORMATS = {
    "an alpha channel": lambda image: image.convert("RGBA"),
    "one channel": lambda image: image.convert("L"),
    "more than 8 bits": lambda image: Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257),
}


@pytest.mark.parametrize("fault", FORMATS)
def test_a_format_that_is_no_rgb_of_8_bits_is_named(faces, theirs, tmp_path, fault):
    FORMATS[fault](Image.fromarray(255 - pixels(0))).save(path_of(theirs, faces, "f0.png"))
    with pytest.raises(ArchiveError, match=f"{exchange.name_file(faces, 'f0')} in .*: {fault}"):
        collect(theirs, faces, tmp_path / "stored.zip")


@pytest.fixture
def warm_faces(tmp_path: Path) -> FaceArchive:
    """As many faces as the order of the colors is judged of. Like skin, they have more red than blue."""
    with ArchiveWriter(tmp_path / "warm.zip", {"size": SIDE}) as out:
        for number in range(exchange.COMPARED):
            picture = np.clip(pixels(number) * 0.5 + [100 - 5 * number, 60, 20], 0, 255).astype(np.uint8)
            out.add(picture, {"id": f"f{number}", "identity": f"p{number}", "split": "test"})
    return FaceArchive(tmp_path / "warm.zip")


def test_colors_in_the_order_blue_green_red_are_noticed(warm_faces, tmp_path):
    (tmp_path / "theirs").mkdir()
    for number, picture in enumerate(to_uint8(warm_faces.load().images)):
        other = pixels(100 + number) * 0.3 + picture.mean(axis=(0, 1))
        result = Image.fromarray(other.clip(0, 255).astype(np.uint8)[..., ::-1])
        result.save(path_of(tmp_path / "theirs", warm_faces, f"f{number}.png"))
    with pytest.raises(ArchiveError, match="the colors are in the order blue, green, red"):
        collect(tmp_path / "theirs", warm_faces, tmp_path / "stored.zip")


def test_negatives_are_not_taken_for_colors_in_another_order(warm_faces, tmp_path):
    (tmp_path / "theirs").mkdir()
    for number, picture in enumerate(to_uint8(warm_faces.load().images)):
        Image.fromarray(255 - picture).save(path_of(tmp_path / "theirs", warm_faces, f"f{number}.png"))
    assert collect(tmp_path / "theirs", warm_faces, tmp_path / "stored.zip") == exchange.COMPARED


def test_a_part_without_the_images_that_the_build_needs_is_refused_before_anything_is_written(tmp_path):
    """Four people of the attackers, of whom two are held out, and two images of each are the fewest."""
    parts = {"f0": "test", "f1": "methods", **{f"f{number}": "attackers" for number in range(2, 10)}}
    with ArchiveWriter(tmp_path / "faces.zip", {"size": SIDE}) as out:
        for number, name in enumerate(parts):
            out.add(pixels(number), {"id": name, "identity": f"p{number // 2}", "split": "test"})
    faces = FaceArchive(tmp_path / "faces.zip")
    folder, stored = tmp_path / "theirs", tmp_path / "stored.zip"
    folder.mkdir()
    for number, name in enumerate(parts):
        Image.fromarray(255 - pixels(number)).save(path_of(folder, faces, f"{name}.png"))
    assert collect(folder, faces, stored, parts) == 10
    stored.unlink()
    path_of(folder, faces, "f9.png").unlink()
    with pytest.raises(ArchiveError, match=r"- attackers: 3 people of this part have 2 images or more, .* need 4"):
        collect(folder, faces, stored, parts, partial=True)
    for name in parts.keys() - {"f0", "f9"}:
        path_of(folder, faces, f"{name}.png").unlink()
    with pytest.raises(ArchiveError, match=r"- methods: no face of this part has an image[\s\S]*- attackers: 0 people"):
        collect(folder, faces, stored, parts, partial=True)
    path_of(folder, faces, "f0.png").unlink()
    with pytest.raises(ArchiveError, match="- test: no face of this part has an image"):
        collect(folder, faces, stored, parts, partial=True)
    assert not stored.exists()


def test_exported_files_have_neutral_names_that_differ_between_archives(faces, tmp_path):
    rows = faces.select("test").assign(part="test")
    exchange.export(faces, rows, tmp_path / "out", "tiny", "made_up")
    about = json.loads((tmp_path / "out" / exchange.MANIFEST).read_text())
    exported = sorted(path.stem for path in (tmp_path / "out").glob("*.png"))
    assert about["names"]["test"] == exported == sorted(exchange.name_file(faces, face) for face in rows["id"])
    assert np.array_equal(np.asarray(Image.open(path_of(tmp_path / "out", faces, "f3.png"))), pixels(3))
    assert "--scale tiny --dataset made_up" in (tmp_path / "out" / exchange.README).read_text()
    with ArchiveWriter(tmp_path / "others.zip", {"size": SIDE}) as out:
        out.add(pixels(7), {"id": "f0", "identity": "p0", "split": "test"})
    assert exchange.name_file(FaceArchive(tmp_path / "others.zip"), "f0") not in exported


def test_further_images_of_tested_people_are_a_part_of_their_own(tmp_path):
    groups = {"attackers": "attackers", "methods": "methods"}
    with ArchiveWriter(tmp_path / "faces.zip", {"size": SIDE}) as out:
        for number, part in enumerate(("test", "gallery", "attackers", "methods")):
            split, person = ("train", part) if part in groups else (part, "tested")
            row = {"id": f"of_{part}", "identity": person, "split": split, "group": groups.get(part, "")}
            out.add(pixels(number), row)
    archive = FaceArchive(tmp_path / "faces.zip")
    exported = exchange.select_exported(archive, loading.load(ROOT, "tiny"), "synthetic_hq")
    assert exported["id"].tolist() == [f"of_{part}" for part in exported["part"]]
    assert set(exported["part"]) == set(exchange.PARTS)


def test_names_of_other_faces_and_a_suffix_of_all_names_are_told_apart(faces, theirs, tmp_path):
    for path in [path for path in theirs.rglob("*") if path.is_file()]:
        path.rename(path.with_stem(f"{path.stem}_anonymized"))
    with pytest.raises(ArchiveError, match="add `--suffix=_anonymized`"):
        collect(theirs, faces, tmp_path / "stored.zip")
    assert collect(theirs, faces, tmp_path / "stored.zip", suffix="_anonymized") == 4
    with ArchiveWriter(tmp_path / "others.zip", {"size": SIDE}) as out:
        out.add(pixels(7), {"id": "f0", "identity": "p0", "split": "test"})
    with pytest.raises(ArchiveError, match=r"these names are of other faces .* export the faces again"):
        collect(theirs, FaceArchive(tmp_path / "others.zip"), tmp_path / "stored.zip", suffix="_anonymized")


def test_a_manifest_of_the_program_is_not_read(faces, theirs, tmp_path):
    (theirs / exchange.MANIFEST).write_text("[")
    assert collect(theirs, faces, tmp_path / "stored.zip") == 4


def test_a_missing_image_is_a_refusal_with_a_reason_and_not_the_original(faces, theirs, tmp_path):
    path_of(theirs, faces, "f3.webp").unlink()
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
    path_of(theirs, faces, "f3.webp").unlink()
    Image.fromarray(pixels(number)).save(path_of(theirs, faces, f"f3.{ending}"), quality=95)
    with pytest.raises(ArchiveError, match=f"{exchange.name_file(faces, 'f3')} in .*: {message}"):
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
    path_of(theirs, faces, "f3.webp").unlink()
    Image.fromarray(DISGUISES[disguise](pixels(3))).save(path_of(theirs, faces, "f3.png"))
    with pytest.raises(ArchiveError, match=f"{exchange.name_file(faces, 'f3')} in .*: an original, but mirrored"):
        collect(theirs, faces, tmp_path / "stored.zip", near=0.0)


def test_near_zero_accepts_small_differences_and_refuses_an_original(faces, theirs, tmp_path):
    path_of(theirs, faces, "f3.webp").unlink()
    cloaked = pixels(3).copy()
    cloaked[0, 0, 0] ^= 1
    Image.fromarray(cloaked).save(path_of(theirs, faces, "f3.png"))
    assert collect(theirs, faces, tmp_path / "stored.zip", near=0.0) == 4
    Image.fromarray(pixels(3)).save(path_of(theirs, faces, "f3.png"))
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
        Image.fromarray(pixels(number)).save(path_of(back, faces, f"f{number}.png"))
    collect(theirs, faces, tmp_path / "stored.zip", recovered=back)
    result = anonymize(faces, tmp_path / "stored.zip", tmp_path / "result.zip").load()
    recovered = to_uint8(build(faces, tmp_path / "stored.zip").recover(result.images, None))
    assert np.array_equal(recovered, np.stack([pixels(int(name[1:])) for name in result.ids]))


def test_only_faces_of_the_part_test_need_a_recovered_image(faces, theirs, tmp_path):
    back = tmp_path / "back"
    back.mkdir()
    for number in (0, 1):
        Image.fromarray(pixels(number)).save(path_of(back, faces, f"f{number}.png"))
    path_of(back, faces, "f4.png").write_text("no image, and nobody reads it")
    parts = {"f0": "test", "f1": "test", "f3": "gallery", "f4": "gallery"}
    assert collect(theirs, faces, tmp_path / "stored.zip", parts, recovered=back) == 4
    path_of(back, faces, "f1.png").unlink()
    with pytest.raises(ArchiveError, match=f"{exchange.name_file(faces, 'f1')} in {back}: no image"):
        collect(theirs, faces, tmp_path / "stored.zip", parts, recovered=back)


def test_mistakes_of_results_and_of_recovered_faces_are_both_listed(faces, theirs, tmp_path):
    back = tmp_path / "back"
    back.mkdir()
    for number in (0, 1, 3, 4):
        Image.fromarray(pixels(number)).save(path_of(back, faces, f"f{number}.png"))
    path_of(theirs, faces, "f0.png").unlink()
    path_of(theirs, faces, "f3.webp").unlink()
    with pytest.raises(ArchiveError, match=f"in {theirs}: no image") as error:
        collect(theirs, faces, tmp_path / "stored.zip", recovered=back)
    assert f"in {back}" not in str(error.value)
    path_of(back, faces, "f4.png").unlink()
    with pytest.raises(ArchiveError, match=rf"in {theirs}: no image [\s\S]*in {back}: no image"):
        collect(theirs, faces, tmp_path / "stored.zip", recovered=back)


def test_a_face_is_not_recovered_from_an_image_that_several_faces_have(faces, tmp_path):
    made = {"f0": 255 - pixels(0), "f1": 255 - pixels(0), "f3": 255 - pixels(3)}
    store(tmp_path / "stored.zip", faces.metadata["checksum"], made, {name: pixels(int(name[1:])) for name in made})
    stored = StoredPictures(tmp_path / "stored.zip")
    assert np.array_equal(stored.read_recovered(made["f3"]), pixels(3))
    with pytest.raises(PictureError, match="several faces have this image"):
        stored.read_recovered(made["f0"])


def run_function(name: str, faces: FaceArchive, folder: Path) -> Path:
    exchange.run_function(name, 3, faces, faces.select("test"), folder)
    return folder


def test_a_python_function_takes_the_place_of_the_folder(faces, tmp_path, monkeypatch):
    (tmp_path / "their_helper.py").write_text("def negate(image):\n    return 255 - image\n")
    (tmp_path / "their_module.py").write_text(
        "seeds = []\n"
        "def negate(images, seed):\n"
        "    from their_helper import negate\n"
        "    assert images.dtype == 'uint8'\n"
        "    seeds.append(seed)\n"
        "    return [negate(image) if image.mean() != images[0].mean() else None for image in images]\n"
        "def cut(images, seed):\n    return images[:1]\n"
        "def forget(images, seed):\n    pass\n"
        "def gray(images, seed):\n    return images.mean(axis=3)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(exchange, "BATCH", 3)
    folder = run_function("their_module:negate", faces, tmp_path / "made")
    made = {path.stem for path in folder.iterdir()}
    assert made == {exchange.name_file(faces, face) for face in ("f1", "f3")}, "it refused the first face of each call"
    assert np.array_equal(np.asarray(Image.open(path_of(folder, faces, "f3.png"))), 255 - pixels(3))
    assert len(set(sys.modules["their_module"].seeds)) == 2, "another seed for each call"
    for name, message in (
        ("their_module:cut", "returned 1 images for 3"),
        ("their_module:forget", "returned no images for 3"),
        ("their_module:gray", "return uint8"),
        ("their_module:absent", "Write package.module:function"),
        ("no_such_module:absent", "Write package.module:function"),
    ):
        with pytest.raises(ArchiveError, match=message):
            run_function(name, faces, tmp_path / name.replace(":", "_"))
    assert str(tmp_path) not in sys.path


def test_a_command_takes_the_place_of_the_folder(faces, tmp_path):
    program = tmp_path / "their program.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom PIL import Image, ImageOps\n"
        f"if {exchange.name_file(faces, 'f1')!r} in sys.argv[1]: sys.exit('no face')\n"
        "ImageOps.invert(Image.open(sys.argv[1])).save(sys.argv[2])\n"
        "Path(sys.argv[1]).unlink()\n"
    )
    command = f"{sys.executable} '{program}' {{input}} {{output}}"
    failures = exchange.run_command(command, faces, faces.select("test"), tmp_path / "made")
    assert failures == ["status 1: no face"]
    made = {path.stem for path in (tmp_path / "made").iterdir()}
    assert made == {exchange.name_file(faces, face) for face in ("f0", "f3", "f4")}
    for words, message in (
        ("cp {input}", "must hold"),
        ("cp '{input} {output}", "No closing quotation"),
        ("false {input} {output}", "Its first run: status 1"),
    ):
        with pytest.raises(ArchiveError, match=message):
            exchange.run_command(words, faces, faces.select("test"), tmp_path / words.split()[0])


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
    exchange.register(repository, "tiny", "theirs", {**BLOCK, "images": {"synthetic_wild": "b" * 64}})
    exchange.register(repository, "tiny", "other", BLOCK)
    variants = matrix.list_imported(loading.load(repository, "tiny"))
    assert list(variants) == ["theirs", "other"]
    assert variants["theirs"].images == {"synthetic_hq": "a" * 64, "synthetic_wild": "b" * 64}
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


def test_a_protocol_applies_once_to_what_a_program_made_of_its_datasets(repository):
    """Also under the name `control`, which a pattern such as `*/control` matches."""
    for name, recovers in (("control", False), ("recovering", True)):
        exchange.register(repository, "tiny", name, {**BLOCK, "recovers": recovers})
    parameters = loading.load(repository, "tiny")
    planned = matrix.plan_cells(parameters)
    for protocol, expected in (("attributes", ["control", "recovering"]), ("recovery", ["recovering"])):
        cells = matrix.select_by_protocol(parameters, planned, protocol)
        assert [cell.variant for cell in matrix.select_imported(cells)] == expected
    assert matrix.select_imported(matrix.select_matching(planned, {"synthetic_hq": ["*/*"]})) == []


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


def test_the_page_of_images_that_the_leaderboard_does_not_have_says_so():
    rows = [{"method": "falco", "variant": "m_0", "dataset": "synthetic_hq", "column": "Pose", "measured": "0.5"}]
    context = Context("tiny", (0,), STAND_INS, "a commit")
    page = score_page.write(rows, "theirs", {"title": "Theirs", "source": "They 2020"}, (0, 4), context)
    assert "The leaderboard is of `synthetic_hq`, and no images of this dataset were scored." in page
    assert "|" not in page
    assert "What is missing" not in page


def test_numbers_of_a_column_of_percent_are_percent():
    for column, shown in (("Naive attacker (%)", "22.5"), ("Perceptual distance", "0.225")):
        record = {"column": column, "measured": "0.225", "low": "", "rank_first": ""}
        assert score_page.format_number(record) == shown


@pytest.fixture
def run(repository, capsys):
    """Runs a command at a scale. Returns its status and what it wrote on stderr."""

    def run(*words, scale: str = "tiny") -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main.main([str(word) for word in (*words, "--root", repository, "--scale", scale)])
        return ended.value.code, capsys.readouterr().err

    return run


def test_wrong_words_of_the_commands_are_refused_before_anything_is_written(repository, theirs, tmp_path, run):
    for words, message in (
        ((theirs,), "are not built. Run `snakemake --cores all data/tiny/faces/synthetic_hq.zip --config scale=tiny`"),
        ((), "Give one of three"),
        ((theirs, "--call", "a:b"), "Give one of three"),
        ((theirs, "--dataset", "celebs"), "There is no dataset 'celebs'"),
    ):
        status, printed = run("score", "theirs", *words)
        assert (status, message in printed) == (1, True), printed
    assert "is no name" in run("score", "Their Method", theirs)[1]
    for near in ("-1", "nan"):
        assert "should be greater than or equal to 0" in run("score", "theirs", theirs, "--near", near)[1]
    assert "has no leaderboard, because `papers` lacks" in run("score", "theirs", theirs, scale="paper_1024")[1]
    status, printed = run("export-faces", "--to", theirs)
    assert (status, printed) == (1, f"{theirs} is not empty. Name another folder.\n")
    assert not (repository / "imported").exists()
    assert not (repository / "scales/imported").exists()


def test_all_datasets_of_one_name_are_scored_alike(repository, theirs, run):
    exchange.register(repository, "tiny", "theirs", BLOCK)
    assert "Give --replace" in run("score", "theirs", theirs)[1]
    assert "are not built" in run("score", "theirs", theirs, "--replace", "--near", "3", "--recovered", theirs)[1]
    other = ("score", "theirs", theirs, "--dataset", "synthetic_wild")
    assert "was scored on synthetic_hq with --near 2" in run(*other, "--near", "3")[1]
    assert "was scored on synthetic_hq without --recovered" in run(*other, "--recovered", theirs)[1]
    assert "are not built" in run(*other)[1]


def test_a_failure_of_dvc_is_only_a_warning(tmp_path, capsys):
    score.add_to_dvc(tmp_path, Path("imported/tiny/folder/theirs.zip"), pushed=False)
    printed = capsys.readouterr().err
    assert "The score stands; `dvc add imported/tiny/folder/theirs.zip` keeps its images." in printed
    assert "Then write `push: false` into theirs.zip.dvc" in printed
