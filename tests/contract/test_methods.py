"""Every method that exists, with a checkpoint of the tests' scale where it trains, keeps the same promises."""

import numpy as np
import pytest

from masquerade import anonymization, discovery
from masquerade.images import FaceArchive, Faces, to_uint8

METHODS = discovery.names("methods")
SEED = 5
KEY = b"0" * 32


@pytest.fixture(scope="module")
def faces(workshop) -> Faces:
    return workshop.archive.load("test")


@pytest.mark.parametrize("name", METHODS)
def test_result_is_a_picture_of_the_same_size_in_range(workshop, faces, name):
    result = workshop.method(name).anonymize(faces, SEED, KEY)
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float32
    assert result.shape == faces.images.shape
    assert np.isfinite(result).all()
    assert np.abs(result).max() <= 1.0


@pytest.mark.parametrize("name", METHODS)
def test_face_does_not_depend_on_its_batch(workshop, faces, name):
    together = workshop.method(name).anonymize(faces, SEED, KEY)
    rows = [3, 1]
    some = Faces(faces.images[rows], faces.index.iloc[rows])
    apart = workshop.method(name).anonymize(some, SEED, KEY)
    np.testing.assert_allclose(apart, together[rows], atol=2e-5)


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_gives_the_same_bytes(workshop, faces, name):
    first = workshop.method(name).anonymize(faces, SEED, KEY)
    assert np.array_equal(first, workshop.method(name).anonymize(faces, SEED, KEY))


@pytest.mark.parametrize("name", METHODS)
def test_seed_matters_exactly_where_the_method_says_so(workshop, faces, name):
    method = workshop.method(name)
    first, second = method.anonymize(faces, SEED, KEY), method.anonymize(faces, SEED + 1, KEY)
    assert np.array_equal(first, second) == method.capabilities.deterministic


@pytest.mark.parametrize("name", METHODS)
def test_input_is_left_as_it_was(workshop, faces, name):
    before = faces.images.copy()
    workshop.method(name).anonymize(faces, SEED, KEY)
    assert np.array_equal(faces.images, before)


@pytest.mark.parametrize("name", METHODS)
def test_no_face_comes_out_as_it_went_in(workshop, faces, name):
    method = workshop.method(name)
    result = to_uint8(method.anonymize(faces, SEED, KEY))
    unchanged = (result == to_uint8(faces.images)).all(axis=(1, 2, 3))
    assert unchanged.all() if name == "original" else not unchanged.any()


@pytest.mark.parametrize("name", METHODS)
def test_archive_accounts_for_every_face(workshop, name, tmp_path):
    method = workshop.method(name, observe=False)
    anonymization.anonymize(workshop.archive, tmp_path / "out.zip", method, "variant", "test", SEED, batch=3)
    out = FaceArchive(tmp_path / "out.zip")
    wanted = workshop.archive.select("test", status=None)["id"].tolist()
    assert out.index["source_id"].tolist() == wanted
    assert (out.index["status"] == "ok").all()
    assert out.facts["method"] == name
    assert out.facts["statement"] == method.statement()


@pytest.mark.parametrize("name", [name for name in METHODS if discovery.load("methods", name).capabilities.landmarks])
def test_face_without_landmarks_is_refused_with_that_reason(workshop, name, tmp_path):
    class Blind(FaceArchive):
        def select(self, split=None, status="ok"):
            rows = super().select(split, status).copy()
            rows["landmarks"] = [None] * len(rows)
            return rows

    archive = Blind(workshop.archive.path)
    anonymization.anonymize(archive, tmp_path / "out.zip", workshop.method(name), "variant", "test", SEED, batch=3)
    out = FaceArchive(tmp_path / "out.zip")
    assert (out.index["status"] == "refused").all()
    assert out.index["reason"].str.contains("landmarks").all()


@pytest.mark.parametrize(
    "name", [n for n in METHODS if discovery.load("methods", n).capabilities.differentially_private]
)
def test_private_method_states_its_budget_and_sensitivity(workshop, name):
    statement = workshop.method(name).statement()
    assert {"epsilon", "sensitivity"} <= set(statement)
