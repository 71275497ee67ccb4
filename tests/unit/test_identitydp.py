"""IdentityDP: the Laplace mechanism (Eq. 10-12), and the method with its refusals and its statement."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import kit
from masquerade.core import discovery
from masquerade.core.errors import ParameterError, ProtocolError
from masquerade.core.images import Faces
from masquerade.methods import Resources, _privacy
from masquerade.methods._disentanglement.network import Disentanglement
from masquerade.methods._privacy import LaplaceMechanism, measure_sensitivity, normalize, sensitivity_bound
from masquerade.training import checkpoints

METHOD = discovery.load("methods", "identitydp")
PARAMS = METHOD.Params(
    encoder_widths=[4, 4, 4, 4], generator_widths=[8, 8, 8, 4, 4], discriminator={"width": 4, "depth": 2, "scales": 2},
    losses={"adversarial": 1, "attributes": 10, "identity": 5, "reconstruction": 10},
    steps=3, batch=4, same_pairs=0.5, learning_rate=4e-4,
    betas=[0.0, 0.999], ema=0.0, samples_every=3, small_scale={"noised": 0.25},
)  # fmt: skip
IDENTITY = kit.Identity(512, 8)
faces, job = partial(kit.faces, 6), partial(kit.job, backbones=["identity"])


@pytest.fixture(autouse=True)
def substitute_encoder(monkeypatch):
    kit.replace_backbones(monkeypatch, identity=IDENTITY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An archive, the file of an encoder, and a trained checkpoint."""
    folder = tmp_path_factory.mktemp("identitydp")
    (folder / "identity.safetensors").write_bytes(b"stands for the encoder's file")
    kit.archive(folder / "faces.zip", kit.noise(10), size=32)
    with pytest.MonkeyPatch.context() as patch:
        kit.replace_backbones(patch, identity=IDENTITY)
        METHOD.train(PARAMS, job(folder))
    return folder


def method(folder, epsilon=6.0, sensitivity="bound", sampler="seeded"):
    variant = METHOD.Variant(epsilon=epsilon, sensitivity=sensitivity, sampler=sampler)
    return METHOD(PARAMS, variant, Resources(job(folder).checkpoint, job(folder).backbones))


def test_the_result_depends_on_the_original_only_through_identity_and_attributes(folder):
    """Without noise the result is h(r_id, g(X)) without pasting (Eq. 13), which is the output of the network alone."""
    chosen = method(folder, epsilon=1e9)
    images = torch.from_numpy(faces().images)
    network = Disentanglement(PARAMS).eval()
    tensors, _ = checkpoints.load_checkpoint(job(folder).checkpoint)
    checkpoints.load_into(network, tensors["network"], folder)
    with torch.no_grad():
        expected = network(IDENTITY(images), images).numpy()
    np.testing.assert_allclose(chosen.anonymize(faces(), 0), expected, atol=1e-4)


def test_a_smaller_epsilon_moves_the_picture_farther_from_its_reconstruction(folder):
    def moved(epsilon):
        return np.abs(method(folder, epsilon).anonymize(faces(), 0) - clean).mean()

    clean = method(folder, 1e9).anonymize(faces(), 0)
    distances = [moved(epsilon) for epsilon in (1e6, 1e4, 800.0)]
    assert distances == sorted(distances)


def test_the_measured_sensitivity_is_that_of_the_observed_set_and_below_the_bound(folder):
    chosen = method(folder, sensitivity="measured")
    chosen.observe([kit.faces(4), Faces(-kit.faces(2).images, kit.faces(2).index)])
    with torch.no_grad():
        images = torch.from_numpy(np.concatenate([kit.faces(4).images, -kit.faces(2).images]))
        vectors = IDENTITY(images).double().numpy()
    brute = max(np.abs(a - b).sum() for a in vectors for b in vectors)
    statement = chosen.statement()
    assert statement["sensitivity"] == pytest.approx(brute, rel=1e-6)
    assert statement["sensitivity"] <= _privacy.sensitivity_bound(512)
    assert statement["laplace_scale"] == pytest.approx(brute / 6)


def test_a_measured_sensitivity_needs_an_observation(folder):
    chosen = method(folder, sensitivity="measured")
    with pytest.raises(ProtocolError, match="observe"):
        chosen.anonymize(faces(), 0)


def mechanism(epsilon=6.0, sensitivity=45.25, kind="bound", sampler="seeded"):
    return LaplaceMechanism(epsilon, sensitivity, kind, sampler)


def vectors(count, dimensions=512):
    return np.random.default_rng(0).normal(size=(count, dimensions))


def test_sensitivity_is_the_largest_l1_distance_of_any_pair(monkeypatch):
    monkeypatch.setattr(_privacy, "BLOCK", 4)  # the 11 rows span three blocks
    rows = vectors(11, 5)
    brute = max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x in rows for y in rows)
    assert measure_sensitivity(rows) == pytest.approx(brute, rel=1e-12)


@pytest.mark.parametrize("rows", [np.empty((0, 4)), np.ones((1, 4)), np.ones((3, 4))])
def test_a_set_without_two_different_faces_has_no_measured_sensitivity(rows):
    with pytest.raises(ParameterError, match="sensitivity: bound"):
        measure_sensitivity(rows)


coordinates = st.floats(-1, 1, allow_nan=False, width=32)


@given(arrays(np.float64, (2, 6), elements=coordinates).filter(lambda v: (np.linalg.norm(v, axis=1) > 1e-3).all()))
def test_no_two_unit_vectors_are_farther_apart_than_the_bound(pair):
    a, b = map(normalize, pair)
    assert np.abs(a - b).sum() <= sensitivity_bound(6) * (1 + 1e-12)


def test_the_bound_is_reached_and_is_45_25_for_512_dimensions():
    corner = normalize(np.ones(512))
    assert np.abs(corner - -corner).sum() == pytest.approx(sensitivity_bound(512))
    assert sensitivity_bound(512) == pytest.approx(45.2548, abs=1e-4)


def test_noise_has_the_scale_sensitivity_over_epsilon(monkeypatch):
    monkeypatch.setattr(
        _privacy, "normalize", np.asarray
    )  # look at the noise before the result is scaled to unit length
    chosen = mechanism(epsilon=2.0, sensitivity=10.0)
    noise = np.stack([chosen.perturb(np.zeros(1000), 0, str(name)) for name in range(200)]).ravel()
    assert chosen.scale == 5.0
    # For Laplace noise E|x| = b and the variance is 2 b^2; 200,000 draws put both within 2 % (over 5 sigma).
    assert np.abs(noise).mean() == pytest.approx(5.0, rel=0.02)
    assert noise.var() == pytest.approx(50.0, rel=0.03)
    # Not a Gaussian of the same variance: its excess kurtosis is 3.
    assert (noise**4).mean() / noise.var() ** 2 == pytest.approx(6.0, rel=0.1)


def test_seeded_noise_depends_on_seed_and_picture_only():
    clean = vectors(1)[0]
    assert np.array_equal(mechanism().perturb(clean, 1, "a"), mechanism().perturb(clean, 1, "a"))
    assert not np.allclose(mechanism().perturb(clean, 1, "a"), mechanism().perturb(clean, 2, "a"))
    assert not np.allclose(mechanism().perturb(clean, 1, "a"), mechanism().perturb(clean, 1, "b"))


@pytest.mark.parametrize("sampler", ["seeded", "opendp"])
def test_a_perturbed_vector_is_a_unit_vector(sampler):
    assert np.linalg.norm(mechanism(sampler=sampler).perturb(vectors(1)[0], 0, "a")) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.57, 6.0, 800.0])
def test_opendp_certifies_the_requested_epsilon(epsilon):
    chosen = mechanism(epsilon=epsilon, sampler="opendp")
    certified = chosen.measurement.map(chosen.sensitivity)
    assert certified <= epsilon
    assert certified == pytest.approx(epsilon, rel=1e-6)


def test_opendp_noise_cannot_be_repeated_with_the_seed():
    chosen, clean = mechanism(sampler="opendp"), vectors(1)[0]
    assert not np.allclose(chosen.perturb(clean, 0, "a"), chosen.perturb(clean, 0, "a"))


def test_the_statement_gives_epsilon_with_its_sensitivity_and_what_is_not_guaranteed():
    seeded, measured, bound = (
        mechanism(sampler=sampler, kind=kind).statement()
        for sampler, kind in [("seeded", "bound"), ("opendp", "measured"), ("opendp", "bound")]
    )
    stated = {"epsilon": 6.0, "sensitivity": 45.25, "sensitivity_kind": "bound", "sampler": "opendp"}
    assert bound.items() >= (stated | {"laplace_scale": 45.25 / 6}).items()
    assert seeded["guarantee"].startswith("None")
    assert "faces of this set only" in measured["guarantee"]
    assert "any face" in bound["guarantee"]
    for statement in (seeded, measured, bound):
        assert "image as a whole is not differentially private" in statement["guarantee"]
