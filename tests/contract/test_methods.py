"""The contract of every method, with a checkpoint of the tests' scale if the method trains."""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import accelerator
from masquerade.core import discovery, sealing
from masquerade.core.errors import ParameterError, PictureError
from masquerade.core.images import FaceArchive, Faces, to_float, to_uint8
from masquerade.networks import deterministic, inputs
from masquerade.pipeline import anonymization, ladder

METHODS = discovery.list_programs()
SEED = 5
RECOVERED_BY_KEY = [
    name for name in METHODS if (able := discovery.load("methods", name).capabilities).keys and able.invertible
]
SIZED = [
    "anonymousnet", "cao21", "clip2protect", "falco", "fit", "identitydp", "ifadit", "inverted", "lreorg",
    "random_generated", "riddle",
]  # fmt: skip
"""Methods whose networks take images of one size."""
OPTIMIZING = ["clip2protect", "falco", "fawkes", "ifadit", "latent_inpainting"]
"""Methods that search with gradients while they anonymize."""
ROUNDING = {"cpu": 5e-5, "cuda": 2e-4}
"""Device -> the most by which a face may depend on its batch, on the scale [-1, 1]."""
GENERATING = [name for name in METHODS if "generator" in discovery.load("methods", name).needs]
"""Their generator amplifies rounding to some 1e-6, which changes up to 5 of 10,000 pixels by one level. Which methods
pass 1 in 10,000 depends on the processor, because the networks of the tests do."""
INPAINTERS = ["ciagan", "deepprivacy", "deepprivacy2", "latent_inpainting", "ldfa"]


def keys(name, ids, *purpose) -> list[bytes] | None:
    """Another key for each face, as in an experiment."""
    kind = discovery.load("methods", name).capabilities.keys
    return [kind.experiment(SEED, *purpose, each) for each in ids] if kind else None


def check_images(result: np.ndarray, faces: Faces, label: str = "") -> None:
    """Images as a method must return them: float32, of the shape of the faces, in [-1, 1]."""
    assert (result.dtype, result.shape) == (np.float32, faces.images.shape), label
    assert np.abs(result).max() <= 1.0, label  # false for NaN, too


def region_and_noise(faces: Faces, result: np.ndarray) -> tuple[np.ndarray, Faces]:
    """Where ``result`` differs from the faces, bool (N, 1, H, W), and the faces with noise there."""
    region = (result != faces.images).any(axis=1, keepdims=True)
    noise = np.random.default_rng(0).uniform(-1, 1, faces.images.shape).astype(np.float32)
    return region, replace(faces, images=np.where(region, noise, faces.images))


def anonymized_archive(method, archive: FaceArchive, folder) -> FaceArchive:
    """The test split of an archive after a method, three faces at a time."""
    rows, plan = archive.select("test", status=None), anonymization.Plan("variant", SEED, 3)
    anonymization.anonymize(archive, folder / "out.zip", method, rows, plan)
    return FaceArchive(folder / "out.zip")


class Misplaced(FaceArchive):
    """An archive whose landmarks a function changes: float32 (N, 68, 2) -> one (68, 2) or None for each face."""

    change = staticmethod(lambda points: [None] * len(points))

    def select(self, part=None, status="ok"):
        rows = super().select(part, status).copy()
        points = np.stack([np.asarray(each, np.float32).reshape(68, 2) for each in rows["landmarks"]])
        rows["landmarks"] = [None if each is None else each.ravel().tolist() for each in self.change(points)]
        return rows


@pytest.fixture(scope="module")
def faces(workshop) -> Faces:
    return workshop.archive.load("test")


@pytest.fixture(scope="module")
def anonymized(workshop, faces):
    """Method -> the result of a fresh instance for ``faces``, and whether it left its input as it was."""

    @cache
    def by(name) -> tuple[np.ndarray, bool]:
        before, given = faces.images.copy(), replace(faces, images=faces.images.copy())
        result = workshop.method(name).anonymize(given, SEED, keys(name, faces.ids))
        return result, np.array_equal(given.images, before)

    return by


@pytest.mark.parametrize("name", METHODS)
def test_result_is_a_picture_of_the_same_size_in_range(anonymized, faces, name):
    check_images(anonymized(name)[0], faces)


@pytest.mark.parametrize("name", METHODS)
def test_optimization_differentiates_what_a_gpu_computes_alike_each_time(workshop, faces, name):
    method, one = workshop.method(name), Faces(faces.images[:1], faces.index.iloc[:1])
    with accelerator.differentiated() as nodes:
        method.anonymize(one, SEED, keys(name, one.ids))
    assert bool(nodes) == (name in OPTIMIZING)
    refused = nodes & accelerator.NONDETERMINISTIC
    assert not refused


@pytest.mark.parametrize("name", METHODS)
def test_face_does_not_depend_on_its_batch(workshop, anonymized, faces, name):
    """By more than rounding. What is written changes by one level in 1 pixel of 10,000 at most, except GENERATING.

    All faces are looked at, because 1 of the 8,192 pixels of two faces says little about 1 in 10,000.
    """
    together, _ = anonymized(name)
    method, changed = workshop.method(name), []
    for rows in np.arange(len(faces))[::-1].reshape(-1, 2):
        some = Faces(faces.images[rows], faces.index.iloc[rows])
        apart = method.anonymize(some, SEED, keys(name, some.ids))
        np.testing.assert_allclose(apart, together[rows], atol=ROUNDING[inputs.device().type])
        changed.append(np.abs(to_uint8(apart).astype(int) - to_uint8(together[rows])).max(axis=-1))
    assert np.max(changed) <= 1
    assert np.mean(changed) <= (1e-3 if name in GENERATING else 1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_gives_the_same_bytes_and_another_seed_does_not_unless_the_method_is_deterministic(
    workshop, anonymized, faces, name
):
    first, _ = anonymized(name)
    method = workshop.method(name)
    second = method.anonymize(faces, SEED + 1, keys(name, faces.ids))
    assert np.array_equal(first, second) == method.capabilities.deterministic
    assert np.array_equal(first, method.anonymize(faces, SEED, keys(name, faces.ids)))


@pytest.mark.parametrize("name", METHODS)
def test_input_is_not_modified(anonymized, name):
    _, unchanged = anonymized(name)
    assert unchanged


@pytest.mark.parametrize("name", METHODS)
def test_every_face_changes_except_under_original(anonymized, faces, name):
    result = to_uint8(anonymized(name)[0])
    unchanged = (result == to_uint8(faces.images)).all(axis=(1, 2, 3))
    assert unchanged.all() if name == "original" else not unchanged.any()


@pytest.mark.parametrize(
    "name",
    [name for name in METHODS if not discovery.load("methods", name).capabilities.sees_face
     and name != "latent_inpainting"],  # it changes what it sees, too: its drawing fades into the surroundings
)  # fmt: skip
def test_method_that_does_not_see_the_face_gives_the_same_picture_for_noise_in_its_place(
    workshop, anonymized, faces, name
):
    """The region is where the result differs from the original; noise there must not change one bit of the result."""
    result, _ = anonymized(name)
    region, noisy = region_and_noise(faces, result)
    assert np.array_equal(workshop.method(name).anonymize(noisy, SEED, keys(name, faces.ids)), result)
    assert 0.05 < region.mean() < 0.9


@pytest.mark.parametrize(("variant", "sees_face"), [("default", True), ("filled", False)])
def test_face_reaches_the_result_of_ldfa_as_published_and_its_row_says_so(workshop, faces, variant, sees_face):
    method = workshop.method("ldfa", variant=variant)
    result = method.anonymize(faces, SEED)
    _, noisy = region_and_noise(faces, result)
    assert np.array_equal(method.anonymize(noisy, SEED), result) != sees_face
    assert ("the face reaches the network" in method.statement()["starts_from"]) == sees_face


@pytest.mark.parametrize("name", ["deepprivacy", "deepprivacy2"])
def test_random_code_changes_the_region_and_nothing_else(workshop, faces, name):
    first, second = (workshop.method(name, variant="random").anonymize(faces, seed) for seed in (SEED, SEED + 1))
    region, _ = region_and_noise(faces, first)
    changed = (first != second).any(axis=1, keepdims=True)
    assert changed.any(axis=(1, 2, 3)).all()
    assert not changed[~region].any()


@pytest.mark.parametrize("name", METHODS)
def test_archive_has_a_row_for_every_face(workshop, name, tmp_path):
    method = workshop.method(name, observe=False)
    out = anonymized_archive(method, workshop.archive, tmp_path)
    expected = workshop.archive.select("test", status=None)["id"].tolist()
    assert out.index["source_id"].tolist() == expected
    assert (out.index["status"] == "ok").all()
    assert out.metadata["method"] == name
    assert out.metadata["statement"] == method.statement()


@pytest.mark.parametrize("name", [name for name in METHODS if discovery.load("methods", name).capabilities.landmarks])
def test_face_without_landmarks_is_refused_with_that_reason(workshop, name, tmp_path):
    out = anonymized_archive(workshop.method(name), Misplaced(workshop.archive.path), tmp_path)
    assert (out.index["status"] == "refused").all()
    assert out.index["reason"].str.contains("landmarks").all()


@pytest.mark.parametrize("name", INPAINTERS)
def test_face_whose_region_is_nothing_or_the_whole_picture_is_refused_alone_with_that_reason(workshop, name, tmp_path):
    archive = Misplaced(workshop.archive.path)
    archive.change = (
        lambda points: [
            (points[0] - points[0].mean(axis=0)) * 10 + points[0].mean(axis=0),  # around the whole image
            points[1] + 1000,  # outside of it
            *points[2:],
        ]
    )
    out = anonymized_archive(workshop.method(name), archive, tmp_path).index
    assert out["status"].tolist() == ["refused", "refused", *["ok"] * (len(out) - 2)]
    assert "the face region covers the whole image" in out["reason"][0]
    assert re.search(r"landmarks lie outside of the image|covers no pixel", out["reason"][1])


def test_prompt_with_a_word_that_the_text_image_model_does_not_know_is_refused_with_the_nearest_one(workshop):
    block, cls = workshop.parameters.methods["clip2protect"], discovery.load("methods", "clip2protect")
    prompt = block.variants["default"].model_copy(update={"prompt": "person wearing lipstik"})
    with pytest.raises(ParameterError, match=r"words lipstik\. 'lipstik': .*lipstick"):
        cls(block.params, prompt, workshop.resources("clip2protect"))


@pytest.mark.parametrize(
    "name", [n for n in METHODS if discovery.load("methods", n).capabilities.differentially_private]
)
def test_private_method_states_its_budget_and_sensitivity(workshop, name):
    statement = workshop.method(name).statement()
    assert {"epsilon", "sensitivity"} <= set(statement)


@pytest.mark.parametrize("name", [name for name in METHODS if discovery.load("methods", name).capabilities.keys])
def test_different_keys_give_different_pictures(workshop, faces, name):
    method = workshop.method(name)
    first, second = (method.anonymize(faces, SEED, keys(name, faces.ids, number)) for number in range(2))
    assert not np.array_equal(to_uint8(first), to_uint8(second))


@pytest.mark.parametrize("name", RECOVERED_BY_KEY)
def test_each_picture_is_recovered_with_its_own_key(workshop, anonymized, faces, name, monkeypatch):
    """The result for an image does not depend on the keys of the other images of its batch."""
    monkeypatch.setattr(deterministic, "is_replaced", lambda images: False)  # the matrices of a GPU round more
    method, own = workshop.method(name), keys(name, faces.ids)
    pictures = to_float(to_uint8(anonymized(name)[0]))
    together = method.recover(pictures, own)
    alone, other = (method.recover(pictures[1:2], key) - together[1:2] for key in (own[1:2], own[:1]))
    assert np.abs(alone).max() < 1e-2 * np.abs(other).max(), "rounding, which differs by processor, beside another key"


@pytest.mark.parametrize("name", [name for name in METHODS if discovery.load("methods", name).capabilities.invertible])
def test_recovery_gives_a_valid_picture_for_every_key(workshop, anonymized, faces, name):
    method = workshop.method(name)
    pictures = to_float(to_uint8(anonymized(name)[0]))
    right = keys(name, faces.ids)
    attempts = {"right": method.recover(pictures, right)}
    if method.capabilities.keys:
        attempts |= {"wrong": method.recover(pictures, keys(name, faces.ids, "wrong"))}
        attempts |= method.try_near_keys(pictures, right)
        attempts |= {f"{kind} elsewhere": each for kind, each in method.try_near_keys(pictures, right, 1).items()}
    if method.capabilities.saves:
        attempts["saved"] = method.recover_saved(method.save(faces, SEED, right), right)
    if method.capabilities.describes:
        assert method.capabilities.keys.count is None, "few keys could all be tried on a sealed record"
        descriptions = method.describe(faces)
        assert max(map(len, descriptions)) <= sealing.LONGEST_CONTENT
        attempts["file"] = method.draw_described(descriptions)
    if method.capabilities.pastes:
        attempts["pasted"] = method.recover_onto(pictures, right, faces.images)
    for attempt, result in (attempts | method.views(faces)).items():
        check_images(result, faces, attempt)


@pytest.mark.parametrize("name", [name for name in METHODS if discovery.load("methods", name).capabilities.saves])
def test_every_method_that_saves_climbs_the_ladder(workshop, faces, name):
    for rung, images in ladder.climb(workshop.method(name), faces, SEED).items():
        check_images(images, faces, rung)


@pytest.mark.parametrize("name", [name for name in METHODS if "features" in vars(discovery.load("methods", name))])
def test_features_are_vectors_that_do_not_depend_on_the_batch(workshop, faces, name):
    method = workshop.method(name)
    together = method.features(faces)
    assert "codes" in together
    rows = [3, 1]
    apart = method.features(Faces(faces.images[rows], faces.index.iloc[rows]))
    for feature, values in together.items():
        assert (values.dtype, values.ndim, len(values)) == (np.float32, 2, len(faces)), feature
        assert np.isfinite(values).all(), feature
        np.testing.assert_allclose(apart[feature], values[rows], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_statement_can_be_written_to_a_file_and_holds_no_key(workshop, faces, name):
    method, secrets = workshop.method(name), keys(name, faces.ids)
    method.anonymize(faces, SEED, secrets)
    statement = json.dumps(method.statement())
    assert not any(key.hex() in statement for key in secrets or ())


@pytest.mark.parametrize("name", SIZED)
def test_picture_of_another_size_than_the_networks_is_refused_with_both_sizes(workshop, faces, name):
    method, secrets = workshop.method(name), keys(name, faces.ids)
    small = replace(faces, images=faces.images[:, :, ::2, ::2].copy())
    with pytest.raises(PictureError, match=r"is 32 x 32 pixels; .* 64 x 64"):
        method.anonymize(small, SEED, secrets)
    if method.capabilities.invertible:
        with pytest.raises(PictureError, match=r"is 32 x 32 pixels; .* 64 x 64"):
            method.recover(small.images, secrets)
