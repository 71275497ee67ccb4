"""A pass phrase is one key on every system, and its check value is scrypt."""

import codecs
import unicodedata

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from hypothesis import given
from hypothesis import strategies as st

from masquerade.core import keys

phrases = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BLANKS = ["", " ", "\n", "\r\n", " \t", "\u00a0"]


@given(phrases, st.sampled_from(BLANKS), st.sampled_from(BLANKS))
def test_a_pass_phrase_has_one_form_on_every_system(phrase, before, after):
    """With and without a byte order mark, in UTF-8 and UTF-16, composed and decomposed, with blanks at its ends."""
    typed = before + phrase + after
    expected = keys.normalize(phrase.encode())
    for accents in ("NFC", "NFD"):
        text = unicodedata.normalize(accents, typed)
        assert keys.normalize(text.encode()) == expected
        assert keys.normalize(text.encode("utf-8-sig")) == expected
        for codec, mark in (("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE)):
            assert keys.normalize(mark + text.encode(codec)) == expected
    assert keys.normalize(expected) == expected


def test_the_normal_form_of_a_pass_phrase_is_written_down():
    assert keys.normalize("\ufeff Cafe\u0301\u00a0au lait \r\n".encode()) == "Caf\u00e9 au lait".encode()
    assert keys.normalize(b"correct horse battery") == b"correct horse battery", "older results open as before"
    assert keys.Digits(6).of(keys.normalize("\ufeff123456 \n".encode())) == b"123456"


@given(st.binary(max_size=40))
def test_bytes_that_are_no_text_are_a_key_as_they_are(content):
    secret = b"\xff" + content.lstrip(b"\xfe")  # no byte order mark
    assert keys.normalize(secret) == keys.strip_line_ends(secret) == secret.rstrip(b"\r\n")


def test_a_check_value_is_scrypt_of_key_and_salt():
    expected = Scrypt(salt=b"masquerade check" + b"s" * 16, length=8, n=2**15, r=8, p=1).derive(b"k" * 32)
    assert keys.compute_check(b"k" * 32, b"s" * 16) == expected.hex()
