"""Leaves out the chunks of a PNG that no pixel needs, because Pillow refuses the whole image for an odd one.

A PNG is a signature and chunks: the length of the content, a kind, the content, and its CRC (PNG specification, third
edition, section 5). Pillow refuses an image with more than 1 MB of compressed text or color profile, and one whose
metadata is damaged.
"""

import io
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from PIL import PngImagePlugin

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PIXELS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND", b"acTL", b"fcTL", b"fdAT")
EXIF, PROFILE, TEXTS = b"eXIf", b"iCCP", (b"tEXt", b"zTXt", b"iTXt")
LARGEST_PROFILE = 2**24  # bytes; the profiles of printers have one to four million
LARGEST_COPY = 2**30  # bytes; a PNG that would need more is read as it is


def readable(file: BinaryIO) -> tuple[BinaryIO, bytes | None]:
    """A PNG without what Pillow would refuse it for, and its color profile. Another file is returned as it is.

    Left out are chunks of other kinds, damaged ones, and long texts. The profile is None if there is none, or none that
    can be unpacked.
    """
    if file.read(len(SIGNATURE)) != SIGNATURE:
        file.seek(0)
        return file, None
    parts, profile, texts = [(0, len(SIGNATURE))], None, 0
    for kind, start, end in _chunks(file):
        if kind in TEXTS:
            text = _unpack(file, kind, start, end, PngImagePlugin.MAX_TEXT_CHUNK)
            texts += len(text or b"")
            if text is not None and texts < PngImagePlugin.MAX_TEXT_MEMORY:
                parts.append((start, end))
        elif kind == PROFILE:
            profile = _unpack(file, kind, start, end, LARGEST_PROFILE)
        elif kind in PIXELS or (kind == EXIF and _content(file, kind, start, end) is not None):
            parts.append((start, end))
    file.seek(0)
    if sum(end - start for start, end in parts) > LARGEST_COPY:
        return file, profile
    return _join(file, parts), profile


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """The kind of each chunk, and where it begins and ends in the file, up to the last one."""
    start, kind = len(SIGNATURE), b""
    while kind != b"IEND" and file.seek(start) == start and len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        yield kind, start, start + 12 + length
        start += 12 + length


def _content(file: BinaryIO, kind: bytes, start: int, end: int) -> bytes | None:
    """The content of a chunk of metadata; None if it is damaged or very long."""
    if end - start > LARGEST_PROFILE:
        return None
    file.seek(start + 8)
    content, crc = file.read(end - start - 12), file.read(4)
    return content if crc == struct.pack(">I", zlib.crc32(kind + content)) else None


def _unpack(file: BinaryIO, kind: bytes, start: int, end: int, most: int) -> bytes | None:
    """The text or profile in a chunk; None if it is damaged or has ``most`` bytes and more."""
    try:
        _, value = (_content(file, kind, start, end) or b"").split(b"\0", 1)
        packed, method = kind != b"tEXt", value[:1]
        if kind == b"iTXt":
            packed, method = value[0] == 1, value[1:2]
            value = value[2:].split(b"\0", 2)[2]  # after the language and the translated keyword
        elif packed:
            value = value[1:]
        if packed and method != b"\0":
            return None
        value = zlib.decompressobj().decompress(value, most) if packed else value
    except (ValueError, IndexError, zlib.error):
        return None
    return value if len(value) < most else None


def _join(file: BinaryIO, parts: list[tuple[int, int]]) -> BinaryIO:
    """The bytes from the first to the second number of each part, as a file; what was cut stays cut."""
    joined = io.BytesIO()
    for start, end in parts:
        file.seek(start)
        joined.write(file.read(end - start))
    joined.seek(0)
    return joined
