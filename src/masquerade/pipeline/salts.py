"""The salts of pictures: drawn for each face, kept in its PNG and in the report, and found again for its recovery.

Without a salt all pictures under one key have the key's change in common, by which they can be linked. A salt is no
secret. The key itself is in no file.
"""

import csv
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from masquerade.core import seeding
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.core.keys import Keys

SALT = "salt"  # the column in an archive and in the report
KEYWORD = "masquerade salt"  # of the text in the PNG
LENGTH = 16  # bytes, so that no two pictures get the same (RFC 8018, section 4.1, asks for 8 or more)


def drawn(seed: int | None, name: str) -> str:
    """A new salt in hexadecimal digits: from the operating system, or for an experiment from its ``seed``."""
    return (secrets.token_bytes(LENGTH) if seed is None else seeding.generator(seed, SALT, name).bytes(LENGTH)).hex()


def found(texts: dict[str, str], listed: str) -> str:
    """The salt of a picture, from the ``texts`` of its PNG or else as ``listed`` in the report; '' for none.

    Raises PictureError if it cannot be a salt: another key gives the face of somebody else, without any sign of it.
    """
    salt = texts.get(KEYWORD, listed)
    if salt and not re.fullmatch(f"[0-9a-f]{{{2 * LENGTH}}}", salt):
        raise PictureError("its salt is damaged, so its key is not known")
    return salt


def listed(report: Path, column: str = SALT) -> dict[str, str]:
    """Name of the picture -> its salt, or another ``column`` of the ``report`` of an earlier run; {} without one."""
    if not report.is_file():
        return {}
    with report.open(encoding="utf-8", errors="replace", newline="") as file:
        return {row.get("output") or "": row.get(column) or "" for row in csv.DictReader(file)}


def keys_of(kind: Keys, key: bytes) -> Callable[[Faces], list[bytes]]:
    """A function that gives the key of each face: that of the person or, for a face with a salt, derived from both."""

    def derived(faces: Faces) -> list[bytes]:
        salts = faces.index[SALT] if SALT in faces.index else [""] * len(faces)
        return [kind.salted(key, bytes.fromhex(salt)) if salt else key for salt in salts]

    return derived
