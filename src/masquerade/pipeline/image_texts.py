"""What an anonymized image states, in texts of its PNG and in the report beside it: salt, check of the key, provenance.

Without a salt all images under one key have the key's change in common, by which they can be linked. A salt is drawn
for each face and is no secret. The key itself is in no file; beside the salt stands a check, by which `recover` tells
a wrong key. The provenance tag is method, variant, scale and networks: a key brings the face back with these networks
alone, and others draw somebody else without any sign of it. The columns of one row:

    salt: 00112233445566778899aabbccddeeff    check: scrypt 0123456789abcdef    maker: fit/default photo 0f3a1c...

A PNG may also hold a record of the original face, sealed under the key of the image (core/sealing.py).
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from masquerade.core import fingerprints, keys, seeding
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.core.keys import Keys
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.names import files as files_below
from masquerade.faces.photographs.names import folder_of
from masquerade.methods import Resources
from masquerade.pipeline import anonymization
from masquerade.pipeline.outputs import REPORT, read_report

SALT = "salt"  # the column in an archive and in the report
SALT_KEYWORD = "masquerade salt"  # of the text in the PNG
CHECK = "check"  # the column
CHECK_KEYWORD = "masquerade check"  # of the text in the PNG
UNCHECKED = "none"  # the check of an image that says nothing about its key
SCRYPT = "scrypt"  # before the digits of a check: a spreadsheet takes digits alone for a number
LENGTH = 16  # bytes, so that no two images get the same (RFC 8018, section 4.1, asks for 8 or more)
RECORD = anonymization.RECORD  # the column in an archive: the sealed record of a face, in base64
RECORD_KEYWORD = "masquerade record"  # of the text in the PNG
MAKER = "maker"  # the column in the report
MAKER_KEYWORD = "masquerade maker"  # of the text in the PNG
_TEXT = re.compile(r"(?P<method>[a-z0-9_]+)/(?P<variant>[a-z0-9_]+) (?P<scale>[a-z0-9_]+) (?P<networks>[0-9a-f]{16}|-)")


def draw_salt(seed: int | None, name: str) -> str:
    """A new salt in hexadecimal digits: from the operating system, or for an experiment from its ``seed``.

    One that a spreadsheet takes for a number, such as 12e45, is drawn again.
    """
    draw = secrets.token_bytes if seed is None else seeding.make_generator(seed, SALT, name).bytes
    while re.fullmatch("[0-9]+e?[0-9]+", salt := draw(LENGTH).hex()):
        pass
    return salt


def states_provenance(texts: Mapping[str, str]) -> bool:
    """Whether the ``texts`` of a PNG state how it was made; then a salt is there, or it has none."""
    return SALT_KEYWORD in texts or MAKER_KEYWORD in texts


def read_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Salt, check, provenance tag and record in the ``texts`` of a PNG, under their columns; '' for what is missing."""
    keywords = {SALT: SALT_KEYWORD, CHECK: CHECK_KEYWORD, MAKER: MAKER_KEYWORD, RECORD: RECORD_KEYWORD}
    return {column: texts.get(keyword, "") for column, keyword in keywords.items()}


def check_known(salt: str, without: bool) -> None:
    """Raises PictureError if a salt is lost or damaged: the face would become somebody else without any sign of it.

    ``without``: the image has none, if none is known.
    """
    if not (salt or without):
        raise PictureError(
            "its salt is not known: restore its name and the report.csv beside it, or add --no-salt if it was "
            "anonymized without one"
        )
    if salt and not re.fullmatch(f"[0-9a-f]{{{2 * LENGTH}}}", salt):
        raise PictureError("its salt is damaged, so its key is not known")


class PersonalKey:
    """The key of a person, who gives ``secret``, for a method with keys of ``kind``.

    An image with a check (`CHECK`) has the key of the secret's normal form; an older one that of the secret as typed.
    """

    def __init__(self, kind: Keys, secret: bytes):
        self._kind, self._secret = kind, secret
        self._of = cache(kind.of)

    @property
    def key(self) -> bytes:
        """The key of new images. Raises KeyFormatError."""
        return self._of(keys.normalize(self._secret))

    def draw_facts(
        self, seed: int | None, salted: bool, checked: bool
    ) -> Callable[[Mapping[str, str]], dict[str, str]]:
        """Gives the salt and the check of a new image from its row. ``seed``: of `draw_salt`. Raises KeyFormatError."""
        _ = self.key  # one that cannot be used is refused before a photograph is read

        def facts(row: Mapping[str, str]) -> dict[str, str]:
            salt = draw_salt(seed, row["id"]) if salted else ""
            return {SALT: salt, CHECK: self.check(salt) if checked else UNCHECKED}

        return facts

    def check(self, salt: str) -> str:
        """The check of an image with this salt: `UNCHECKED` without a salt, and for keys that are few.

        Few keys can be tried one after the other, and a check would show the right one to everybody.
        """
        few = self._kind.count is not None
        return UNCHECKED if few or not salt else f"{SCRYPT} {keys.compute_check(self.key, bytes.fromhex(salt))}"

    def verify(self, salt: str, check: str) -> None:
        """Raises PictureError if the check of an image says that the key is wrong."""
        if check in ("", UNCHECKED):
            return
        if not re.fullmatch(f"{SCRYPT} [0-9a-f]{{16}}", check):
            raise PictureError("the check of its key is damaged")
        if check != self.check(salt):
            raise PictureError("wrong key")

    def of_faces(self, faces: Faces) -> list[bytes]:
        """The key of each face, by the columns `SALT` and `CHECK`: of the person or, with a salt, derived from both."""
        of_faces = []
        for salt, check in faces.index[[SALT, CHECK]].itertuples(index=False):
            key = self.key if check else self._of(keys.strip_line_ends(self._secret))
            of_faces.append(self._kind.add_salt(key, bytes.fromhex(salt)) if salt else key)
        return of_faces


@dataclass(frozen=True)
class ProvenanceTag:
    """``networks``: 16 digits of a hash of the checkpoints; ``-`` for a method without any."""

    method: str
    variant: str
    scale: str
    networks: str

    def __str__(self) -> str:
        return f"{self.method}/{self.variant} {self.scale} {self.networks}"

    def check(self, text: str) -> None:
        """Raises PictureError if ``text``, what an image states, is another tag. '' states nothing."""
        if text and (other := parse_tag(text)) != self:
            raise PictureError(
                f"'{other or text[:60]}' anonymized it, and this is '{self}': it would become somebody else"
            )


def compute_tag(method: str, variant: str, scale: str, resources: Resources) -> ProvenanceTag:
    """The tag of the results of a method with these files."""
    paths = sorted({*resources.backbones.values(), *filter(None, [resources.checkpoint])})
    digest = hashlib.sha256("".join(fingerprints.md5(path) for path in paths).encode()).hexdigest()[:16]
    return ProvenanceTag(method, variant, scale, digest if paths else "-")


def parse_tag(text: str) -> ProvenanceTag | None:
    """The tag that an image or a report states; None for any other text."""
    stated = _TEXT.fullmatch(text)
    return ProvenanceTag(**stated.groupdict()) if stated else None


def find_tag(pictures: Path) -> ProvenanceTag | None:
    """The tag of the first image of a folder that states one, in the report or in its PNG; None if none does."""
    folder = folder_of(pictures)
    stated = chain((row.get(MAKER, "") for row in read_report(folder / REPORT)), _read_texts(pictures, folder))
    return next((tag for text in stated if (tag := parse_tag(text))), None)


def _read_texts(pictures: Path, folder: Path) -> Iterator[str]:
    for path in files_below(pictures):
        with suppress(PictureError):  # no image: the report of the recovery lists it
            yield decoding.texts(path, folder, decoding.PILLOW_LIMIT).get(MAKER_KEYWORD, "")
