"""Nothing is written that a recognizer still takes for its original, and no photograph with a face left in it."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from command_line import anonymize_from_seed as anonymize
from command_line import (
    folder_with_portrait,
    make_original_keyed,
    portrait,
    recover,
    report,
    repository,
    written,
)
from masquerade.cli.outcome import INCOMPLETE
from masquerade.core.images import ArchiveWriter, FaceArchive, to_float, to_uint8
from masquerade.methods import Resources
from masquerade.methods.controls import Original
from masquerade.pipeline import image_texts
from masquerade.pipeline.inspection import Inspector, ReleaseRule, Threshold
from masquerade.pipeline.outputs import FolderOutput
from masquerade.pipeline.release import Anonymized

FAINT = ("--variant", "weak")  # noise of one gray level, which hides nobody
MARK = b"Marked-by-the-camera"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return folder_with_portrait(tmp_path, "one.jpg")


class TestTheJudge:
    def test_what_is_still_recognized_is_not_written(self, root, pictures, tmp_path, capsys):
        assert anonymize(root, pictures, tmp_path / "out", *FAINT) == 1
        (row,) = report(tmp_path / "out").values()
        assert (row["status"], row["reason"], row["output"]) == ("refused", "still recognized", "")
        assert 0 < float(row["distance"]) < float(row["threshold"]) == 0.65
        assert written(tmp_path / "out") == {"report.csv"}
        printed = " ".join(capsys.readouterr().out.split())
        assert f"still recognized (distance {row['distance']}; threshold 0.650)" in printed

    def test_the_user_can_insist_and_the_report_says_so(self, root, pictures, tmp_path, capsys):
        assert anonymize(root, pictures, tmp_path / "out", *FAINT, "--keep-recognizable") == 0
        (row,) = report(tmp_path / "out").values()
        assert (row["status"], row["recognized"], row["face"]) == ("ok", "yes", "found")
        assert (tmp_path / "out" / row["output"]).is_file()
        printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert "still recognized, and written because of --keep-recognizable" in printed

    def test_a_run_that_withheld_some_results_ends_with_its_own_status(self, root, pictures, tmp_path, monkeypatch):
        from masquerade.methods.gaussian_noise import GaussianNoise

        portrait().transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(pictures / "two.jpg", quality=95)
        noisy = GaussianNoise.anonymize
        monkeypatch.setattr(
            GaussianNoise, "anonymize",
            lambda self, faces, seed, key=None: np.where(
                np.array([name.startswith("one") for name in faces.ids])[:, None, None, None],
                noisy(self, faces, seed), np.clip(faces.images + 1 / 127.5, -1, 1),
            ).astype(np.float32),
        )  # fmt: skip
        assert anonymize(root, pictures, tmp_path / "out") == INCOMPLETE == 3
        rows = report(tmp_path / "out")
        assert (rows["one.jpg"]["recognized"], rows["two.jpg"]["recognized"]) == ("no", "yes")
        assert written(tmp_path / "out") == {"report.csv", rows["one.jpg"]["output"]}

    def test_a_picture_of_an_earlier_run_is_removed_when_the_new_one_is_recognized(self, root, pictures, tmp_path):
        assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
        assert len(written(tmp_path / "out")) == 3
        assert anonymize(root, pictures, tmp_path / "out", *FAINT, "--photographs", "--overwrite") == 1
        assert written(tmp_path / "out") == {"report.csv"}

    def test_a_result_without_a_face_is_reported(self, root, pictures, tmp_path, capsys):
        assert anonymize(root, pictures, tmp_path / "out") == 0
        (row,) = report(tmp_path / "out").values()
        assert (row["face"], row["recognized"]) == ("no face found", "no")
        assert "a detector finds (0%)" in " ".join(capsys.readouterr().out.split())


class TestNeighbors:
    def test_a_poster_that_the_photograph_was_too_large_to_show_withholds_the_crop(self, root, pictures, tmp_path):
        """It is too small for HOG in the reduced photograph. MTCNN finds it in the crop."""
        large = Image.new("RGB", (1600, 1600), "gray")
        large.paste(portrait().resize((600, 600)), (500, 500))
        large.paste(portrait().crop((90, 0, 230, 210)).resize((90, 135)), (910, 560))
        large.save(pictures / "one.jpg", quality=95)
        assert anonymize(root, pictures, tmp_path / "out") == 1
        (row,) = report(tmp_path / "out").values()
        assert (row["status"], row["reason"]) == ("refused", "a face is left in it that was not replaced")
        assert written(tmp_path / "out") == {"report.csv"}

    def test_a_result_that_looks_like_somebody_else_of_the_photograph_is_withheld(self, tmp_path):
        """The result is the astronaut, who stands beside the stranger."""
        publish = released(tmp_path, astronaut(64), lambda faces, number: None)
        for others, reason in (([], ""), ([astronaut(200)], "still recognized")):
            assert publish(others)["reason"] == reason


class TestFurtherResults:
    """What a method gives for a face that is still recognized. Its first result is the astronaut, as she was."""

    def test_the_first_one_that_is_not_recognized_is_written(self, tmp_path):
        given = {1: astronaut(64), 2: STRANGER}
        publish = released(tmp_path, astronaut(64), lambda faces, number: to_float(given[number][None]), astronaut(64))
        row = publish([])
        assert (row["status"], row["recognized"]) == ("ok", "no")
        assert (np.asarray(Image.open(tmp_path / "out" / row["output"])) == STRANGER).all()

    def test_they_end(self, tmp_path):
        numbers = []

        def resample(faces, number):
            numbers.append(number)
            return to_float(astronaut(64)[None])

        publish = released(tmp_path, astronaut(64), resample, astronaut(64))
        assert publish([])["reason"] == "still recognized"
        assert numbers == [1, 2]


STRANGER = np.full((64, 64, 3), 90, np.uint8)  # a flat image


def astronaut(size: int) -> np.ndarray:
    return np.asarray(portrait().crop((50, 20, 250, 220)).resize((size, size)))


def released(folder, result, otherwise, original=STRANGER):
    """Publishes the result of a face: other faces of the photograph -> the row of the report."""
    judge = Inspector()
    archives = []
    for name, picture in (("originals", original), ("results", result)):
        with ArchiveWriter(folder / f"{name}.zip") as out:
            row = {"id": "a", "identity": "", "split": "test", "file": "a.png", "file_id": "a"}
            out.add(picture, {**row, "status": "ok", "reason": ""})
        archives.append(FaceArchive(folder / f"{name}.zip"))
    tag = image_texts.ProvenanceTag("m", "v", "s", "-")
    method = Original(Original.Params(), Original.Variant(), Resources())
    method.resample = otherwise
    release = Anonymized(FolderOutput(folder / "out"), ReleaseRule(judge, Threshold(0.65, "")), method, tag)
    return lambda others: release.publish(*archives, {"a": [original, *others]})[0]


def chunks(png: bytes) -> list[bytes]:
    """The types of the chunks of a PNG."""
    kinds, place = [], 8
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        kinds.append(kind)
        place += 12 + length
    return kinds


class TestWholePhotographs:
    @pytest.fixture
    def pair(self, pictures) -> Path:
        """Two people side by side."""
        (pictures / "one.jpg").unlink()
        group = Image.new("RGB", (560, 300))
        group.paste(portrait(), (0, 0))
        group.paste(portrait().resize((240, 240)).transpose(Image.Transpose.FLIP_LEFT_RIGHT), (310, 30))
        group.save(pictures / "pair.png")
        return pictures

    def test_every_face_is_replaced_and_the_rest_is_untouched(self, root, pair, tmp_path):
        output = tmp_path / "out"
        assert anonymize(root, pair, output, "--photographs") == 0
        row = report(output)["pair.png"]
        assert float(row["photograph_distance"]) > 0.6
        assert len(written(output)) == 4, "two crops, the photograph and the report"
        before = np.asarray(Image.open(pair / "pair.png").convert("RGB")).astype(int)
        after = np.asarray(Image.open(output / row["photograph"])).astype(int)
        changed = np.abs(after - before).sum(axis=2) > 0
        assert changed[100:130, 130:160].mean() > 0.9, "the face of the first"
        assert changed[110:135, 420:445].mean() > 0.9, "the face of the second"
        assert not changed[280:].any()
        assert not changed[:, 262:320].any()

    def test_no_metadata_reaches_the_photograph(self, root, pictures, tmp_path):
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        exif, thumbnail = Image.Exif(), io.BytesIO()
        exif[0x010F] = MARK.decode()  # the maker of the camera
        portrait().resize((96, 96)).save(thumbnail, "JPEG")
        facts = {"exif": exif, "xmp": b"<x>" + MARK + b"</x>", "comment": MARK + thumbnail.getvalue()}
        portrait().save(pictures / "one.jpg", quality=95, icc_profile=profile, **facts)
        assert (pictures / "one.jpg").read_bytes().count(b"\xff\xd8") == 2, "the thumbnail is there"
        assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
        row = report(tmp_path / "out")["one.jpg"]
        photograph = (tmp_path / "out" / row["photograph"]).read_bytes()
        assert photograph[:2] == b"\xff\xd8"
        for part in (MARK, b"Exif", b"ICC_PROFILE", b"adobe", b"\xff\xfe"):
            assert part not in photograph
        assert photograph.count(b"\xff\xd8") == 1, "a thumbnail would begin a second time"
        assert set(chunks((tmp_path / "out" / row["output"]).read_bytes())) == {b"IHDR", b"IDAT", b"IEND"}

    def test_one_refused_face_refuses_the_photograph(self, root, pair, tmp_path, monkeypatch):
        from masquerade.methods.gaussian_noise import GaussianNoise

        noisy = GaussianNoise.anonymize
        monkeypatch.setattr(
            GaussianNoise, "anonymize",
            lambda self, faces, seed, key=None: np.concatenate(
                [noisy(self, faces, seed)[:1], np.clip(faces.images[1:] + 1 / 127.5, -1, 1)]
            ).astype(np.float32),
        )  # fmt: skip
        assert anonymize(root, pair, tmp_path / "out", "--photographs") == INCOMPLETE
        row = report(tmp_path / "out")["pair.png"]
        assert (row["photograph"], row["photograph_reason"]) == ("", "not every face of it could be replaced")
        assert not (tmp_path / "out" / "photographs").exists()

    def test_a_face_that_was_missed_refuses_the_photograph(self, root, pair, tmp_path):
        """The detector searches a lying face only in a photograph without an upright one."""
        group = Image.new("RGB", (620, 300))
        group.paste(portrait(), (0, 0))
        group.paste(portrait().rotate(90), (320, 0))
        group.save(pair / "pair.png")
        assert anonymize(root, pair, tmp_path / "out", "--photographs", "--small", "refuse") == INCOMPLETE
        (row,) = report(tmp_path / "out").values()
        assert row["status"] == "ok"
        assert row["photograph_reason"] == "a face is left in it that was not replaced"
        assert not (tmp_path / "out" / "photographs").exists()

    def test_a_photograph_on_its_side_stays_on_its_side(self, root, pictures, tmp_path):
        portrait().transpose(Image.Transpose.ROTATE_90).save(pictures / "one.jpg", quality=95)
        assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
        row = report(tmp_path / "out")["one.jpg"]
        before = np.asarray(Image.open(pictures / "one.jpg")).astype(int)
        after = np.asarray(Image.open(tmp_path / "out" / row["photograph"])).astype(int)
        difference = np.abs(after - before).mean(axis=2)
        assert difference[150:180, 90:120].mean() > 30, "the face"
        assert difference[:, 270:].mean() < 2, "its shoulders, coded as JPEG once more"


class TestRecovery:
    @pytest.fixture(autouse=True)
    def keyed(self, monkeypatch):
        make_original_keyed(monkeypatch)

    @pytest.fixture
    def key(self, tmp_path) -> tuple[str, Path]:
        (tmp_path / "key").write_bytes(b"correct horse battery\n")
        return "--key-file", tmp_path / "key"

    @pytest.fixture
    def hidden(self, root, pictures, tmp_path, key) -> Path:
        options = ("--photographs", *key)
        assert anonymize(root, pictures, tmp_path / "hidden", *options, method="original") == 0
        return tmp_path / "hidden"

    def test_the_salt_in_the_picture_or_the_report_brings_the_face_back(self, root, pictures, hidden, tmp_path, key):
        (row,) = report(hidden).values()
        assert len(row["salt"]) == 2 * image_texts.LENGTH
        with Image.open(hidden / row["output"]) as picture:
            facts = {
                image_texts.SALT_KEYWORD: "salt",
                image_texts.CHECK_KEYWORD: "check",
                image_texts.MAKER_KEYWORD: "maker",
            }
            assert picture.info == {keyword: row[column] for keyword, column in facts.items()}
            pixels = picture.copy()
        originals = ("--originals", pictures)
        assert recover(root, hidden, tmp_path / "a", *key, *originals) == 0
        pixels.info.clear()
        pixels.save(hidden / row["output"])  # as a service does that removes metadata
        assert recover(root, hidden, tmp_path / "b", *key, *originals) == 0
        for back in ("a", "b"):
            (found,) = report(tmp_path / back).values()
            assert (found["recognized"], found["psnr"], found["salted"]) == ("yes", "inf", "yes")
            assert float(found["distance"]) == 0

    def test_the_scale_and_the_variant_that_anonymized_are_taken_again(self, root, hidden, tmp_path, key, capsys):
        """From the image, also if the default of the repository is another one by now."""
        (root / "scales" / "other.yaml").write_text("image: {size: 32}\n")
        (root / "params.yaml").write_text((root / "params.yaml").read_text().replace("scale: mini", "scale: other"))
        assert recover(root, hidden, tmp_path / "back", *key) == 0
        assert "original uses the networks of scale mini and writes images of 64 x 64" in capsys.readouterr().err

    def test_equal_photographs_differ_under_one_key_unless_the_user_declines_salts(self, root, pictures, tmp_path, key):
        (pictures / "two.jpg").write_bytes((pictures / "one.jpg").read_bytes())

        def faces(name: str, *more: str) -> list[bytes]:
            assert anonymize(root, pictures, tmp_path / name, *key, *more, method="original") == 0
            rows = report(tmp_path / name).values()
            return [np.asarray(Image.open(tmp_path / name / row["output"])).tobytes() for row in rows]

        first, second = faces("salted")
        assert first != second
        first, second = faces("plain", "--no-salt")
        assert first == second


class TestLargePictures:
    """`original` with noise, and four times as large an image of it, as a generator of two sizes has."""

    @pytest.fixture(autouse=True)
    def two_sizes(self, monkeypatch):
        from masquerade.methods.gaussian_noise import GaussianNoise

        noisy, large = GaussianNoise.anonymize, {}

        def anonymized(self, faces, seed, keys=None):
            results = noisy(self, faces, seed)
            if self.shown == "large":
                large.update({name: enlarged(image) for name, image in zip(faces.ids, faces.images, strict=True)})
            else:
                large.update({name: enlarged(image) for name, image in zip(faces.ids, results, strict=True)})
            return results

        def enlarged(image: np.ndarray) -> np.ndarray:
            return to_uint8(image[None])[0].repeat(4, axis=0).repeat(4, axis=1)

        monkeypatch.setattr(GaussianNoise, "shown", "both", raising=False)
        monkeypatch.setattr(GaussianNoise, "enlarge", lambda self: large.__getitem__)
        monkeypatch.setattr(GaussianNoise, "anonymize", anonymized)

    def test_they_are_written_beside_the_others(self, root, pictures, tmp_path):
        assert anonymize(root, pictures, tmp_path / "out", "--large") == 0
        (row,) = report(tmp_path / "out").values()
        assert written(tmp_path / "out") == {"report.csv", row["output"], row["large"]}
        with Image.open(tmp_path / "out" / row["large"]) as picture:
            assert picture.size == (256, 256)

    def test_a_large_picture_that_is_recognized_withholds_both(self, root, pictures, tmp_path, monkeypatch):
        from masquerade.methods.gaussian_noise import GaussianNoise

        monkeypatch.setattr(GaussianNoise, "shown", "large")
        assert anonymize(root, pictures, tmp_path / "out", "--large") == 1
        (row,) = report(tmp_path / "out").values()
        assert (row["status"], row["reason"]) == ("refused", "still recognized")
        assert written(tmp_path / "out") == {"report.csv"}
