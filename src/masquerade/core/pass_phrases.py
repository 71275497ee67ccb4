"""One form of a pass phrase for every system on which it is typed, and a value by which a key proves right or wrong."""

import codecs
import hashlib
import unicodedata


def normal_form(secret: bytes) -> bytes:
    """The form of a pass phrase that does not depend on the system on which it was typed.

    Text in UTF-8, or in UTF-16 with its byte order mark, becomes UTF-8 without any such mark. Blanks become spaces and
    letters with accents are composed (RFC 8265, OpaqueString: category Zs, NFC). Line ends become LF, and white space
    at both ends goes. Other bytes lose the line ends behind them alone, as `as_typed`.
    """
    utf_16 = secret.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = secret.decode("utf-16" if utf_16 else "utf-8").replace("\ufeff", "")
    except UnicodeDecodeError:
        return as_typed(secret)
    spaced = "".join(" " if unicodedata.category(sign) == "Zs" else sign for sign in text)
    return unicodedata.normalize("NFC", "\n".join(spaced.splitlines())).strip().encode()


def as_typed(secret: bytes) -> bytes:
    """The form that versions before the check value took: the bytes without the line ends behind them."""
    return secret.rstrip(b"\r\n")


def check_value(key: bytes, salt: bytes) -> str:
    """16 hexadecimal digits by which a key proves right or wrong: scrypt as in `keys.stretched`, with a picture's salt.

    Whoever has them tests a guess of the pass phrase in about 0.2 s, and each picture anew. They do not link pictures.
    """
    return hashlib.scrypt(key, salt=b"masquerade check" + salt, n=2**15, r=8, p=1, maxmem=2**26, dklen=8).hex()
