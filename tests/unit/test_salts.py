"""A salt gives each picture a key of its own, which nobody derives without the person's key."""

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from masquerade.core import keys
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces
from masquerade.pipeline import salts

KINDS = [keys.Digits(6), keys.Bits(16), keys.Secret()]
SALT = "00112233445566778899aabbccddeeff"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_a_salted_key_is_a_key_of_the_same_kind_and_differs_by_key_and_salt(kind):
    mine, yours = kind.experiment(1), kind.experiment(2)
    many = [kind.salted(key, bytes([number]) * 16) for key in (mine, yours) for number in range(20)]
    assert {len(key) for key in many} == {len(mine)}
    assert len(set(many)) > 38, "16 bits and six digits may meet once by chance"
    assert kind.salted(mine, b"salt" * 4) == kind.salted(mine, b"salt" * 4)
    assert mine not in many


def test_a_salted_key_is_hkdf_of_key_and_salt():
    expected = HKDF(hashes.SHA256(), 32, salt=None, info=f"picture {SALT}".encode()).derive(b"k" * 32)
    assert keys.Secret().salted(b"k" * 32, bytes.fromhex(SALT)) == expected


def test_salted_digits_are_spread_evenly():
    kind = keys.Digits(1)
    drawn = [int(kind.salted(b"7", number.to_bytes(16, "big"))) for number in range(2000)]
    counts = np.bincount(drawn, minlength=10)
    assert counts.min() > 150, "200 are expected of each digit; 150 is 3.7 standard deviations below"
    assert counts.max() < 250


def test_salts_repeat_only_with_the_seed_of_an_experiment():
    assert salts.drawn(None, "a") != salts.drawn(None, "a")
    assert salts.drawn(3, "a") == salts.drawn(3, "a") != salts.drawn(3, "b")
    assert len(bytes.fromhex(salts.drawn(None, "a"))) == len(bytes.fromhex(salts.drawn(3, "a"))) == salts.LENGTH


def test_the_salt_in_the_picture_goes_before_the_listed_one():
    assert salts.found({salts.KEYWORD: SALT}, "ff" * 16) == SALT
    assert salts.found({"Author": "me"}, SALT) == SALT
    assert salts.found({}, "") == ""


@pytest.mark.parametrize("salt", ["../etc", SALT[:-1], SALT.upper(), SALT + "\n", SALT + "00"])
def test_a_damaged_salt_is_refused(salt):
    with pytest.raises(PictureError, match="its salt is damaged"):
        salts.found({salts.KEYWORD: salt}, SALT)


def test_a_face_with_a_salt_has_a_key_of_its_own():
    listed = ["", "", SALT, SALT[::-1], SALT]
    faces = Faces(np.empty(0), pd.DataFrame({"id": list("abcde"), salts.SALT: listed}))
    kind = keys.Secret()
    every = salts.keys_of(kind, b"k" * 32)(faces)
    assert every[0] == every[1] == b"k" * 32
    assert every[2] == every[4] == kind.salted(b"k" * 32, bytes.fromhex(SALT))
    assert len(set(every)) == 3


def test_a_report_without_salts_lists_none(tmp_path):
    assert salts.listed(tmp_path / "report.csv") == {}
    (tmp_path / "report.csv").write_text("file,output\na.jpg,a.png\n")
    assert salts.listed(tmp_path / "report.csv") == {"a.png": ""}
