"""The Laplace mechanism: IdentityDP's Eq. 10-12, and a statement with the limits of the guarantee."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from masquerade.core.errors import ParameterError
from masquerade.methods import _privacy
from masquerade.methods._privacy import LaplaceMechanism, measured_sensitivity, sensitivity_bound, unit


def mechanism(epsilon=6.0, sensitivity=45.25, kind="bound", sampler="seeded"):
    return LaplaceMechanism(epsilon, sensitivity, kind, sampler)


def vectors(count, dimensions=512):
    return np.random.default_rng(0).normal(size=(count, dimensions))


def test_sensitivity_is_the_largest_l1_distance_of_any_pair(monkeypatch):
    monkeypatch.setattr(_privacy, "BLOCK", 4)  # the 11 rows span three blocks
    rows = vectors(11, 5)
    brute = max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x in rows for y in rows)
    assert measured_sensitivity(rows) == pytest.approx(brute, rel=1e-12)


@pytest.mark.parametrize("rows", [np.empty((0, 4)), np.ones((1, 4)), np.ones((3, 4))])
def test_a_set_without_two_different_faces_has_no_measured_sensitivity(rows):
    with pytest.raises(ParameterError, match="sensitivity: bound"):
        measured_sensitivity(rows)


coordinates = st.floats(-1, 1, allow_nan=False, width=32)


@given(arrays(np.float64, (2, 6), elements=coordinates).filter(lambda v: (np.linalg.norm(v, axis=1) > 1e-3).all()))
def test_no_two_unit_vectors_are_farther_apart_than_the_bound(pair):
    a, b = map(unit, pair)
    assert np.abs(a - b).sum() <= sensitivity_bound(6) * (1 + 1e-12)


def test_the_bound_is_reached_and_is_45_25_for_512_dimensions():
    corner = unit(np.ones(512))
    assert np.abs(corner - -corner).sum() == pytest.approx(sensitivity_bound(512))
    assert sensitivity_bound(512) == pytest.approx(45.2548, abs=1e-4)


def test_noise_has_the_scale_sensitivity_over_epsilon(monkeypatch):
    monkeypatch.setattr(_privacy, "unit", np.asarray)  # look at the noise before the result is scaled to unit length
    chosen = mechanism(epsilon=2.0, sensitivity=10.0)
    noise = np.stack([chosen.perturb(np.zeros(1000), 0, str(name)) for name in range(200)]).ravel()
    assert chosen.scale == 5.0
    # For Laplace noise E|x| = b and the variance is 2 b^2; 200,000 draws put both within 2 % (over 5 sigma).
    assert np.abs(noise).mean() == pytest.approx(5.0, rel=0.02)
    assert noise.var() == pytest.approx(50.0, rel=0.03)
    # Not a Gaussian of the same variance: its excess kurtosis is 3.
    assert (noise**4).mean() / noise.var() ** 2 == pytest.approx(6.0, rel=0.1)


def test_smaller_epsilon_gives_a_lower_similarity_to_the_input():
    clean = unit(vectors(1)[0])
    kept = [mechanism(epsilon=epsilon).perturb(clean, 3, "a") @ clean for epsilon in (1e6, 800, 80, 6)]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > 0.999
    assert abs(kept[-1]) < 0.2


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
    assert {key: bound[key] for key in ("epsilon", "sensitivity", "sensitivity_kind", "sampler")} == {
        "epsilon": 6.0,
        "sensitivity": 45.25,
        "sensitivity_kind": "bound",
        "sampler": "opendp",
    }
    assert bound["laplace_scale"] == pytest.approx(45.25 / 6)
    assert seeded["guarantee"].startswith("None")
    assert "faces of this set only" in measured["guarantee"]
    assert "any face" in bound["guarantee"]
    for statement in (seeded, measured, bound):
        assert "picture as a whole is not differentially private" in statement["guarantee"]
