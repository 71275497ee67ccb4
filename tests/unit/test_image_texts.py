"""A salt gives each image a key of its own, which nobody derives without the person's key."""

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from masquerade.core import keys
from masquerade.core.errors import KeyFormatError, PictureError
from masquerade.core.images import Faces
from masquerade.pipeline import image_texts
from masquerade.pipeline.image_texts import PersonalKey

KINDS = [keys.Digits(6), keys.Bits(16), keys.Secret()]
SALT = "00112233445566778899aabbccddeeff"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_a_salted_key_is_a_key_of_the_same_kind_and_differs_by_key_and_salt(kind):
    mine, yours = kind.experiment(1), kind.experiment(2)
    many = [kind.add_salt(key, bytes([number]) * 16) for key in (mine, yours) for number in range(20)]
    assert {len(key) for key in many} == {len(mine)}
    assert len(set(many)) > 38, "16 bits and six digits may meet once by chance"
    assert kind.add_salt(mine, b"salt" * 4) == kind.add_salt(mine, b"salt" * 4)
    assert mine not in many


def test_a_salted_key_is_hkdf_of_key_and_salt_and_opens_images_of_earlier_versions():
    expected = HKDF(hashes.SHA256(), 32, salt=None, info=f"picture {SALT}".encode()).derive(b"k" * 32)
    assert keys.Secret().add_salt(b"k" * 32, bytes.fromhex(SALT)) == expected
    # Images of earlier versions open with this key: it must not change.
    assert expected.hex() == "b83834db56dd4d52d553d12ded048d29691efe9b0ec7cd8b424551acbbe609b0"


def test_salted_digits_are_spread_evenly():
    kind = keys.Digits(1)
    drawn = [int(kind.add_salt(b"7", number.to_bytes(16, "big"))) for number in range(2000)]
    counts = np.bincount(drawn, minlength=10)
    assert counts.min() > 150, "200 are expected of each digit; 150 is 3.7 standard deviations below"
    assert counts.max() < 250


def test_salts_repeat_only_with_the_seed_of_an_experiment():
    assert image_texts.draw_salt(None, "a") != image_texts.draw_salt(None, "a")
    assert image_texts.draw_salt(3, "a") == image_texts.draw_salt(3, "a") != image_texts.draw_salt(3, "b")
    assert (
        len(bytes.fromhex(image_texts.draw_salt(None, "a")))
        == len(bytes.fromhex(image_texts.draw_salt(3, "a")))
        == image_texts.LENGTH
    )


def test_a_spreadsheet_takes_no_salt_for_a_number(monkeypatch):
    numbers = iter([bytes.fromhex("12e45678" * 4), bytes.fromhex("12345678" * 4), bytes.fromhex("1e" + "00" * 15)])
    monkeypatch.setattr("secrets.token_bytes", lambda length: next(numbers, bytes.fromhex(SALT)))
    assert image_texts.draw_salt(None, "a") == "12e45678" * 4, "two signs that are no digits make it a word"
    assert image_texts.draw_salt(None, "a") == SALT


def test_a_png_that_states_a_maker_alone_has_no_salt():
    assert image_texts.states_provenance({image_texts.SALT_KEYWORD: SALT})
    assert image_texts.states_provenance({image_texts.MAKER_KEYWORD: "fit/default mini -"})
    assert not image_texts.states_provenance({"Author": "me"})
    read = image_texts.read_texts({image_texts.MAKER_KEYWORD: "m"})
    assert read == {"salt": "", "check": "", "maker": "m", "record": ""}


@pytest.mark.parametrize("salt", ["../etc", SALT[:-1], SALT.upper(), SALT + "\n", SALT + "00", "1.23E+31"])
def test_a_damaged_salt_is_refused(salt):
    with pytest.raises(PictureError, match="its salt is damaged"):
        image_texts.check_known(salt, without=True)


def faces(listed: list[str], checks: list[str]) -> Faces:
    names = [str(number) for number in range(len(listed))]
    return Faces(np.empty(0), pd.DataFrame({"id": names, image_texts.SALT: listed, image_texts.CHECK: checks}))


def test_a_face_with_a_salt_has_a_key_of_its_own():
    listed = ["", "", SALT, SALT[::-1], SALT]
    kind, secret = keys.Secret(), b"correct horse"
    every = PersonalKey(kind, secret).of_faces(faces(listed, ["none"] * 5))
    key = kind.of(secret)
    assert every[0] == every[1] == key
    assert every[2] == every[4] == kind.add_salt(key, bytes.fromhex(SALT))
    assert len(set(every)) == 3


def test_a_picture_without_a_check_has_the_key_of_the_secret_as_typed():
    """Versions before the check did not change the secret."""
    kind, typed = keys.Secret(), "\ufeffcafe\u0301 au lait ".encode()
    old, new = PersonalKey(kind, typed + b"\r\n").of_faces(faces(["", ""], ["", "none"]))
    assert old == kind.of(typed)
    assert new == kind.of("caf\u00e9 au lait".encode())


def test_a_check_tells_a_wrong_key_and_is_another_one_for_each_salt():
    right, wrong = (PersonalKey(keys.Secret(), secret) for secret in (b"correct horse", b"incorrect horse"))
    first, second = right.check(SALT), right.check(SALT[::-1])
    assert first != second
    assert first != wrong.check(SALT)
    right.verify(SALT, first)
    with pytest.raises(PictureError, match="wrong key"):
        wrong.verify(SALT, first)
    with pytest.raises(PictureError, match="the check of its key is damaged"):
        right.verify(SALT, first.removeprefix("scrypt "))
    for silent in ("", "none"):
        wrong.verify(SALT, silent)


@pytest.mark.parametrize("kind", [keys.Digits(6), keys.Bits(16)], ids=["Digits", "Bits"])
def test_keys_that_can_all_be_tried_have_no_check(kind):
    assert PersonalKey(kind, b"123456" if isinstance(kind, keys.Digits) else b"correct horse").check(SALT) == "none"


def test_a_new_picture_has_salt_and_check_unless_the_user_declines_them():
    key = PersonalKey(keys.Secret(), b"correct horse")
    row = {"id": "a"}
    facts = key.draw_facts(3, salted=True, checked=True)(row)
    assert facts == {"salt": image_texts.draw_salt(3, "a"), "check": key.check(image_texts.draw_salt(3, "a"))}
    assert key.draw_facts(3, salted=True, checked=False)(row) == {
        "salt": image_texts.draw_salt(3, "a"),
        "check": "none",
    }
    assert key.draw_facts(3, salted=False, checked=True)(row) == {"salt": "", "check": "none"}
    with pytest.raises(KeyFormatError, match="shorter than 8"):
        PersonalKey(keys.Secret(), b"short").draw_facts(3, salted=True, checked=True)
