"""IdentityDP as a method: its results, its refusals and its statement."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from masquerade.core import discovery
from masquerade.core.errors import CheckpointError, ParameterError, PictureError, ProtocolError
from masquerade.core.images import ArchiveWriter, Faces
from masquerade.methods import Resources, _privacy
from masquerade.methods._disentanglement import training
from masquerade.methods._disentanglement.network import Disentanglement
from masquerade.training import checkpoints
from masquerade.training.job import TrainingJob

METHOD = discovery.load("methods", "identitydp")
PARAMS = METHOD.Params(
    encoder_widths=[4, 4, 4, 4],
    generator_widths=[8, 8, 8, 4, 4],
    discriminator={"width": 4, "depth": 2, "scales": 2},
    refinement={
        "steps": 0,
        "rate": 0.3,
        "projected": 32,
        "noised": 0.0,
        "losses": {"adversarial": 1.0, "attributes": 1.0, "identity": 1.0, "reconstruction": 1.0},
    },
    losses={"adversarial": 1, "attributes": 10, "identity": 5, "reconstruction": 10},
    squares="means",
    steps=3,
    batch=4,
    same_pairs=0.5,
    noised=0.25,
    span=0,
    learning_rate=4e-4,
    kernel_rate=0.0,
    cooldown=0.0,
    betas=[0.0, 0.999],
    ema=0.0,
    samples_every=3,
)


class SmallIdentity(nn.Module):
    """A differentiable substitute for the identity encoder: pictures of any size -> unit (N, 512)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.project = nn.Linear(192, 512)

    def forward(self, images):
        pooled = nn.functional.adaptive_avg_pool2d(images, 8).flatten(1)
        return nn.functional.normalize(self.project(pooled))


@pytest.fixture(autouse=True)
def substitute_encoder(monkeypatch):
    loaded = SmallIdentity().eval().requires_grad_(False)
    monkeypatch.setattr(discovery.load("backbones", "identity"), "load", lambda checkpoint: loaded)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An archive, the file of an encoder, and a trained checkpoint."""
    folder = tmp_path_factory.mktemp("identitydp")
    (folder / "identity.safetensors").write_bytes(b"stands for the encoder's file")
    with ArchiveWriter(folder / "faces.zip", {"size": 32}) as out:
        for number, picture in enumerate(pictures(10)):
            out.add(picture, {"id": f"f{number}", "identity": "", "split": "train" if number < 8 else "validation"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery.load("backbones", "identity"), "load", lambda checkpoint: SmallIdentity().eval())
        METHOD.train(PARAMS, job(folder))
    return folder


def pictures(count):
    return np.random.default_rng(4).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)


def job(folder):
    backbones = {"identity": folder / "identity.safetensors"}
    paths = folder / "faces.zip", backbones, folder / "checkpoint.safetensors", folder / "state.pt"
    return TrainingJob(*paths, 0, 1, lambda step, values: None, lambda name, pixels: None, people="train")


def faces(count=6, size=32):
    images = np.random.default_rng(9).uniform(-1, 1, (count, 3, size, size)).astype(np.float32)
    return Faces(images, pd.DataFrame({"id": [f"face{number}" for number in range(count)]}))


def method(folder, epsilon=6.0, sensitivity="bound", sampler="seeded", params=PARAMS):
    variant = METHOD.Variant(epsilon=epsilon, sensitivity=sensitivity, sampler=sampler)
    return METHOD(params, variant, Resources(folder / "checkpoint.safetensors", job(folder).backbones))


def test_a_result_is_a_picture_in_range_and_not_the_original(folder):
    made = method(folder).anonymize(faces(), 0)
    assert made.shape == faces().images.shape
    assert made.dtype == np.float32
    assert np.abs(made).max() <= 1
    assert np.abs(made - faces().images).mean() > 0.05


def test_a_face_does_not_depend_on_its_batch(folder):
    whole, chosen = faces(), method(folder)
    together = chosen.anonymize(whole, 3)
    for row in (0, 5):
        alone = chosen.anonymize(Faces(whole.images[row : row + 1], whole.index.iloc[row : row + 1]), 3)
        np.testing.assert_allclose(alone[0], together[row], atol=1e-4)


def test_the_seed_changes_the_result_and_repeats_it(folder):
    chosen = method(folder)
    first = chosen.anonymize(faces(), 1)
    assert np.array_equal(first, chosen.anonymize(faces(), 1))
    assert not np.allclose(first, chosen.anonymize(faces(), 2), atol=1e-4)


def test_the_result_depends_on_the_original_only_through_identity_and_attributes(folder):
    """Without noise the result is h(r_id, g(X)) without pasting (Eq. 13), which is the output of the network alone."""
    chosen = method(folder, epsilon=1e9)
    images = torch.from_numpy(faces().images)
    network = Disentanglement(PARAMS).eval()
    tensors, _ = checkpoints.load_checkpoint(folder / "checkpoint.safetensors")
    checkpoints.load_into(network, tensors["network"], folder)
    with torch.no_grad():
        expected = network(SmallIdentity()(images), images).numpy()
    np.testing.assert_allclose(chosen.anonymize(faces(), 0), expected, atol=1e-4)


def test_a_smaller_epsilon_moves_the_picture_farther_from_its_reconstruction(folder):
    def moved(epsilon):
        return np.abs(method(folder, epsilon).anonymize(faces(), 0) - clean).mean()

    clean = method(folder, 1e9).anonymize(faces(), 0)
    distances = [moved(epsilon) for epsilon in (1e6, 1e4, 800.0)]
    assert distances == sorted(distances)


def test_the_measured_sensitivity_is_that_of_the_observed_set_and_below_the_bound(folder):
    chosen = method(folder, sensitivity="measured")
    chosen.observe([faces(4), Faces(-faces(2).images, faces(2).index)])
    with torch.no_grad():
        images = torch.from_numpy(np.concatenate([faces(4).images, -faces(2).images]))
        vectors = SmallIdentity()(images).double().numpy()
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
        chosen.observe([faces(1)])


def test_the_bound_of_the_sensitivity_needs_no_observation(folder):
    assert method(folder).statement()["sensitivity"] == pytest.approx(2 * np.sqrt(512))


def test_opendp_noise_differs_every_time(folder):
    chosen = method(folder, sampler="opendp")
    assert not np.allclose(chosen.anonymize(faces(2), 0), chosen.anonymize(faces(2), 0), atol=1e-4)


def test_pictures_of_another_size_are_refused(folder):
    with pytest.raises(PictureError, match="takes 32 x 32"):
        method(folder).anonymize(faces(size=64), 0)


def test_a_checkpoint_of_other_widths_is_refused(folder):
    wider = PARAMS.model_copy(update={"encoder_widths": [8, 4, 4, 4]})
    with pytest.raises(CheckpointError, match="does not fit"):
        method(folder, params=wider)


def test_a_checkpoint_of_another_identity_encoder_is_refused(folder, tmp_path):
    other = tmp_path / "identity.safetensors"
    other.write_bytes(b"another encoder")
    variant = METHOD.Variant(epsilon=6.0, sensitivity="bound", sampler="seeded")
    with pytest.raises(CheckpointError, match="another backbone 'identity'"):
        METHOD(PARAMS, variant, Resources(folder / "checkpoint.safetensors", {"identity": other}))


def test_a_sample_picture_of_a_training_shows_the_noised_identity(folder, monkeypatch):
    arguments = {}
    monkeypatch.setattr(
        training, "samples", lambda network, identity, faces, alter: arguments.update(alter=alter) or faces[0]
    )
    METHOD.train(PARAMS, job(folder))
    vectors = np.eye(512)[:3]
    noised = arguments["alter"](vectors)
    assert np.allclose(np.linalg.norm(noised, axis=1), 1)
    assert np.abs((noised * vectors).sum(axis=1)).max() < 0.5
