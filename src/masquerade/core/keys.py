"""The kinds of keys: how a key is drawn for an experiment, derived from a person's secret, and slightly changed.

A key is bytes in memory. It is written to no log, file name, table, run or parameter. The key of an experiment follows
from its seed, so anybody can derive it: it measures a method and protects nobody.
"""

import codecs
import hashlib
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from masquerade.core import seeding
from masquerade.core.errors import KeyFormatError


class Keys(ABC):
    """The keys of a method."""

    @property
    @abstractmethod
    def count(self) -> int | None:
        """The number of possible keys, or None if there are too many to try."""

    @abstractmethod
    def experiment(self, seed: int, *purpose: object) -> bytes:
        """A key of an experiment; it depends only on ``seed`` and ``purpose``, such as the id of an image."""

    @abstractmethod
    def of(self, secret: bytes) -> bytes:
        """The key of a person's secret. Raises KeyFormatError, which does not repeat the secret."""

    @abstractmethod
    def add_salt(self, key: bytes, salt: bytes) -> bytes:
        """The key of one image: it follows from a person's ``key`` and the image's ``salt``, which is no secret.

        Images under one key have the same change in common, so they can be linked; salted ones have not.
        """

    @abstractmethod
    def near(self, key: bytes, number: int = 0) -> dict[str, bytes]:
        """Keys that differ slightly from ``key``: name of the difference -> key.

        Another ``number`` gives another key, until every digit or bit had its turn.
        """


@dataclass(frozen=True)
class Digits(Keys):
    """Decimal digits, as ASCII: the password of cao21, section 5.1."""

    length: int

    @property
    def count(self) -> int:
        return 10**self.length

    def experiment(self, seed: int, *purpose: object) -> bytes:
        return b"%0*d" % (self.length, _draw(seed, *purpose).integers(self.count))

    def of(self, secret: bytes) -> bytes:
        if len(secret) != self.length or not secret.isdigit():
            raise KeyFormatError(f"The key of this method must be {self.length} digits and nothing else.")
        return secret

    def add_salt(self, key: bytes, salt: bytes) -> bytes:
        number = int.from_bytes(_with_salt(key, salt, 32), "big")  # 256 bits: the remainder is as good as uniform
        return b"%0*d" % (self.length, number % self.count)

    def near(self, key: bytes, number: int = 0) -> dict[str, bytes]:
        turns, place = divmod(number, self.length)
        place = self.length - 1 - place
        digit = b"%d" % ((key[place] - ord("0") + 1 + turns % 9) % 10)
        return {"digit": key[:place] + digit + key[place + 1 :]}


@dataclass(frozen=True)
class Bits(Keys):
    """``length`` bits, a multiple of 8, as bytes: the password of FIT (Gu et al. 2020, section 4)."""

    length: int

    @property
    def count(self) -> int | None:
        return 2**self.length

    def experiment(self, seed: int, *purpose: object) -> bytes:
        return _draw(seed, *purpose).bytes(self.length // 8)

    def of(self, secret: bytes) -> bytes:
        return stretch(secret)[: self.length // 8]

    def add_salt(self, key: bytes, salt: bytes) -> bytes:
        return _with_salt(key, salt, self.length // 8)

    def near(self, key: bytes, number: int = 0) -> dict[str, bytes]:
        return {"bit": _flip_bit(key, number)}


@dataclass(frozen=True)
class Secret(Bits):
    """32 bytes that a key derivation function makes of a secret of at least 8 bytes. They are too many to try."""

    length: int = 256

    @property
    def count(self) -> None:
        return None


def stretch(secret: bytes) -> bytes:
    """A 32-byte key from a pass phrase or the content of a key file, by scrypt (RFC 7914; 32 MiB, about 0.1 s).

    The salt of scrypt is fixed, so that the slow step runs once for all images; each image's own salt comes after
    it (`Keys.add_salt`). One table of guesses therefore serves against everybody: the secret must be hard to guess.
    Raises KeyFormatError if it is shorter than 8 bytes.
    """
    if len(secret) < 8:
        raise KeyFormatError("The key is shorter than 8 bytes and easy to guess. Use a longer one.")
    return hashlib.scrypt(secret, salt=b"masquerade key", n=2**15, r=8, p=1, maxmem=2**26, dklen=32)


def expand(key: bytes, length: int, purpose: str) -> bytes:
    """``length`` pseudorandom bytes (at most 8,160) from a key, by HKDF-SHA256 (RFC 5869); they differ by purpose."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(hashes.SHA256(), length, salt=None, info=purpose.encode()).derive(key)


def _with_salt(key: bytes, salt: bytes, length: int) -> bytes:
    # The word belongs to the format of the written files: another one would close every image that was salted before.
    return expand(key, length, f"picture {salt.hex()}")


def _draw(seed: int, *purpose: object) -> np.random.Generator:
    return seeding.make_generator(seed, "key", *purpose)


def stack_per_key(keys: Sequence[bytes] | None, of: Callable[[bytes], np.ndarray]) -> np.ndarray:
    """What ``of`` gives for each key, stacked: (N, ...). It is called once for each different key.

    Raises KeyFormatError without keys.
    """
    if not keys:
        raise KeyFormatError("This method needs a key for each image, and there is none. Give one.")
    results = {key: of(key) for key in dict.fromkeys(keys)}
    return np.stack([results[key] for key in keys])


def _flip_bit(key: bytes, number: int) -> bytes:
    """The key with one bit changed: the last for ``number`` 0, then the one before it, and so on."""
    number %= 8 * len(key)
    return (int.from_bytes(key, "big") ^ (1 << number)).to_bytes(len(key), "big")


def normalize(secret: bytes) -> bytes:
    """The form of a pass phrase that does not depend on the system on which it was typed.

    Text in UTF-8, or in UTF-16 with its byte order mark, becomes UTF-8 without any such mark. Blanks become spaces and
    letters with accents are composed (RFC 8265, OpaqueString: category Zs, NFC). Line ends become LF, and white space
    at both ends goes. Other bytes lose the line ends behind them alone, as `strip_line_ends`.
    """
    utf_16 = secret.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = secret.decode("utf-16" if utf_16 else "utf-8").replace("\ufeff", "")
    except UnicodeDecodeError:
        return strip_line_ends(secret)
    spaced = "".join(" " if unicodedata.category(sign) == "Zs" else sign for sign in text)
    return unicodedata.normalize("NFC", "\n".join(spaced.splitlines())).strip().encode()


def strip_line_ends(secret: bytes) -> bytes:
    """The form that versions before the check value took: the bytes without the line ends behind them."""
    return secret.rstrip(b"\r\n")


def compute_check(key: bytes, salt: bytes) -> str:
    """16 hexadecimal digits by which a key proves right or wrong: scrypt as in `keys.stretch`, with an image's salt.

    Whoever has them tests a guess of the pass phrase in about 0.2 s, and each image anew. They do not link images.
    """
    return hashlib.scrypt(key, salt=b"masquerade check" + salt, n=2**15, r=8, p=1, maxmem=2**26, dklen=8).hex()
