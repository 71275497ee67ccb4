"""Keys of experiments and of people: a pass phrase is one key on every system, and its check value is scrypt."""

import codecs
import unicodedata

import numpy as np
import pytest
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from hypothesis import given
from hypothesis import strategies as st

from masquerade.core import keys
from masquerade.core.errors import KeyFormatError

KINDS = [keys.Digits(6), keys.Bits(16), keys.Secret()]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)


@kinds
def test_experiment_keys_follow_from_seed_and_purpose(kind):
    assert kind.experiment(1) == kind.experiment(1)
    wrong = {kind.experiment(seed, "wrong", number) for seed in range(5) for number in range(5)}
    assert len(wrong) > 20
    assert {len(key) for key in wrong} == {len(kind.experiment(0))}


@kinds
def test_near_keys_differ_in_one_place(kind):
    key = kind.experiment(7)
    near_keys = set()
    for number in range(10):
        for near in kind.near(key, number).values():
            assert len(near) == len(key)
            assert sum(a != b for a, b in zip(near, key, strict=True)) == 1
            near_keys.add(near)
    assert len(near_keys) == 10, "another number makes another mistake"


def test_one_value_a_different_key_is_computed():
    computed = []

    def of(key):
        computed.append(key)
        return np.array([len(key)])

    assert keys.stack_per_key([b"a", b"bc", b"a"], of).tolist() == [[1], [2], [1]]
    assert computed == [b"a", b"bc"]
    with pytest.raises(KeyFormatError, match="a key for each image"):
        keys.stack_per_key(None, of)


@pytest.mark.parametrize("secret", [b"12345", b"1234567", b"12345a", b"", b"\xb2" * 6])
def test_other_secrets_are_refused_without_repeating_them(secret):
    with pytest.raises(KeyFormatError, match="6 digits") as raised:
        keys.Digits(6).of(secret)
    assert not secret or secret.decode("latin-1") not in str(raised.value)
    assert keys.Digits(6).of(b"012345") == b"012345"


def test_scrypt_derives_32_bytes_from_a_secret_of_any_length():
    for secret in (b"correct horse", b"x" * 10_000):
        expected = Scrypt(salt=b"masquerade key", length=32, n=2**15, r=8, p=1).derive(secret)
        assert keys.Secret().of(secret) == expected
        assert keys.Bits(16).of(secret) == expected[:2]
    with pytest.raises(KeyFormatError, match="shorter than 8"):
        keys.Secret().of(b"1234567")


def test_expansion_is_hkdf():
    # RFC 5869, test case 3: zero-length salt and info
    assert keys.expand(b"\x0b" * 22, 42, "").hex() == (
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    )
    assert keys.expand(b"k" * 32, 16, "one") != keys.expand(b"k" * 32, 16, "two")


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
