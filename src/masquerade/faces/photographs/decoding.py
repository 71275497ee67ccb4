"""Decodes a photograph into uint8 RGB pixels, or raises PictureError. Every file is treated as hostile input."""

import hashlib
import io
import stat
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageCms, ImageOps

from masquerade.core.errors import PictureError
from masquerade.faces.photographs import png_chunks

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP")  # no format whose reader starts another program (EPS)
PILLOW_LIMIT = 178.0  # megapixels: Pillow itself refuses to open more
LONGEST = 32_766  # pixels: OpenCV cannot crop an image with a longer side
RAW = "a camera raw file, which is not read: save what you need of it as JPEG or PNG"
TIFF = (b"II*\0", b"MM\0*")
RAW_ENDINGS = {".arw", ".cr2", ".dcr", ".dng", ".erf", ".iiq", ".kdc", ".mef", ".mos", ".nef", ".nrw", ".orf", ".pef",
               ".raw", ".rw2", ".sr2", ".srf", ".srw", ".3fr"}  # fmt: skip
"""Of raw files that are TIFFs, whose first page may be a thumbnail."""
MOST_PAGES = 32  # of a TIFF, thumbnails included; a hostile file has millions
_THUMBNAIL = 1  # bit of the TIFF tag NewSubfileType: a smaller copy of another image
_SUBFILE_TYPE, _DNG_VERSION, _MP_ENTRIES = 254, 50706, 0xB002
LOCKED_FOLDER = "a folder that may not be read, so its files are not known"
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")
_PLAIN = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
_SPACES = {
    b"RGB ": ("RGB", ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX")),
    b"GRAY": ("L", ("1", "L", "LA")),
    b"CMYK": ("CMYK", ("CMYK",)),
}
"""Color space of an ICC profile -> the mode that it converts, and the modes of the images to which it applies."""
_METADATA = ("exif", "xmp", "XML:com.adobe.xmp", "Raw profile type exif")
"""Where Pillow keeps an orientation besides `Image.getexif`."""
_GRAY_TAG, _WHITE_IS_ZERO = 262, 0  # of a TIFF: PhotometricInterpretation
GRAY = 8  # levels; the channels of a gray photograph differ by less, also after JPEG, WebP and a color profile
# The errors of Pillow's readers on damaged or malicious files, as its fuzzers and ours found them.
_BROKEN = (
    AttributeError,
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    EOFError,
    LookupError,
    ArithmeticError,
    struct.error,
    MemoryError,
)


def read(path: Path, root: Path, megapixels: float) -> np.ndarray:
    """Pixels of a photograph: uint8 (H, W, 3) sRGB, upright as its EXIF orientation says.

    A file with several frames or pages is refused. An embedded color profile is applied in every mode.
    Transparent parts become white, and 16-bit gray becomes 8-bit gray. Of the metadata, the orientation and the profile
    alone are read; they are ignored if they cannot be used, and the rest may be odd or damaged. The file must be inside
    the folder ``root``, also after links are followed. ``megapixels`` limits the size in the header, which is checked
    before a pixel is decoded.
    Raises PictureError; its text is the reason in the index of the archive.
    """
    with _open(path, root) as file:
        return decode(file, megapixels)


def texts(path: Path, root: Path, megapixels: float) -> dict[str, str]:
    """The texts in the metadata of a PNG, by keyword; {} for other formats. Guards and errors as in `read`.

    No pixel is decoded.
    """
    with _open(path, root) as file, _name_errors(megapixels):
        readable, _ = png_chunks.readable(file)
        with Image.open(readable, formats=FORMATS) as picture:
            metadata = picture.info if picture.format == "PNG" else {}  # what stands before the pixels
            return {str(keyword): str(text) for keyword, text in metadata.items() if isinstance(text, str)}


def sha256(path: Path, root: Path) -> bytes:
    """The SHA-256 of a photograph's file; empty for what `read` refuses before it looks at the content."""
    try:
        with _open(path, root) as file:
            return hashlib.file_digest(file, "sha256").digest()
    except PictureError:
        return b""


@contextmanager
def _open(path: Path, root: Path) -> Iterator[io.BufferedReader]:
    _check_file(path, root)
    try:
        with path.open("rb") as file:
            if path.suffix.lower() in RAW_ENDINGS and file.read(4) in TIFF:
                raise PictureError(RAW)
            file.seek(0)
            yield file
    except PermissionError as error:
        raise PictureError("no permission to read the file") from error
    except OSError as error:
        raise PictureError(f"truncated or damaged ({_one_line(error)})") from error


def decode(file: BinaryIO, megapixels: float) -> np.ndarray:
    """Pixels of an open file, as `read` gives them. Raises PictureError."""
    with _name_errors(megapixels):
        readable, profile = png_chunks.readable(file)
        with Image.open(readable, formats=FORMATS) as picture:
            if profile:
                picture.info["icc_profile"] = profile
            _check(picture, megapixels)
            return _upright_pixels(picture, _is_inverted(picture))


def pixels(picture: Image.Image, megapixels: float) -> np.ndarray:
    """Pixels of an open image, which is not changed, as `read` gives them. Raises PictureError."""
    with _name_errors(megapixels):
        _check(picture, megapixels)
        return _upright_pixels(picture.copy(), _is_inverted(picture))  # a copy has no tags


def is_gray(pixels: np.ndarray) -> bool:
    """Whether a photograph, uint8 (H, W, 3), is black and white: in no pixel do two channels differ by GRAY levels.

    A photograph in one tint, such as sepia, is not.
    """
    few = pixels[::16, ::16]  # answers for most photographs in color
    return all(int(np.ptp(part, axis=-1).max()) < GRAY for part in (few, pixels))


def as_gray(pixels: np.ndarray) -> np.ndarray:
    """The luma (ITU-R BT.601) of an image uint8 (H, W, 3), in three equal channels."""
    return np.asarray(Image.fromarray(pixels).convert("L").convert("RGB"))


@contextmanager
def _name_errors(megapixels: float) -> Iterator[None]:
    """The errors of Pillow's readers become PictureErrors."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns about the size; the limit here is stricter
            yield
    except PictureError:
        raise
    except Image.UnidentifiedImageError as error:
        raise PictureError(f"not an image in a format that is read ({', '.join(FORMATS)})") from error
    except Image.DecompressionBombError as error:
        raise PictureError(f"larger than {megapixels:g} megapixels") from error
    except _BROKEN as error:
        raise PictureError(f"truncated or damaged ({_one_line(error)})") from error


def _check_file(path: Path, root: Path) -> None:
    """Raise PictureError for anything but a regular file below ``root``: a read from a pipe would never return."""
    try:
        if not path.resolve(strict=True).is_relative_to(root.resolve()):
            raise PictureError("a link that leaves the folder")
        if stat.S_ISDIR(path.lstat().st_mode):
            raise PictureError(LOCKED_FOLDER)
        status = path.stat()
    except PermissionError as error:
        raise PictureError("no permission to read the file") from error
    except (OSError, RuntimeError) as error:  # a broken link, a circle of links
        raise PictureError("a link that leads nowhere, or a file that has gone") from error
    if not stat.S_ISREG(status.st_mode):
        raise PictureError("not a regular file")
    if status.st_size == 0:
        raise PictureError("the file is empty")


def _check(picture: Image.Image, megapixels: float) -> None:
    """Raises PictureError for an image that is too large, or of a kind that is not read."""
    width, height = picture.size
    if width * height > megapixels * 1e6:
        raise PictureError(f"{width} x {height} pixels, larger than {megapixels:g} megapixels")
    if max(width, height) > LONGEST:
        raise PictureError(f"{width} x {height} pixels, a side longer than {LONGEST} pixels")
    if picture.mode not in _PLAIN + _SIXTEEN_BITS:
        raise PictureError(f"an image in the color mode {picture.mode}, which is not read: save it as JPEG or PNG")
    _check_single(picture)


def _check_single(picture: Image.Image) -> None:
    """Raises PictureError if one frame or page is not all that an open file shows.

    Thumbnails, and what a telephone adds to a JPEG (gain maps, depth), are no images of their own.
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
    if _DNG_VERSION in tags or _is_thumbnail(tags):
        raise PictureError(RAW)
    for page in range(1, MOST_PAGES + 1):
        try:
            picture.seek(page)
        except EOFError:
            break
        if page == MOST_PAGES or not _is_thumbnail(picture.tag_v2):  # pyright: ignore[reportAttributeAccessIssue]
            raise PictureError("several pages in one file: save each as a file of its own")
    picture.seek(0)


def _is_thumbnail(tags) -> bool:
    return bool(int(tags.get(_SUBFILE_TYPE, 0)) & _THUMBNAIL)


def _is_inverted(picture: Image.Image) -> bool:
    """Whether 0 is white in it, of which Pillow takes no notice in a TIFF with 16 bits."""
    tags = getattr(picture, "tag_v2", {})
    return picture.mode in _SIXTEEN_BITS and tags.get(_GRAY_TAG) == _WHITE_IS_ZERO


def _upright_pixels(picture: Image.Image, inverted: bool) -> np.ndarray:
    _keep_orientation(picture)
    picture.load()
    return np.asarray(_to_rgb(ImageOps.exif_transpose(picture), inverted))


def _keep_orientation(picture: Image.Image) -> None:
    """Keep the orientation alone: Pillow writes the metadata anew when it turns an image, and fails at an odd tag."""
    try:
        orientation = picture.getexif().get(ExifTags.Base.Orientation, 1)
    except _BROKEN:
        orientation = 1
    exif = picture.getexif()  # the same object, which `exif_transpose` asks
    for tag in list(exif):
        del exif[tag]
    for key in _METADATA:
        picture.info.pop(key, None)
    if orientation in range(1, 9):  # also a fraction such as 6/1
        exif[ExifTags.Base.Orientation] = int(orientation)


def _to_rgb(picture: Image.Image, inverted: bool) -> Image.Image:
    """sRGB, 8 bits, no alpha."""
    profile = picture.info.get("icc_profile")
    if picture.mode in _SIXTEEN_BITS:
        gray = np.rint(np.asarray(picture).astype(np.float32) / 257.0).astype(np.uint8)  # 65535 -> 255
        picture = Image.fromarray(255 - gray if inverted else gray)
    alpha = picture.convert("RGBA").getchannel("A") if picture.has_transparency_data else None
    colors = _follow_profile(picture, profile) if profile else picture.convert("RGB")
    if alpha is not None:
        white = Image.new("RGB", colors.size, "white")
        colors = Image.composite(colors, white, alpha)
    return colors


def _follow_profile(picture: Image.Image, profile: bytes) -> Image.Image:
    """The image in sRGB by its embedded ICC profile; by Pillow's own rules if the profile cannot be used."""
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        mode, modes = _SPACES[profile[16:20]]
        if picture.mode not in modes:
            return picture.convert("RGB")
        colors = picture.convert(mode)
        converted = ImageCms.profileToProfile(colors, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
        assert converted is not None  # it is None only for a conversion in place
        return converted
    except (ImageCms.PyCMSError, OSError, TypeError, ValueError, LookupError):
        return picture.convert("RGB")


def _one_line(error: Exception) -> str:
    """The text of the error, or its class name. Without control characters, because the file can choose the text."""
    text = "".join(sign for sign in " ".join(str(error).split()) if sign.isprintable())
    return text[:120] or type(error).__name__


def resize_square(picture: np.ndarray, size: int) -> np.ndarray:
    """A square image at uint8 (size, size, 3). Raises PictureError if it is not square."""
    import cv2

    height, width = picture.shape[:2]
    if height != width:
        raise PictureError(f"{width} x {height} pixels is not square, so it is no aligned face crop")
    if width == size:
        return picture
    return cv2.resize(picture, (size, size), interpolation=cv2.INTER_AREA if width > size else cv2.INTER_CUBIC)
