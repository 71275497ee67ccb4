"""Stage I of IdentityDP and Cao et al. between a frozen inversion and a frozen generator."""

import numpy as np
import pytest
import torch

import kit
from masquerade.backbones import loaded
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.core.images import FaceArchive
from masquerade.methods import Resources
from masquerade.methods._disentanglement.network import LatentDisentanglement
from masquerade.methods.latent import codes
from masquerade.methods.latent.space import LatentSpace
from masquerade.params import loading
from masquerade.training import checkpoints

METHOD = discovery.load("methods", "identitydp")
MINI = loading.load(scale="mini").methods["identitydp"].params
PARAMS = MINI.model_copy(
    update=MINI.model_validate(
        MINI.model_dump()
        | {
            "steps": 3, "batch": 4, "same_pairs": 0.25, "samples_every": 3,
            "small_scale": {"latent_hidden": 32, "span": 8, "noised": 0.5},
            "losses": {"adversarial": 0.0, "attributes": 10.0, "identity": 5.0, "reconstruction": 10.0},
        }
    ).__dict__
)  # fmt: skip
NEEDS = ("identity", "generator", "inversion")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Small networks with random weights, an archive, and a trained checkpoint."""
    folder = tmp_path_factory.mktemp("latent")
    paths = kit.networks(folder)
    kit.archive(folder / "faces.zip", kit.noise(14), rows=[{}] * 10 + [{"split": "test"}] * 4, size=kit.SIZE)
    backbones = {role: paths[role] for role in NEEDS}
    METHOD.train(PARAMS, kit.job(folder, "identitydp", backbones))
    return folder, paths


def method(world, latents=None):
    folder, paths = world
    variant = METHOD.Variant(epsilon=6.0, sensitivity="bound", sampler="seeded")
    return METHOD(PARAMS, variant, Resources(folder / "identitydp.safetensors", paths, latents=latents))


def test_it_needs_generator_and_inversion_and_the_published_one_neither():
    assert (METHOD.list_backbones(PARAMS), METHOD.list_backbones(MINI)) == (NEEDS, ("identity",))
    cao = discovery.load("methods", "cao21")
    assert cao.list_backbones(PARAMS) == NEEDS


def test_it_starts_as_the_inversion_whatever_the_identity(world):
    frozen = {role: loaded(role, world[1]) for role in NEEDS}
    network = LatentDisentanglement(PARAMS, frozen["generator"], frozen["inversion"])
    images = torch.from_numpy(FaceArchive(world[0] / "faces.zip").load("test").images)
    with torch.no_grad():
        expected = frozen["generator"].synthesize(frozen["inversion"](images))
        torch.testing.assert_close(network(torch.randn(4, 512), images), expected, atol=1e-4, rtol=1e-4)


def test_the_mapping_alone_learns_and_the_loss_of_identities_falls(world):
    folder, paths = world
    curve = kit.Curve()
    longer = PARAMS.model_copy(update={"steps": 40, "learning_rate": 0.01})
    METHOD.train(longer, kit.job(folder, "longer", {role: paths[role] for role in NEEDS}, log=curve))
    tensors, metadata = checkpoints.load_checkpoint(folder / "longer.safetensors")
    assert {name.partition(".")[0] for name in tensors["network"]} == {"mapping", "basis"}
    assert set(NEEDS) <= metadata.keys()
    assert "adversarial" not in curve[0]
    identities = curve.of("identity")
    assert np.mean(identities[-3:]) < identities[0]


def test_codes_that_the_pipeline_has_are_taken(world, monkeypatch):
    folder, paths = world
    codes.write_codes(LatentSpace(paths), FaceArchive(folder / "faces.zip"), folder / "codes.safetensors")
    faces = FaceArchive(folder / "faces.zip").load("test")
    computed = method(world).anonymize(faces, seed=0)
    chosen = method(world, folder / "codes.safetensors")
    monkeypatch.setattr(LatentSpace, "invert", lambda *_: pytest.fail("it was inverted again"))
    np.testing.assert_allclose(chosen.anonymize(faces, seed=0), computed, atol=1e-4)


def test_a_checkpoint_of_another_generator_is_refused(world, tmp_path):
    folder, paths = world
    other = kit.networks(tmp_path, architecture=kit.ARCHITECTURE | {"mapping": 1})
    variant = METHOD.Variant(epsilon=6.0, sensitivity="bound", sampler="seeded")
    mixed = {**other, "identity": paths["identity"]}
    with pytest.raises(CheckpointError, match="generator"):
        METHOD(PARAMS, variant, Resources(folder / "identitydp.safetensors", mixed))
