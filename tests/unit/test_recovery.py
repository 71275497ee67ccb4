"""Recovery with right and wrong keys, and guessed keys, for a method with results by hand."""

import numpy as np
import pytest

from masquerade.core.errors import PictureError, ProtocolError
from masquerade.core.images import ArchiveWriter, FaceArchive, to_float, to_uint8
from masquerade.core.keys import Digits
from masquerade.judges import Judge
from masquerade.methods import Capabilities, Method, Resources
from masquerade.params import blocks
from masquerade.pipeline import anonymization, evaluation, guessing, measuring, recovery

SIDE, PEOPLE = 8, 6
SETTINGS = blocks.RecoverySettings(pictures=0, wrong_keys=2, other_keys=3)


class Shift(Method):
    """Adds ten grey levels for each unit of its one-digit key; recovery subtracts them and refuses white pictures."""

    title, paper = "Shift", "this test"
    capabilities = Capabilities(keys=Digits(1), invertible=True, saves=True, pastes=True)

    def anonymize(self, faces, seed, key=None):
        return self._shifted(faces.images, int(key))

    def recover(self, images, key):
        if (images == 1).all(axis=(1, 2, 3)).any():
            raise PictureError("is white")
        return self._shifted(images, -int(key))

    def recover_onto(self, images, key, originals):
        return originals

    def save(self, faces, seed, key):
        return self.anonymize(faces, seed, key)

    def recover_saved(self, saved, key):
        return self.recover(saved, key)

    def views(self, faces):
        return {"mirrored": faces.images[..., ::-1].copy()}

    @staticmethod
    def _shifted(images, steps):
        return to_float(((to_uint8(images).astype(int) + 10 * steps) % 256).astype(np.uint8))


class Brightness(Judge):
    """The mean brightness of each picture as an embedding of one number."""

    title, source, quantities = "brightness", "this test", {"embedding": (1,)}

    def measure(self, images, reference=None):
        return {"embedding": images.mean(axis=(1, 2, 3))[:, None]}


@pytest.fixture
def method():
    return Shift(Shift.Params(), Shift.Variant(), Resources())


@pytest.fixture
def originals(tmp_path) -> FaceArchive:
    with ArchiveWriter(tmp_path / "faces.zip") as out:
        for split in ("test", "validation"):
            for person in range(PEOPLE):
                pixels = np.full((SIDE, SIDE, 3), 3 + 40 * person, dtype=np.uint8)
                out.add(pixels, {"id": f"{split}{person}", "identity": f"{split}{person}", "split": split})
    return FaceArchive(tmp_path / "faces.zip")


@pytest.fixture
def anonymized(originals, method, tmp_path) -> FaceArchive:
    anonymization.anonymize(originals, tmp_path / "hidden.zip", method, "v", "test", seed=3, batch=4)
    return FaceArchive(tmp_path / "hidden.zip")


def attempted(originals, anonymized, method, tmp_path, settings=SETTINGS) -> FaceArchive:
    recovery.attempt_all(originals, anonymized, tmp_path / "attempts.zip", method, settings, batch=4)
    return FaceArchive(tmp_path / "attempts.zip")


def pictures(archive, attempt, number=0) -> np.ndarray:
    index = archive.index
    return to_uint8(archive.load(rows=index[(index["attempt"] == attempt) & (index["number"] == number)]).images)


def test_every_attempt_is_stored_with_its_name_and_source(originals, anonymized, method, tmp_path):
    archive = attempted(originals, anonymized, method, tmp_path)
    counts = archive.index.groupby("attempt").size() / PEOPLE
    assert counts.to_dict() == {
        "recovered": 1, "pasted": 1, "view.mirrored": 1, "wrong": 2, "near.digit": 1, "saved": 1, "saved_wrong": 1,
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
    keys = method.capabilities.keys
    for number in range(2):
        off = 10 * (int(keys.experiment(3)) - int(keys.experiment(3, "wrong", number)))
        assert np.array_equal(pictures(archive, "wrong", number), (expected.astype(int) + off) % 256)


def test_only_faces_that_cannot_be_recovered_are_refused(originals, anonymized, method, tmp_path):
    original_recover = method.recover

    def recover(images, key):
        if (to_uint8(images)[:, 0, 0, 0] == to_uint8(anonymized.load().images)[2, 0, 0, 0]).any():
            raise PictureError("is the third")
        return original_recover(images, key)

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


class TestGuessing:
    def guessed(self, originals, anonymized, method, tmp_path, far=0.1):
        judge = Brightness(Brightness.Params(), {})
        measuring.measure(
            originals.path, tmp_path / "source.parquet", {"brightness": judge}, ["validation", "test"], progress=False
        )
        settings = blocks.GuessingSettings(judge="brightness", far=far, pictures=4, guesses=10)
        return guessing.guess(anonymized, method, judge, tmp_path / "source.parquet", "validation", settings)

    def test_right_key_is_accepted_and_some_wrong_keys_are_not(self, originals, anonymized, method, tmp_path):
        result = self.guessed(originals, anonymized, method, tmp_path)
        assert result["keys"] == 10
        assert result["pictures"] == 4
        assert 0 < result["guesses"] < 10
        assert result["tried"] == 4 * result["guesses"]
        assert result["accepted_right"] == 4
        assert result["accepted_unopened"] < 4
        # a key one step off moves the brightness by ten levels, less than the 40 that lie between two strangers
        keys = method.capabilities.keys
        tried = {int(keys.experiment(3, "guess", number)) for number in range(10)} - {int(keys.experiment(3))}
        steps = [abs(key - int(keys.experiment(3))) for key in tried]
        assert result["accepted"] >= 4 * sum(10 * step < 40 for step in steps) * 0.5
        assert result["accepted"] < result["tried"]

    def test_too_few_impostor_pairs_give_no_threshold_and_no_acceptance(self, originals, anonymized, method, tmp_path):
        judge = Brightness(Brightness.Params(), {})
        measuring.measure(
            originals.path, tmp_path / "s.parquet", {"brightness": judge}, ["validation", "test"], progress=False
        )
        settings = blocks.GuessingSettings(judge="brightness", far=0.0001, pictures=2, guesses=2)
        result = guessing.guess(anonymized, method, judge, tmp_path / "s.parquet", "validation", settings)
        assert result["threshold"] is None
        assert result["accepted_right"] == 0

    def test_guessing_is_refused_for_a_method_without_keys(self, originals, anonymized, method, tmp_path, monkeypatch):
        monkeypatch.setattr(Shift, "capabilities", Capabilities(invertible=True))
        with pytest.raises(ProtocolError, match="takes no key"):
            self.guessed(originals, anonymized, method, tmp_path)


def test_set_of_refused_faces_has_no_attempts_and_no_error(originals, method, tmp_path):
    class Refusing(Shift):
        def anonymize(self, faces, seed, key=None):
            raise PictureError("is refused")

    refusing = Refusing(Refusing.Params(), Refusing.Variant(), Resources())
    anonymization.anonymize(originals, tmp_path / "none.zip", refusing, "v", "test", seed=3, batch=4)
    attempts = tmp_path / "attempts.zip"
    recovery.attempt_all(originals, FaceArchive(tmp_path / "none.zip"), attempts, method, SETTINGS, batch=4)
    assert len(FaceArchive(attempts)) == 0
    assert recovery.sample(originals, FaceArchive(attempts)) is None
    judges = {"brightness": Brightness(Brightness.Params(), {})}
    for name in ("faces", "none", "attempts"):
        source = None if name == "faces" else tmp_path / "faces.zip"
        measuring.measure(
            tmp_path / f"{name}.zip", tmp_path / f"{name}.measured", judges, source=source, progress=False
        )
    evidence = evaluation.evidence(
        tmp_path / "faces.measured", tmp_path / "none.measured", "validation", attempts=tmp_path / "attempts.measured"
    )
    assert evidence.attempts is None
    assert evaluation.evaluate_attempts({}, evidence) == {}
