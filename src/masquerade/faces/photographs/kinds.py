"""Names what a file is that is not read, and refuses files of several pictures, of which one alone would be used."""

import re
import struct
from typing import BinaryIO

from PIL import Image, TiffImagePlugin

from masquerade.core.errors import PictureError

HEIC, AVIF, GIF, VIDEO, RAW = "a HEIC picture", "an AVIF picture", "a GIF picture", "a video", "a camera raw file"
BEGINNINGS = [
    (rb"....ftyp(heic|heix|heim|heis|hevc|hevx|hevm|hevs)", HEIC),
    (rb"....ftyp(avif|avis)", AVIF),
    (rb"....ftyp(mif1|msf1).*avi[fs]", AVIF),
    (rb"....ftyp(mif1|msf1)", HEIC),
    (rb"....ftypcrx |(II|MM).{6}CR|IIR[OS]|MMOR|IIU\0|FUJIFILMCCD-RAW|\0MRM|FOVb|.{6}HEAPCCDR", RAW),
    (rb"....(ftyp|moov|mdat|wide|free|skip)|RIFF....AVI |\x1aE\xdf\xa3|\0\0\x01[\xb3\xba]|FLV|\x30\x26\xb2\x75", VIDEO),
    (rb"GIF8[79]a", GIF),
    (rb"%PDF", "a PDF"),
    (rb"8BPS", "a Photoshop file"),
    (rb"\xff\x0a|\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", "a JPEG 2000 picture"),
]
"""What the first bytes of a file say: pattern -> kind, the first that fits."""
FLOATS = "an image of floating-point numbers"
MODES = {
    "F": FLOATS,
    "I": "an image of signed or 32-bit numbers",
    "LAB": "an image in the colors of CIELAB",
    "HSV": "an image in the colors of HSV",
}
"""Pillow's mode -> what an image in it is, for modes that are not read: they do not say what is white on a screen."""
LENGTH = 64  # bytes that the patterns may look at
RAW_ENDINGS = {".arw", ".cr2", ".cr3", ".dcr", ".dng", ".erf", ".iiq", ".kdc", ".mef", ".mos", ".nef", ".nrw", ".orf",
               ".pef", ".raw", ".rw2", ".sr2", ".srf", ".srw", ".3fr"}  # fmt: skip
MOST_PAGES = 32  # of a TIFF, thumbnails included; a hostile file has millions
_TIFF = (b"II*\0", b"MM\0*")
_THUMBNAIL = 1  # bit of the TIFF tag NewSubfileType: a smaller copy of another picture
_FLOATS = 3  # of the TIFF tag SampleFormat
_SAMPLE_FORMAT = 339
_SUBFILE_TYPE, _DNG_VERSION, _MP_ENTRIES = 254, 50706, 0xB002


def check(beginning: bytes, ending: str) -> None:
    """Raises PictureError for a kind of file that is known and not read. ``ending``: of its name, such as ``.nef``."""
    kind = next((kind for pattern, kind in BEGINNINGS if re.match(pattern, beginning, re.DOTALL)), "")
    if beginning.startswith(_TIFF) and ending.lower() in RAW_ENDINGS:
        kind = RAW  # its first page is a thumbnail
    if kind:
        raise PictureError(unread(kind))


def unread(kind: str) -> str:
    """The reason for the refusal of a kind of file, and what to do."""
    return f"{kind}, which is not read: save what you need of it as JPEG or PNG"


def check_tiff(file: BinaryIO) -> None:
    """Raises PictureError if an open file, which Pillow cannot identify, is a TIFF, and says what is in it."""
    header = file.read(8)
    if not header.startswith(_TIFF):
        return
    tags = TiffImagePlugin.ImageFileDirectory_v2(header)
    try:
        file.seek(tags.next)
        tags.load(file)
        samples = tags.get(_SAMPLE_FORMAT, ())
    except (OSError, SyntaxError, ValueError, TypeError, LookupError, struct.error) as error:
        raise PictureError("truncated or damaged (a TIFF whose tags cannot be read)") from error
    floats = isinstance(samples, tuple) and _FLOATS in samples
    raise PictureError(unread(FLOATS if floats else "a TIFF in an unusual form"))


def check_single(picture: Image.Image) -> None:
    """Raises PictureError if one frame or page is not all that an open file shows.

    Thumbnails, and what a telephone adds to a JPEG (gain maps, depth), are no pictures of their own.
    """
    if picture.format == "TIFF":
        _check_pages(picture)
    elif picture.format == "MPO":
        entries = picture.mpinfo.get(_MP_ENTRIES, [])  # pyright: ignore[reportAttributeAccessIssue] - of MpoImageFile
        if sum(str(entry["Attribute"]["MPType"]).startswith("Multi-Frame") for entry in entries) > 1:
            raise PictureError("several views in one file: save each as a file of its own")
    elif getattr(picture, "n_frames", 1) > 1:
        raise PictureError("an animation: save the frames that you need as files of their own")


def _check_pages(picture: Image.Image) -> None:
    tags = picture.tag_v2  # pyright: ignore[reportAttributeAccessIssue] - of TiffImageFile
    if _DNG_VERSION in tags or _thumbnail(tags):
        raise PictureError(unread(RAW))
    for page in range(1, MOST_PAGES + 1):
        try:
            picture.seek(page)
        except EOFError:
            break
        if page == MOST_PAGES or not _thumbnail(picture.tag_v2):  # pyright: ignore[reportAttributeAccessIssue]
            raise PictureError("several pages in one file: save each as a file of its own")
    picture.seek(0)


def _thumbnail(tags) -> bool:
    return bool(int(tags.get(_SUBFILE_TYPE, 0)) & _THUMBNAIL)
