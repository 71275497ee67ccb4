"""A folder of photographs: faces are upright and aligned, and every other file gets a reason for its refusal."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms
from skimage.data import astronaut

from masquerade.core import people
from masquerade.core.errors import PictureError
from masquerade.core.images import FaceArchive
from masquerade.faces import build
from masquerade.faces.folder import Folder
from masquerade.faces.photographs import alignment, decoding
from masquerade.faces.photographs.names import files, safe_id

PARAMS = {
    "path": "", "identity": "from_folder", "validation_share": 0.0, "faces": "refuse", "alignment": "ffhq",
    "megapixels": 40.0, "detection_side": 1024, "detection_score": 0.3, "turn": True, "smallest": 32.0,
}  # fmt: skip
# Arithmetic on the recipe: the square is 4 |x'| wide here, its center 0.1 |y'| below the eyes.
EYE_TO_EYE = 0.25


def dataset(path: Path, **changes) -> Folder:
    return Folder(Folder.Params(**{**PARAMS, "path": str(path), **changes}))


def records(path: Path, size: int = 128, **changes) -> list:
    return list(dataset(path, **changes).records(size, seed=0, workers=1))


def reason(path: Path, **changes) -> str:
    (record,) = records(path, **changes)
    assert record.picture is None
    assert record.row["status"] == "refused"
    return record.row["reason"]


def eyes_and_mouth(record) -> np.ndarray:
    """Left eye, right eye, middle of the mouth's corners; 0 and 1 are the edges of the crop."""
    points = np.array(record.row["landmarks"]).reshape(68, 2)
    three = [points[36:42].mean(axis=0), points[42:48].mean(axis=0), points[[48, 54]].mean(axis=0)]
    return (np.array(three) + 0.5) / record.picture.shape[0]


@pytest.fixture
def portrait() -> Image.Image:
    """The astronaut Eileen Collins (NASA, public domain), head and shoulders: 300 x 300 pixels."""
    return Image.fromarray(astronaut()[0:300, 80:380])


def test_a_face_is_cropped_with_level_eyes_in_the_expected_place(tmp_path, portrait):
    portrait.save(tmp_path / "portrait.png")
    (record,) = records(tmp_path)
    assert record.picture.shape == (128, 128, 3)
    assert record.picture.dtype == np.uint8
    left, right, mouth = eyes_and_mouth(record)
    assert right[0] - left[0] == pytest.approx(EYE_TO_EYE, abs=0.02)
    assert (left[0] + right[0]) / 2 == pytest.approx(0.5, abs=0.01)
    assert left[1] == pytest.approx(0.5 - 0.1 * (mouth[1] - left[1]), abs=0.02)
    assert mouth[1] > 0.65


@pytest.mark.parametrize("angle", [20, -25, 90, 180, 270])
def test_the_face_of_a_rotated_photograph_is_upright(tmp_path, portrait, angle):
    portrait.save(tmp_path / "a_upright.png")
    portrait.rotate(angle, Image.Resampling.BICUBIC, expand=True).save(tmp_path / "b_turned.png")
    upright, turned = records(tmp_path)
    np.testing.assert_allclose(eyes_and_mouth(turned), eyes_and_mouth(upright), atol=0.02)
    middle = np.s_[32:96, 32:96]
    difference = np.abs(turned.picture[middle].astype(int) - upright.picture[middle]).mean()
    assert difference < 12, "the crops must show the same view of the same face"


@pytest.mark.parametrize("angle", [-25, -10, 10, 25])
def test_a_tilted_face_is_levelled_to_half_a_degree(portrait, angle):
    def roll(picture: Image.Image) -> float:
        pixels = np.asarray(picture)
        (box,) = alignment.detect(pixels, 640, 0.3)
        right = alignment.square(alignment.landmarks(pixels, box)).right
        return float(np.degrees(np.arctan2(right[1], right[0])))

    leaning = portrait.rotate(angle, Image.Resampling.BICUBIC)
    assert roll(portrait) - roll(leaning) == pytest.approx(angle, abs=0.5), "one detection alone is wrong by a degree"


def test_a_square_follows_from_eyes_and_mouth_by_hand():
    points = np.zeros((68, 2))
    points[36:42], points[42:48], points[[48, 54]] = (40, 50), (60, 50), (50, 80)
    square = alignment.square(points)
    # |x'| = 20, |y'| = 30: s = max(80, 108); c = (50, 50) + 0.1 (0, 30)
    assert square.side == pytest.approx(108)
    np.testing.assert_allclose(square.center, (50, 53))
    np.testing.assert_allclose(square.right, (54, 0), atol=1e-9)
    # The square starts at x = -4, y = -1, and a pixel of a crop of 54 is two pixels wide.
    np.testing.assert_allclose(alignment.into_crop(np.array([[-4.0, -1.0]]), square, 54), [[-0.5, -0.5]], atol=1e-9)
    np.testing.assert_allclose(square.affine(54) @ [10, 20, 1], [-4 + 21, -1 + 41], atol=1e-9)


def test_a_square_in_the_picture_is_cut_out_pixel_by_pixel():
    picture = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    square = alignment.Square(center=np.array([39.5, 29.5]), right=np.array([8.0, 0.0]))
    np.testing.assert_array_equal(alignment.crop(picture, square, 16), picture[22:38, 32:48])


def test_a_crop_beyond_the_edge_is_filled_with_the_mirrored_picture():
    picture = np.tile(np.linspace(0, 255, 64, dtype=np.uint8)[None, :, None], (64, 1, 3))
    square = alignment.Square(center=np.array([0.0, 32.0]), right=np.array([16.0, 0.0]))
    crop = alignment.crop(picture, square, 32)[16, :, 0].astype(int)
    assert crop[16:].tolist() == sorted(crop[16:]), "the inside is not changed"
    assert crop[0] > crop[15], "the outside is mirrored; black bars would be 0 everywhere"


def test_the_parameters_decide_if_two_faces_are_refused_or_used(tmp_path, portrait):
    group = Image.new("RGB", (560, 300))
    group.paste(portrait, (0, 0))
    group.paste(portrait.resize((240, 240)), (310, 30))
    group.save(tmp_path / "group.png")
    assert reason(tmp_path) == "2 faces were found"
    (largest,) = records(tmp_path, faces="largest")
    both = records(tmp_path, faces="all")
    assert len(both) == 2
    assert len({record.row["id"] for record in both}) == 2
    np.testing.assert_array_equal(largest.picture, both[0].picture)


def test_each_small_face_of_several_is_a_separate_refusal(tmp_path, portrait):
    group = Image.new("RGB", (560, 300))
    group.paste(portrait, (0, 0))
    group.paste(portrait.resize((180, 180)), (310, 30))
    group.save(tmp_path / "group.png")
    large, small = records(tmp_path, faces="all", smallest=150.0)
    assert large.picture is not None
    assert small.picture is None
    assert "too small" in small.row["reason"]


def test_photographs_without_a_face_or_with_a_small_face_are_refused(tmp_path, portrait):
    Image.new("RGB", (200, 200), "white").save(tmp_path / "wall.png")
    assert reason(tmp_path) == "no face was found"
    portrait.save(tmp_path / "wall.png")
    assert "too small" in reason(tmp_path, smallest=1000.0)


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 2), (4000, 1), (1, 4000), (33_000, 8)])
def test_a_picture_of_extreme_shape_is_refused_without_a_crash(tmp_path, width, height):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "strip.png")
    assert reason(tmp_path) in ("no face was found", "33000 x 8 pixels, a side longer than 32766 pixels")


def test_files_that_are_not_photographs_are_refused_with_a_reason(tmp_path, portrait):
    portrait.save(tmp_path / "cut.jpg")
    whole = (tmp_path / "cut.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "program.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    (tmp_path / "text.jpg").write_text("this is a letter, not an image")
    os.mkfifo(tmp_path / "zpipe.jpg")
    reasons = {record.row["file"]: record.row["reason"] for record in records(tmp_path)}
    assert reasons["cut.jpg"].startswith("truncated or damaged")
    assert reasons["empty.jpg"] == "the file is empty"
    assert reasons["gone.jpg"].startswith("a link that leads nowhere")
    assert reasons["program.png"].startswith("not an image")
    assert reasons["text.jpg"].startswith("not an image")
    assert reasons["zpipe.jpg"] == "not a regular file"


@pytest.mark.parametrize(("content", "name", "kind"), [
    (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "IMG_1.HEIC", "not an image in a format that is read"),
    (b"MM\0*\0\0\0\x08", "DSC_1.NEF", "a camera raw file"),
    (b"GIF89a\1\0\1\0", "a.png", "not an image in a format that is read"),
])  # fmt: skip
def test_a_file_of_a_kind_that_is_not_read_is_refused(tmp_path, content, name, kind):
    (tmp_path / name).write_bytes(content + b"\0" * 200)
    assert reason(tmp_path).startswith(kind)


@pytest.mark.parametrize(("name", "why"), [
    ("a.png", "an animation"), ("a.webp", "an animation"), ("a.tiff", "several pages in one file"),
])  # fmt: skip
def test_a_file_of_several_pictures_is_refused_because_one_alone_would_be_used(tmp_path, portrait, name, why):
    portrait.save(tmp_path / name, save_all=True, append_images=[portrait.rotate(90)])
    assert reason(tmp_path).startswith(why)
    saved(tmp_path / name, portrait)
    assert records(tmp_path)[0].picture is not None


def test_thumbnails_and_what_a_telephone_adds_to_a_picture_are_no_second_picture(tmp_path, portrait):
    portrait.save(tmp_path / "gain_map.jpg", "MPO", save_all=True, append_images=[portrait.convert("L")])
    small = portrait.resize((60, 60))
    small.encoderinfo = {"tiffinfo": {254: 1}}
    portrait.save(tmp_path / "thumbnail.tiff", save_all=True, append_images=[small])
    assert [record.row.get("reason", "") for record in records(tmp_path)] == ["", ""]


def test_one_file_is_a_folder_with_one_picture(tmp_path, portrait):
    for name in ("one.jpg", "other.jpg"):
        portrait.save(tmp_path / name)
    (alone,) = records(tmp_path / "one.jpg")
    beside = records(tmp_path)
    assert (alone.row["file"], alone.row["id"]) == ("one.jpg", beside[0].row["id"])
    assert np.array_equal(alone.picture, beside[0].picture)


def test_a_picture_with_changed_bytes_is_read_or_refused(tmp_path, portrait):
    random = np.random.default_rng(0)
    for ending in ("jpg", "png", "webp", "tiff", "bmp"):
        path = tmp_path / f"picture.{ending}"
        portrait.resize((24, 24)).save(path)
        whole = np.frombuffer(path.read_bytes(), np.uint8)
        for _ in range(60):
            damaged = whole.copy()
            places = random.integers(0, min(len(whole), 400), 4)
            damaged[places] = random.integers(0, 256, 4)
            path.write_bytes(damaged.tobytes())
            try:
                pixels = decoding.read(path, tmp_path, 40.0)
            except PictureError:
                continue
            assert pixels.dtype == np.uint8
            assert pixels.ndim == 3
            assert pixels.shape[2] == 3


def test_a_link_that_leaves_the_folder_is_refused_and_one_within_is_read(tmp_path, portrait):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    portrait.save(outside / "private.png")
    portrait.save(inside / "mine.png")
    (inside / "link.png").symlink_to(outside / "private.png")
    (inside / "tree").symlink_to(outside)
    (inside / "again.png").symlink_to(inside / "mine.png")
    reasons = {record.row["file"]: record.row.get("reason", "") for record in records(inside)}
    left = "a link that leaves the folder"
    assert reasons == {"again.png": "", "link.png": left, "mine.png": "", "tree": left}


@pytest.fixture
def locked_folder(tmp_path, portrait, monkeypatch) -> Path:
    """A folder with an image and a sub-folder ``locked`` that nobody may list: root may list any other."""
    (tmp_path / "photographs" / "locked").mkdir(parents=True)
    portrait.save(tmp_path / "photographs" / "open.png")
    listed = os.scandir

    def scandir(path):
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return tmp_path / "photographs"


def test_a_sub_folder_that_may_not_be_read_is_a_row_of_the_report(locked_folder):
    locked, opened = records(locked_folder)
    assert (locked.row["file"], locked.picture) == ("locked", None)
    assert locked.row["reason"] == "a folder that may not be read, so its files are not known"
    assert opened.picture is not None


def saved(path: Path, picture: Image.Image, **options) -> np.ndarray:
    picture.save(path, **options)
    return decoding.read(path, path.parent, 40.0)


def test_the_exif_orientation_is_applied(tmp_path, portrait):
    upright = np.asarray(portrait)
    for orientation, turned in {3: np.rot90(upright, 2), 6: np.rot90(upright, 1), 8: np.rot90(upright, 3)}.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        read = saved(tmp_path / "turned.png", Image.fromarray(np.ascontiguousarray(turned)), exif=exif)
        np.testing.assert_array_equal(read, upright)


def test_every_color_mode_becomes_the_same_picture(tmp_path, portrait):
    exact = np.asarray(portrait)
    gray = np.asarray(portrait.convert("L"))
    np.testing.assert_array_equal(saved(tmp_path / "a.png", portrait.convert("L")), np.stack([gray] * 3, axis=-1))
    sixteen = Image.fromarray(gray.astype(np.uint16) * 257)
    np.testing.assert_array_equal(saved(tmp_path / "b.png", sixteen), np.stack([gray] * 3, axis=-1))
    np.testing.assert_array_equal(saved(tmp_path / "c.tiff", portrait.convert("CMYK")), exact)
    palette = portrait.quantize(64)
    np.testing.assert_array_equal(saved(tmp_path / "d.png", palette), np.asarray(palette.convert("RGB")))
    cmyk = saved(tmp_path / "e.jpg", portrait.convert("CMYK"), quality=98)
    assert np.abs(cmyk.astype(int) - exact).mean() < 4


def exchanged_primaries() -> bytes:
    """The profile of sRGB with red and blue exchanged: whoever follows it sees the colors exchanged."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, blue = (profile.index(name) for name in (b"rXYZ", b"bXYZ"))
    profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"
    return bytes(profile)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "PA", "P with transparency"])
def test_a_color_profile_is_followed_in_every_mode(tmp_path, mode):
    """A screenshot of a phone is RGBA or a palette, and has the profile of its screen."""
    picture = Image.new("RGB", (8, 8), (200, 90, 20))
    options = {"icc_profile": exchanged_primaries()}
    if mode.startswith("P"):
        picture = picture.quantize(2)
        options |= {"transparency": bytes([255, 255])} if "transparency" in mode else {}
    suffix = ".tiff" if mode == "PA" else ".png"
    picture = picture.convert(mode) if mode in ("RGBA", "PA") else picture
    pixels = saved(tmp_path / f"picture{suffix}", picture, **options)
    np.testing.assert_allclose(pixels[0, 0].astype(int), (20, 90, 200), atol=2)


def test_a_large_color_profile_of_a_png_is_followed(tmp_path):
    """Pillow alone refuses a PNG whose profile has more than 1 MB."""
    profile = exchanged_primaries() + np.random.default_rng(0).bytes(2_000_000)
    pixels = saved(tmp_path / "screen.png", Image.new("RGB", (8, 8), (200, 90, 20)), icc_profile=profile)
    np.testing.assert_allclose(pixels[0, 0].astype(int), (20, 90, 200), atol=2)


def test_transparent_parts_are_white_whatever_the_profile(tmp_path):
    half = Image.new("RGBA", (2, 1), (200, 90, 20, 255))
    half.putpixel((1, 0), (200, 90, 20, 0))
    pixels = saved(tmp_path / "half.png", half, icc_profile=exchanged_primaries())
    np.testing.assert_allclose(pixels[0].astype(int), [(20, 90, 200), (255, 255, 255)], atol=2)


def test_a_profile_that_cannot_be_read_changes_nothing(tmp_path):
    pixels = saved(tmp_path / "picture.png", Image.new("RGBA", (8, 8), (200, 90, 20)), icc_profile=b"no profile")
    assert pixels[0, 0].tolist() == [200, 90, 20]


@pytest.mark.parametrize("faces", ["all", "largest"])
def test_a_crop_hides_the_neighbors_and_names_them_to_the_judge(tmp_path, portrait, faces):
    head = portrait.crop((80, 20, 210, 300))
    group = Image.new("RGB", (240, 280))
    group.paste(head, (0, 0))
    group.paste(head.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (110, 0))
    group.save(tmp_path / "cheek_to_cheek.png")
    photograph, found = np.asarray(group), records(tmp_path, faces=faces)
    assert len(found) == {"all": 2, "largest": 1}[faces]
    for record in found:
        square = alignment.Square(np.array(record.row["square"][:2]), np.array(record.row["square"][2:]))
        difference = np.abs(alignment.crop(photograph, square, 128).astype(int) - record.picture).sum(axis=2)
        changed = (difference > 0).any(axis=0).nonzero()[0]
        assert len(changed) > 10, "the columns of the neighbor"
        assert not ((changed > 40) & (changed < 88)).any()
        (other,) = record.others
        assert other.shape == record.detailed.shape == (256, 256, 3)
    if faces == "all":
        np.testing.assert_array_equal(found[0].others[0], found[1].detailed)


@pytest.mark.parametrize("turn", [False, True])
def test_a_face_that_fills_the_picture_is_found(tmp_path, portrait, turn):
    """A passport image that is cut at brow and chin: HOG finds it only with a border."""
    passport = portrait.crop((104, 90, 188, 172))
    assert not len(alignment.detect(np.asarray(passport), 1024, 0.3))
    if turn:
        passport = passport.transpose(Image.Transpose.ROTATE_90)
    passport.save(tmp_path / "passport.png")
    (record,) = records(tmp_path)
    left, right, _ = eyes_and_mouth(record)
    assert right[0] - left[0] == pytest.approx(EYE_TO_EYE, abs=0.02)
    assert (left[0] + right[0]) / 2 == pytest.approx(0.5, abs=0.02)


def test_names_become_safe_unique_ids():
    names = ["Ann Lee/0001.jpg", "Ann Lee/0001.png", "../../etc/passwd", "日本.jpg", "a" * 300 + ".jpg", "-rf.jpg"]
    ids = [safe_id(Path(name)) for name in names]
    assert ids[0].startswith("Ann_Lee_0001_")
    assert len(set(ids)) == len(names)
    assert all(one.replace("_", "").isascii() and one.replace("_", "").isalnum() and len(one) < 64 for one in ids)


def test_a_picture_whose_name_is_not_valid_text_is_archived(tmp_path, portrait):
    portrait.save(tmp_path / "plain.png")
    (tmp_path / "plain.png").rename(tmp_path / os.fsdecode(b"caf\xe9\n.png"))
    build(dataset(tmp_path), tmp_path / "out" / "set.zip", 32, 0, dict.fromkeys(people.GROUPS, 0.25))
    assert FaceArchive(tmp_path / "out" / "set.zip").index["file"].tolist() == ["caf\ufffd\n.png"]


def test_hidden_files_are_ignored_and_pictures_are_sorted_by_name(tmp_path):
    for name in ("b/2.jpg", "b/1.jpg", "a.jpg", ".hidden.jpg", ".git/object", "c/.DS_Store"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [path.relative_to(tmp_path).as_posix() for path in files(tmp_path)] == ["a.jpg", "b/1.jpg", "b/2.jpg"]


def test_sub_folders_are_identities_and_no_identity_is_in_two_splits(tmp_path):
    for person in range(40):
        for number in range(2):
            path = tmp_path / f"person_{person}" / f"{number}.png"
            path.parent.mkdir(exist_ok=True)
            Image.new("RGB", (32, 32), (person, number, 0)).save(path)
    Image.new("RGB", (32, 32)).save(tmp_path / "stranger.png")
    rows = [record.row for record in records(tmp_path, alignment="none", validation_share=0.5)]
    splits = {}
    for row in rows:
        splits.setdefault(row["identity"], set()).add(row["split"])
    assert all(len(names) == 1 for names in splits.values())
    assert splits[""] == {"test"}
    assert 10 <= sum(names == {"validation"} for names in splits.values()) <= 30
    assert {row["split"] for row in (r.row for r in records(tmp_path, alignment="none"))} == {"test"}
    assert {row["identity"] for row in (r.row for r in records(tmp_path, alignment="none", identity="unknown"))} == {""}


def test_aligned_crops_are_not_changed(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "crop.png")
    (record,) = records(tmp_path, size=32, alignment="none")
    np.testing.assert_array_equal(record.picture, pixels)
    Image.new("RGB", (32, 40)).save(tmp_path / "crop.png")
    assert "not square" in reason(tmp_path, size=32, alignment="none")


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(tmp_path, portrait):
    for number in range(3):
        portrait.rotate(4 * number).save(tmp_path / f"{number}.png")
    alone = list(dataset(tmp_path).records(48, 0, 1))
    together = list(dataset(tmp_path).records(48, 0, 2))
    assert [record.row for record in alone] == [record.row for record in together]
    assert all((a.picture == b.picture).all() for a, b in zip(alone, together, strict=True))


def test_a_dataset_without_photographs_says_what_to_do(tmp_path):
    assert dataset(tmp_path).available() == (True, "")
    available, why = Folder(Folder.Params(**PARAMS)).available()
    assert not available
    assert "datasets.folder.path" in why
    available, why = dataset(tmp_path / "nowhere").available()
    assert not available
    assert "nowhere" in why
