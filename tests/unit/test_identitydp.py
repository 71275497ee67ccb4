"""IdentityDP as a method: its results, its refusals and its statement."""

from functools import partial

import numpy as np
import pytest
import torch

import kit
from masquerade.core import discovery
from masquerade.core.errors import ParameterError, ProtocolError
from masquerade.core.images import Faces
from masquerade.methods import Resources, _privacy
from masquerade.methods._disentanglement import training
from masquerade.methods._disentanglement.network import Disentanglement
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


def test_a_measured_sensitivity_needs_two_faces_and_an_observation(folder):
    chosen = method(folder, sensitivity="measured")
    with pytest.raises(ProtocolError, match="observe"):
        chosen.anonymize(faces(), 0)
    with pytest.raises(ParameterError, match="sensitivity: bound"):
        chosen.observe([kit.faces(1)])


def test_the_bound_of_the_sensitivity_needs_no_observation(folder):
    assert method(folder).statement()["sensitivity"] == pytest.approx(2 * np.sqrt(512))


def test_opendp_noise_differs_every_time(folder):
    chosen = method(folder, sampler="opendp")
    assert not np.allclose(chosen.anonymize(kit.faces(2), 0), chosen.anonymize(kit.faces(2), 0), atol=1e-4)


def test_a_sample_picture_of_a_training_shows_the_noised_identity(folder, monkeypatch):
    arguments = {}
    monkeypatch.setattr(
        training, "draw_samples", lambda network, identity, faces, alter: arguments.update(alter=alter) or faces[0]
    )
    METHOD.train(PARAMS, job(folder))
    vectors = np.eye(512)[:3]
    noised = arguments["alter"](vectors)
    assert np.allclose(np.linalg.norm(noised, axis=1), 1)
    assert np.abs((noised * vectors).sum(axis=1)).max() < 0.5
