"""The salts of pictures: drawn for each face, kept in its PNG and in the report, and found again for its recovery.

Without a salt all pictures under one key have the key's change in common, by which they can be linked. A salt is no
secret. The key itself is in no file; beside the salt stands a check, by which `recover` tells a wrong key.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from functools import cache

from masquerade.core import keys, seeding
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.core.keys import Keys
from masquerade.pipeline import provenance_tag

SALT = "salt"  # the column in an archive and in the report
KEYWORD = "masquerade salt"  # of the text in the PNG
CHECK = "check"  # the column
CHECK_KEYWORD = "masquerade check"  # of the text in the PNG
UNCHECKED = "none"  # the check of a picture that says nothing about its key
SCRYPT = "scrypt"  # before the digits of a check: a spreadsheet takes digits alone for a number
LENGTH = 16  # bytes, so that no two pictures get the same (RFC 8018, section 4.1, asks for 8 or more)


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
    return KEYWORD in texts or provenance_tag.KEYWORD in texts


def read_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Salt, check and provenance tag in the ``texts`` of a PNG, under their columns; '' for each that is missing."""
    keywords = {SALT: KEYWORD, CHECK: CHECK_KEYWORD, provenance_tag.MAKER: provenance_tag.KEYWORD}
    return {column: texts.get(keyword, "") for column, keyword in keywords.items()}


def check_known(salt: str, without: bool) -> None:
    """Raises PictureError if a salt is lost or damaged: the face would become somebody else without any sign of it.

    ``without``: the picture has none, if none is known.
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

    A picture with a check (`CHECK`) has the key of the secret's normal form; an older one that of the secret as typed.
    """

    def __init__(self, kind: Keys, secret: bytes):
        self._kind, self._secret = kind, secret
        self._of = cache(kind.of)

    @property
    def key(self) -> bytes:
        """The key of new pictures. Raises KeyFormatError."""
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
        """The check of a picture with this salt: `UNCHECKED` without a salt, and for keys that are few.

        Few keys can be tried one after the other, and a check would show the right one to everybody.
        """
        few = self._kind.count is not None
        return UNCHECKED if few or not salt else f"{SCRYPT} {keys.compute_check(self.key, bytes.fromhex(salt))}"

    def verify(self, salt: str, check: str) -> None:
        """Raises PictureError if the check of a picture says that the key is wrong."""
        if check in ("", UNCHECKED):
            return
        if not re.fullmatch(f"{SCRYPT} [0-9a-f]{{16}}", check):
            raise PictureError("the check of its key is damaged")
        if check != self.check(salt):
            raise PictureError("wrong key")

    def of_faces(self, faces: Faces) -> list[bytes]:
        """The key of each face, by the columns `SALT` and `CHECK`: of the person or, with a salt, derived from both."""
        tried = []
        for salt, check in faces.index[[SALT, CHECK]].itertuples(index=False):
            key = self.key if check else self._of(keys.strip_line_ends(self._secret))
            tried.append(self._kind.add_salt(key, bytes.fromhex(salt)) if salt else key)
        return tried
