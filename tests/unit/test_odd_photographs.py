"""What a photograph needs is read from an odd file too; a file that is hostile, cut or of another kind is refused."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from command_line import anonymize, folder_with_portrait, make_original_keyed, portrait, recover, report, repository
from masquerade.core.errors import PictureError
from masquerade.faces.photographs import decoding, png_chunks

SIDEWAYS = (0x0112, 3, struct.pack("<HH", 6, 0))  # the tag Orientation: "rotate by 90 degrees clockwise to show"
ODD_TAGS = {
    "ASCII of a number": (0x0102, 2, b"ab\0\0"),
    "negative": (0x0103, 8, struct.pack("<hh", -5, 0)),
    "a number in place of a date": (0x0132, 11, struct.pack("<f", 2.0)),
    "an unknown type": (0x927C, 99, b"abcd"),
    "a value far outside": (0x010E, 12, struct.pack("<I", 10**8)),
    "a directory that is no number": (0x8769, 2, b"abc\0"),
}


def exif(*tags: tuple[int, int, bytes]) -> bytes:
    """Exif whose only directory has these tags, each one value: number, type, and four bytes."""
    entries = b"".join(struct.pack("<HHI", number, kind, 1) + value for number, kind, value in tags)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<I", 0)


def lying() -> Image.Image:
    """An image that lies on its side; upright it is blue above red."""
    picture = Image.new("RGB", (32, 24), "blue")
    picture.paste("red", (16, 0, 32, 24))
    return picture.transpose(Image.Transpose.ROTATE_180)


def read(path: Path) -> np.ndarray:
    return decoding.read(path, path.parent, 40.0)


def is_upright(pixels: np.ndarray) -> bool:
    red, blue = pixels[..., 0].astype(int), pixels[..., 2].astype(int)
    return pixels.shape == (32, 24, 3) and (red > blue)[:12].all() and (red < blue)[20:].all()


@pytest.mark.parametrize("odd", ODD_TAGS)
@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_a_turned_photograph_with_an_odd_tag_is_read_and_upright(tmp_path, ending, odd):
    lying().save(tmp_path / f"phone.{ending}", exif=exif(SIDEWAYS, ODD_TAGS[odd]), quality=95)
    assert is_upright(read(tmp_path / f"phone.{ending}"))
    with Image.open(tmp_path / f"phone.{ending}") as picture:
        tags = dict(picture.getexif()) if odd == "negative" else {}
        assert is_upright(decoding.pixels(picture, 40.0))
        assert not tags or dict(picture.getexif()) == tags, "the image of a program keeps its metadata"


@pytest.mark.parametrize("metadata", [
    {"exif": b"Exif\0\0no TIFF at all"}, {"exif": b"Exif\0\0II*\0\xff\xff\xff\xff"}, {"xmp": b"\xff\xfe<x:xmpmeta"},
    {"xmp": b'tiff:Orientation="99999999999999999999"'}, {"icc_profile": b"no profile"},
])  # fmt: skip
@pytest.mark.parametrize("ending", ["jpg", "webp"])
def test_metadata_that_cannot_be_read_changes_nothing(tmp_path, ending, metadata):
    lying().save(tmp_path / f"plain.{ending}")
    lying().save(tmp_path / f"odd.{ending}", **metadata)
    np.testing.assert_array_equal(read(tmp_path / f"odd.{ending}"), read(tmp_path / f"plain.{ending}"))


def test_an_orientation_in_xmp_alone_is_followed(tmp_path):
    lying().save(tmp_path / "phone.jpg", xmp=b"<x><tiff:Orientation>6</tiff:Orientation></x>", quality=95)
    assert is_upright(read(tmp_path / "phone.jpg"))


def tiff(pixels: np.ndarray, color: int, kind: int = 1, *more: tuple[int, int, int]) -> bytes:
    """A TIFF without compression. ``color``: PhotometricInterpretation. ``kind``: SampleFormat. ``more``: tags."""
    samples = pixels.shape[2] if pixels.ndim == 3 else 1
    tags = [(256, 4, pixels.shape[1]), (257, 4, pixels.shape[0]), (259, 3, 1), (262, 3, color), (277, 3, samples),
            (278, 4, pixels.shape[0]), (279, 4, pixels.nbytes), *more]  # fmt: skip
    values = 8 + 2 + 12 * (len(tags) + 3) + 4
    entries = [(number, struct.pack("<HHII", number, form, 1, value)) for number, form, value in tags]
    for place, (number, value) in enumerate(((258, 8 * pixels.itemsize), (339, kind))):
        one = struct.pack("<HHIHH", number, 3, 1, value, 0)
        several = struct.pack("<HHII", number, 3, samples, values + place * 2 * samples)
        entries.append((number, one if samples == 1 else several))
    lists = struct.pack(f"<{2 * samples}H", *[8 * pixels.itemsize] * samples, *[kind] * samples) if samples > 1 else b""
    entries.append((273, struct.pack("<HHII", 273, 4, 1, values + len(lists))))
    directory = struct.pack("<H", len(entries)) + b"".join(entry for _, entry in sorted(entries))
    return b"II*\0" + struct.pack("<I", 8) + directory + struct.pack("<I", 0) + lists + pixels.tobytes()


@pytest.mark.parametrize("tag", [(700, 4, 7), (34675, 3, 5), (282, 3, 5), (34665, 4, 10**7), (305, 4, 10**7)])
def test_a_turned_tiff_with_an_odd_tag_is_read_and_upright(tmp_path, tag):
    content = tiff(np.asarray(lying()), 2, 1, (274, 3, 6), tag)
    (tmp_path / "scan.tif").write_bytes(content)
    assert is_upright(read(tmp_path / "scan.tif"))


def with_chunk(kind: bytes, content: bytes, crc: int = 0) -> bytes:
    """The lying image as a PNG with one more chunk before its pixels. ``crc``: what is wrong with its checksum."""
    buffer = io.BytesIO()
    lying().save(buffer, "PNG")
    chunk = struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content) ^ crc)
    return buffer.getvalue()[:33] + chunk + buffer.getvalue()[33:]


LONG = zlib.compress(bytes(2_000_000))


@pytest.mark.parametrize(("kind", "content", "crc"), [
    (b"zTXt", b"Comment\0\0" + LONG, 0), (b"iTXt", b"Comment\0\1\0\0\0" + LONG, 0), (b"iCCP", b"screen\0\0" + LONG, 0),
    (b"zTXt", b"Comment\0\5" + LONG, 0), (b"iCCP", b"x", 0), (b"iCCP", b"screen\0\1", 0), (b"eXIf", b"zz", 0),
    (b"tEXt", b"Comment\0text", 1), (b"eXIf", b"II*\0", 1), (b"pHYs", b"1", 0), (b"gAMA", b"", 0), (b"tEXt", b"", 0),
])  # fmt: skip
def test_a_png_with_long_or_damaged_metadata_is_read(tmp_path, kind, content, crc):
    (tmp_path / "odd.png").write_bytes(with_chunk(kind, content, crc))
    np.testing.assert_array_equal(read(tmp_path / "odd.png"), np.asarray(lying()))
    assert decoding.texts(tmp_path / "odd.png", tmp_path, 40.0) in ({}, {"Comment": "text"})


def test_the_texts_of_a_png_with_long_metadata_are_read(tmp_path):
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "x" * 2_000_000, zip=True)
    for keyword, text in (("salt", "0123"), ("note", "Grüße")):
        texts.add_text(keyword, text)
    lying().save(tmp_path / "result.png", pnginfo=texts)
    assert decoding.texts(tmp_path / "result.png", tmp_path, 40.0) == {"salt": "0123", "note": "Grüße"}


def test_texts_and_profiles_are_unpacked_to_a_limit_alone():
    bomb = zlib.compress(bytes(2**26))
    content = b"screen\0\0" + bomb
    chunk = struct.pack(">I", len(content)) + b"iCCP" + content + struct.pack(">I", zlib.crc32(b"iCCP" + content))
    rest, profile = png_chunks.readable(io.BytesIO(png_chunks.SIGNATURE + chunk))
    assert profile is None
    assert rest.read() == png_chunks.SIGNATURE


def test_hostile_and_cut_files_are_still_refused(tmp_path):
    cut = with_chunk(b"tEXt", b"Comment\0text")[:-30]
    (tmp_path / "cut.png").write_bytes(cut)
    lying().resize((320, 240)).save(tmp_path / "whole.jpg", exif=exif(SIDEWAYS, ODD_TAGS["negative"]))
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:-400])
    header = struct.pack(">II5B", 30_000, 30_000, 8, 2, 0, 0, 0)
    bomb = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    (tmp_path / "bomb.png").write_bytes(png_chunks.SIGNATURE + bomb + with_chunk(b"tEXt", b"")[33:])
    for name, reason in (("cut.png", "truncated"), ("cut.jpg", "truncated"), ("bomb.png", "larger than 40 megapixels")):
        with pytest.raises(PictureError, match=reason):
            read(tmp_path / name)


RAMP = np.linspace(0, 1, 32 * 24).reshape(24, 32)


@pytest.mark.parametrize(("pixels", "kind"), [
    (RAMP.astype("<f4"), 3), (RAMP.astype("<f2"), 3), (np.stack([RAMP.astype("<f4")] * 3, axis=-1), 3),
    ((RAMP * 2**31).astype("<u4"), 1), (np.stack([(RAMP * 65535).astype("<u2")] * 2, axis=-1), 1),
], ids=["float", "half", "float RGB", "32 bits", "two channels of 16 bits"])  # fmt: skip
def test_a_tiff_without_a_known_white_is_refused(tmp_path, pixels, kind):
    (tmp_path / "scan.tif").write_bytes(tiff(pixels, 2 if pixels.ndim == 3 and pixels.shape[2] == 3 else 1, kind))
    with pytest.raises(PictureError, match=r"an image in the color mode|not an image in a format that is read"):
        read(tmp_path / "scan.tif")


def test_a_tiff_in_which_zero_is_white_is_no_negative(tmp_path):
    for name, color in (("white", 0), ("black", 1)):
        (tmp_path / f"{name}.tif").write_bytes(tiff((RAMP * 65535).astype("<u2"), color))
    white, black = (read(tmp_path / f"{name}.tif").astype(int) for name in ("white", "black"))
    np.testing.assert_allclose(white, 255 - black, atol=1)
    assert black[0, 0, 0] == 0
    with Image.open(tmp_path / "white.tif") as picture:
        np.testing.assert_array_equal(decoding.pixels(picture, 40.0), white)


class TestBlackAndWhite:
    @pytest.mark.parametrize(("mode", "ending", "options"), [
        ("L", "png", {}), ("1", "png", {}), ("LA", "png", {}), ("L", "jpg", {"quality": 30}),
        ("RGB", "jpg", {"quality": 30}), ("RGB", "jpg", {"quality": 95, "subsampling": 0}),
        ("RGB", "webp", {"quality": 30}), ("P", "png", {}), ("L", "tiff", {}), ("CMYK", "jpg", {"quality": 90}),
    ])  # fmt: skip
    def test_a_photograph_is_gray_whatever_its_mode_and_its_compression(self, tmp_path, mode, ending, options):
        portrait().convert("L").convert(mode).save(tmp_path / f"gray.{ending}", **options)
        assert decoding.is_gray(read(tmp_path / f"gray.{ending}"))

    def test_a_photograph_in_color_or_in_one_tint_is_not_gray(self):
        pixels = np.asarray(portrait())
        sepia = (decoding.as_gray(pixels) * [1.0, 0.85, 0.7]).astype(np.uint8)
        stamped = decoding.as_gray(pixels).copy()
        stamped[280:290, 203:211] = (255, 120, 0)  # the date of a camera
        assert [decoding.is_gray(one) for one in (pixels, sepia, stamped)] == [False, False, False]

    def test_its_face_and_the_whole_photograph_stay_black_and_white(self, tmp_path):
        root, pictures = repository(tmp_path), folder_with_portrait(tmp_path, "color.jpg")
        portrait().convert("L").save(pictures / "gray.jpg", quality=90)
        output = tmp_path / "out"
        assert anonymize(root, pictures, output, "--photographs", "--seed", 1) == 0
        for file, row in report(output).items():
            for column in ("output", "photograph"):
                assert decoding.is_gray(np.asarray(Image.open(output / row[column]))) == (file == "gray.jpg")
        face = np.asarray(Image.open(output / report(output)["gray.jpg"]["output"]))
        assert np.ptp(face, axis=2).max() == 0

    def test_its_recovered_face_is_black_and_white(self, tmp_path, monkeypatch):
        make_original_keyed(monkeypatch)
        root, pictures = repository(tmp_path), folder_with_portrait(tmp_path, "one.png")
        (tmp_path / "key").write_text("a secret of a test")
        portrait().convert("L").save(pictures / "one.png")
        keyed = ("--key-file", tmp_path / "key")
        assert anonymize(root, pictures, tmp_path / "out", *keyed, method="original") == 0
        assert recover(root, tmp_path / "out", tmp_path / "back", *keyed) == 0
        (row,) = report(tmp_path / "back").values()
        assert np.ptp(np.asarray(Image.open(tmp_path / "back" / row["output"])), axis=2).max() == 0
