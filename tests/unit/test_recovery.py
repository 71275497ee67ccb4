"""Recovery with right and wrong keys, for a method with results by hand."""

import numpy as np
import pytest

from masquerade.core.errors import PictureError, ProtocolError
from masquerade.core.images import ArchiveWriter, FaceArchive, to_float, to_uint8
from masquerade.core.keys import Digits
from masquerade.methods import Capabilities, Method, Resources
from masquerade.params import protocols
from masquerade.pipeline import anonymization, evaluation, measuring, recovery

SIDE, PEOPLE = 8, 6
SETTINGS = protocols.RecoverySettings(pictures=0, wrong_keys=2, near_keys=2, other_keys=3)


class Shift(Method):
    """Adds ten gray levels, and ten more for each unit of its digit; recovery subtracts them, and refuses white."""

    title, paper = "Shift", "this test"
    capabilities = Capabilities(keys=Digits(1), invertible=True, saves=True, pastes=True)

    def anonymize(self, faces, seed, keys=None):
        return self._shifted(faces.images, keys, 1)

    def recover(self, images, keys):
        if (images == 1).all(axis=(1, 2, 3)).any():
            raise PictureError("is white")
        return self._shifted(images, keys, -1)

    def recover_onto(self, images, keys, originals):
        return originals

    def save(self, faces, seed, keys):
        return self.anonymize(faces, seed, keys)

    def recover_saved(self, saved, keys):
        return self.recover(saved, keys)

    def views(self, faces):
        return {"mirrored": faces.images[..., ::-1].copy()}

    @staticmethod
    def _shifted(images, keys, sign):
        steps = 10 * sign * np.array([1 + int(key) for key in keys])[:, None, None, None]
        return to_float(((to_uint8(images).astype(int) + steps) % 256).astype(np.uint8))


@pytest.fixture
def method():
    return Shift(Shift.Params(), Shift.Variant(), Resources())


@pytest.fixture
def originals(tmp_path) -> FaceArchive:
    with ArchiveWriter(tmp_path / "faces.zip") as out:
        for split in ("test", "validation"):
            for person in range(PEOPLE):
                pixels = np.full((SIDE, SIDE, 3), 3 + 40 * person, dtype=np.uint8)
                pixels[..., 2] += person  # the difference of the channels tells the person under every key
                out.add(pixels, {"id": f"{split}{person}", "identity": f"{split}{person}", "split": split})
    return FaceArchive(tmp_path / "faces.zip")


@pytest.fixture
def anonymized(originals, method, tmp_path) -> FaceArchive:
    anonymization.anonymize(
        originals, tmp_path / "hidden.zip", method, originals.select("test", status=None), anonymization.Plan("v", 3, 4)
    )
    return FaceArchive(tmp_path / "hidden.zip")


def attempted(originals, anonymized, method, tmp_path, settings=SETTINGS) -> FaceArchive:
    recovery.recover_all(originals, anonymized, tmp_path / "attempts.zip", method, settings, batch=4)
    return FaceArchive(tmp_path / "attempts.zip")


def pictures(archive, attempt, number=0) -> np.ndarray:
    index = archive.index
    return to_uint8(archive.load(rows=index[(index["attempt"] == attempt) & (index["number"] == number)]).images)


def test_every_attempt_is_stored_with_its_name_and_source(originals, anonymized, method, tmp_path):
    archive = attempted(originals, anonymized, method, tmp_path)
    counts = archive.index.groupby("attempt").size() / PEOPLE
    assert counts.to_dict() == {
        "recovered": 1, "pasted": 1, "view.mirrored": 1, "wrong": 2, "near.digit": 2, "saved": 1, "saved_wrong": 1,
        "key": 3,
    }  # fmt: skip
    assert set(archive.index["source_id"]) == set(originals.select("test")["id"])
    assert archive.index["id"].is_unique
    assert archive.index["key_id"].unique().tolist() == ["experiment 3"]


def test_only_the_right_key_recovers_the_pictures(originals, anonymized, method, tmp_path):
    archive = attempted(originals, anonymized, method, tmp_path)
    expected = to_uint8(originals.load("test").images)
    for attempt in ("recovered", "saved", "pasted"):
        assert np.array_equal(pictures(archive, attempt), expected), attempt
    for attempt in ("near.digit", "saved_wrong"):
        assert not (pictures(archive, attempt) == expected).any(), attempt
    right, *wrong = (
        [int(method.capabilities.keys.experiment(3, *purpose, face)) for face in anonymized.index["id"]]
        for purpose in ((), ("wrong", 0), ("wrong", 1))
    )
    assert len(set(right)) > 1, "every image has a key of its own"
    for number, keys in enumerate(wrong):
        off = 10 * (np.array(right) - keys)[:, None, None, None]
        assert np.array_equal(pictures(archive, "wrong", number), (expected.astype(int) + off) % 256)


def test_other_keys_are_one_for_all_pictures(originals, anonymized, method, tmp_path):
    archive = attempted(originals, anonymized, method, tmp_path)
    for number in range(3):
        moved = (pictures(archive, "key", number).astype(int) - to_uint8(originals.load("test").images)) % 256
        assert np.unique(moved).size == 1


def test_only_faces_that_cannot_be_recovered_are_refused(originals, anonymized, method, tmp_path):
    original_recover = method.recover

    def recover(images, keys):
        colors = to_uint8(images)[:, 0, 0].astype(int)
        if ((colors[:, 2] - colors[:, 0]) % 256 == 2).any():
            raise PictureError("is the third")
        return original_recover(images, keys)

    method.recover = recover
    archive = attempted(originals, anonymized, method, tmp_path)
    refused = archive.index[archive.index["status"] != "ok"]
    assert refused["source_id"].unique().tolist() == ["test2"]
    assert refused["reason"].unique().tolist() == ["is the third"]
    assert len(refused) * PEOPLE == len(archive.index), "it counts in the denominator of every attempt"


def test_recovery_tries_the_requested_number_of_faces(originals, anonymized, method, tmp_path):
    some = SETTINGS.model_copy(update={"pictures": 2})
    assert attempted(originals, anonymized, method, tmp_path, some).index["source_id"].nunique() == 2


def test_method_that_is_not_invertible_is_refused(originals, anonymized, method, tmp_path, monkeypatch):
    monkeypatch.setattr(Shift, "capabilities", Capabilities())
    with pytest.raises(ProtocolError, match="not invertible"):
        attempted(originals, anonymized, method, tmp_path)


def test_set_of_refused_faces_has_no_attempts_and_no_error(originals, method, tmp_path):
    class Refusing(Shift):
        def anonymize(self, faces, seed, keys=None):
            raise PictureError("is refused")

    refusing = Refusing(Refusing.Params(), Refusing.Variant(), Resources())
    anonymization.anonymize(
        originals, tmp_path / "none.zip", refusing, originals.select("test", status=None), anonymization.Plan("v", 3, 4)
    )
    attempts = tmp_path / "attempts.zip"
    recovery.recover_all(originals, FaceArchive(tmp_path / "none.zip"), attempts, method, SETTINGS, batch=4)
    assert len(FaceArchive(attempts)) == 0
    assert recovery.draw_sample(originals, FaceArchive(attempts)) is None
    for name in ("faces", "none", "attempts"):
        source = None if name == "faces" else tmp_path / "faces.zip"
        measuring.measure(tmp_path / f"{name}.zip", tmp_path / f"{name}.measured", {}, source=source)
    source, derived, recoveries = (tmp_path / f"{name}.measured" for name in ("faces", "none", "attempts"))
    cell_files = evaluation.CellFiles(source=source, derived=derived, recoveries=recoveries)
    evidence = evaluation.collect_evidence(cell_files, "validation")
    assert evidence.recoveries is None
    assert evaluation.evaluate_attempts({}, evidence) == {}
