"""Stage I: network, losses and training, by hand and at the published sizes, and Stage I between frozen networks."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import kit
from masquerade.backbones import load_backbone
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive
from masquerade.methods import Resources
from masquerade.methods._disentanglement import DisentanglementSettings, training
from masquerade.methods._disentanglement.network import AAD, AttributeEncoder, FrozenStageOne, LatentDisentanglement
from masquerade.methods.latent import codes
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks.inputs import apply_in_batches
from masquerade.params import loading
from masquerade.training import checkpoints, loop

PIXELS = {"width": 4, "depth": 2, "scales": 2}
PUBLISHED = (32, 64, 128, 256, 512, 1024, 1024)


KNOBS = {
    "encoder_widths": [4, 4, 4, 4], "generator_widths": [8, 8, 8, 4, 4], "discriminator": PIXELS,
    "losses": {"adversarial": 1, "attributes": 10, "identity": 5, "reconstruction": 10},
    "steps": 6, "batch": 4, "same_pairs": 0.5, "learning_rate": 4e-4, "betas": [0.0, 0.999], "ema": 0.5,
    "samples_every": 3,
}  # fmt: skip
SMALL = {"noised": 0.25, "kernel_rate": 0.01, "cooldown": 0.5, "refinement_size": 32}


def settings(small=None, **changes):
    return DisentanglementSettings(**{**KNOBS, **changes, "small_scale": SMALL | (small or {})})


@pytest.fixture
def identity():
    return kit.Identity()


@pytest.fixture
def job(tmp_path):
    kit.archive(tmp_path / "faces.zip", kit.noise(12, tile=16), size=32)
    (tmp_path / "identity.safetensors").write_bytes(b"stands for the encoder's file")
    return partial(kit.job, tmp_path, backbones=["identity"], seed=7)


def task(identity, **changes):
    pictures = kit.noise(8)
    return training.StageOneTask(settings(**changes), identity, pictures, apply_in_batches(identity, 256, pictures), 7)


@pytest.fixture
def stage1(identity, request):
    return task(identity, steps=2, small=getattr(request, "param", {}))


# The published sizes.


def test_attribute_maps_have_the_published_channels_and_sizes():
    with torch.device("meta"):
        maps = AttributeEncoder(PUBLISHED)(torch.empty(2, 3, 256, 256))
    expected = [(1024, 2), (2048, 4), (1024, 8), (512, 16), (256, 32), (128, 64), (64, 128), (64, 256)]
    assert [tuple(level.shape[1:]) for level in maps] == [(channels, side, side) for channels, side in expected]


# The AAD layer: with h = (-1, 1) its instance norm is (-1, 1) (the variance is 1, up to the norm's epsilon 1e-5).


def aad(mask_bias):
    """gamma_att 2, beta_att z_att; gamma_id 3, beta_id z_id: A = 2 h' + z_att, I = 3 h' + z_id."""
    layer = AAD(1, 1, 1)
    with torch.no_grad():
        layer.attribute.weight.copy_(torch.tensor([0.0, 1.0]).reshape(2, 1, 1, 1))
        layer.attribute.bias.copy_(torch.tensor([2.0, 0.0]))
        layer.identity.weight.copy_(torch.tensor([0.0, 1.0]).reshape(2, 1))
        layer.identity.bias.copy_(torch.tensor([3.0, 0.0]))
        layer.mask.weight.zero_()
        layer.mask.bias.fill_(mask_bias)
    features = torch.tensor([-1.0, 1.0]).reshape(1, 1, 1, 2)
    attributes = torch.tensor([10.0, 20.0]).reshape(1, 1, 1, 2)
    return layer(features, attributes, torch.tensor([[100.0]])).flatten().tolist()


@pytest.mark.parametrize(
    ("mask_bias", "expected"),
    [
        (-100.0, [-2 + 10, 2 + 20]),  # M = 0: attributes alone
        (100.0, [-3 + 100, 3 + 100]),  # M = 1: identity alone
        (0.0, [(8 + 97) / 2, (22 + 103) / 2]),  # M = 1/2: their mean
    ],
)
def test_the_attention_mask_chooses_between_attributes_and_identity(mask_bias, expected):
    assert aad(mask_bias) == pytest.approx(expected, abs=1e-3)


# The losses.


def test_hinge_losses_equal_values_worked_by_hand():
    real = [torch.tensor([2.0, 0.5]), torch.tensor([0.0])]
    fake = [torch.tensor([-2.0, 0.5]), torch.tensor([1.0])]
    # Finer scale: mean(0, 0.5) + mean(0, 1.5) = 1; coarser: 1 + 2 = 3.
    assert training.discriminator_loss(real, fake).item() == pytest.approx(2.0)
    # -mean(-2, 0.5) = 0.75 and -1.
    assert training.adversarial_loss(fake).item() == pytest.approx(-0.125)


def test_identity_loss_is_one_minus_the_cosine():
    made = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    target = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert training.identity_loss(made, target).item() == pytest.approx((0 + 1 + 2) / 3)


def test_attribute_loss_is_half_the_sum_over_levels():
    made = [torch.tensor([1.0, 3.0]), torch.tensor([2.0])]
    target = [torch.tensor([0.0, 0.0]), torch.tensor([0.0])]
    assert training.attribute_loss(made, target).item() == pytest.approx(0.5 * ((1 + 9) / 2 + 4))


def test_reconstruction_loss_counts_same_pairs_only():
    made, target = torch.zeros(3, 3, 2, 2), torch.ones(3, 3, 2, 2)
    target[1] = 9.0
    assert training.reconstruction_loss(made, target, torch.tensor([True, False, True])).item() == pytest.approx(0.5)
    assert training.reconstruction_loss(made, target, torch.tensor([False] * 3)).item() == 0.0


# The training.


def test_the_share_of_same_pairs_is_exact_and_other_pairs_have_two_pictures(stage1):
    for step in range(20):
        giver, attributes, same = stage1.draw_pairs(step)
        assert same.sum() == 2
        assert np.array_equal(giver == attributes, same)


def test_a_share_of_the_identities_is_moved_to_random_directions(stage1):
    vectors = stage1.identities[:4]
    moved = stage1._add_noise(vectors, 0.25, 0)
    assert torch.equal(moved[:3], vectors[:3])
    assert (moved[3] @ vectors[3]).item() < 0.999
    torch.testing.assert_close(moved.norm(dim=1), torch.ones(4))
    assert torch.equal(stage1._add_noise(vectors, 0.25, 0), moved)
    assert not torch.equal(stage1._add_noise(vectors, 0.25, 1), moved)


def test_the_generator_takes_the_span_of_the_people_alone(identity):
    """Vectors of two directions: what lies outside their plane changes no image, and noise is drawn in the plane."""
    people = nn.functional.normalize(torch.cat([torch.randn(12, 2), torch.zeros(12, 6)], dim=1))
    pictures = kit.noise(12)
    chosen = training.StageOneTask(settings({"span": 2}), identity, pictures, people, 0)
    network, images = chosen.network.eval(), torch.rand(4, 3, 32, 32)
    outside = torch.cat([torch.zeros(4, 2), torch.randn(4, 6)], dim=1)
    torch.testing.assert_close(network.project(people), people)
    torch.testing.assert_close(network(people[:4] + outside, images), network(people[:4], images))
    assert chosen._add_noise(people[:4], 0.5, 0)[:, 2:].abs().max() < 1e-6
    assert not torch.allclose(network(people[:1], images[:1]), network(people[1:2], images[:1]))


def test_total_is_equation_18_and_the_identity_encoder_does_not_change(stage1, identity):
    before = identity.project.weight.clone()
    values = stage1.step(0)
    expected = (
        values["adversarial"] + 10 * values["attributes"] + 5 * values["identity"] + 10 * values["reconstruction"]
    )
    assert values["total"] == pytest.approx(expected, rel=1e-5)
    assert torch.equal(identity.project.weight, before)


@pytest.mark.parametrize(("number", "own"), enumerate(["discriminator", "refining_discriminator"]))
@pytest.mark.parametrize("stage1", [{"refinement_steps": 3}], indirect=True)
def test_each_optimizer_changes_its_own_network_only(stage1, number, own):
    def changed_by(update):
        before = {name: next(module.parameters()).clone() for name, module in stage1.modules.items()}
        result = update()
        changed = {n for n, value in before.items() if not torch.equal(next(stage1.modules[n].parameters()), value)}
        return result, changed

    phase, images, same = stage1.phases[number], torch.rand(4, 3, 32, 32), torch.tensor([True] * 4)
    (_, generated), changed = changed_by(
        lambda: stage1._update_generator(phase, images, stage1.identities[:4], same, 1.0)
    )
    assert changed == {"network"}
    assert changed_by(lambda: stage1._update_discriminator(phase, images, generated))[1] == {own}


@pytest.mark.parametrize("stage1", [{"refinement_steps": 3}], indirect=True)
def test_the_refinement_follows_with_its_own_losses_and_rates(stage1):
    pixels, features = (next(phase.discriminator.parameters()) for phase in stage1.phases)
    first = features.clone()
    values = stage1.step(1)
    assert values["total"] == pytest.approx(total(values, stage1.settings.losses), rel=1e-5)
    assert torch.equal(features, first)  # the refinement begins at step 2
    before = pixels.clone()
    values = stage1.step(2)
    assert values["total"] == pytest.approx(total(values, training.REFINEMENT_WEIGHTS), rel=1e-5)
    assert torch.equal(pixels, before)
    assert not torch.equal(features, first)


def total(values, weights):
    """Eq. 18."""
    return sum(getattr(weights, name) * values[name] for name in KNOBS["losses"])


def test_training_learns_to_reconstruct(identity, job):
    curve = kit.Curve()
    chosen = settings({"noised": 0.0}, steps=60, same_pairs=1.0, learning_rate=4e-3, samples_every=60)
    training.train(chosen, job(log=curve), {"identity": identity})
    assert curve.of("reconstruction")[-1] < 0.8 * curve[0]["reconstruction"]


def test_a_checkpoint_is_reused_only_for_the_same_training(identity, job, monkeypatch):
    first_job = job("first")
    training.train(settings(), first_job, {"identity": identity})
    beside = {"library": nn.Linear(2, 3)}
    kin = dataclasses.replace(job("kin"), base=first_job.checkpoint)
    with monkeypatch.context() as patched:
        patched.setattr(loop, "fit", lambda *_, **__: pytest.fail("it was trained again"))
        training.train(settings(), kin, {"identity": identity}, beside=beside)
    first, second = (checkpoints.load_checkpoint(of.checkpoint)[0] for of in (first_job, kin))
    assert second["library"].keys() == {"weight", "bias"}
    torch.testing.assert_close(second["network"], first["network"], rtol=0, atol=0)
    training.train(settings({"noised": 0.0}, same_pairs=1.0), kin, {"identity": identity})
    other, _ = checkpoints.load_checkpoint(kin.checkpoint)
    assert not all(torch.equal(value, other["network"][name]) for name, value in first["network"].items())


def test_pictures_of_another_size_are_refused_with_what_to_change(identity, job):
    with pytest.raises(ParameterError, match="encoder_widths"):
        training.train(settings(encoder_widths=[4, 4, 4], generator_widths=[8, 8, 4, 4]), job(), {"identity": identity})


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


def method(world, latents=None, identity_steps=0):
    folder, paths = world
    variant = METHOD.Variant(epsilon=6.0, sensitivity="bound", sampler="seeded", identity_steps=identity_steps)
    return METHOD(PARAMS, variant, Resources(folder / "identitydp.safetensors", paths, latents=latents))


def test_it_needs_generator_and_inversion_and_the_published_one_neither():
    assert (METHOD.list_backbones(PARAMS), METHOD.list_backbones(MINI)) == (NEEDS, ("identity",))
    cao = discovery.load("methods", "cao21")
    assert cao.list_backbones(PARAMS) == NEEDS


def test_it_starts_as_the_inversion_whatever_the_identity(world):
    frozen = {role: load_backbone(role, world[1]) for role in NEEDS}
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


def test_steps_bring_the_image_nearer_to_the_identity_and_each_face_alone(world):
    mapped, approached = (FrozenStageOne(PARAMS, method(world).resources, steps) for steps in (0, 8))
    images = FaceArchive(world[0] / "faces.zip").load("test").images
    maps, network = mapped.attributes(images), mapped.network
    target = np.roll(mapped.identities(images), 1, axis=0)

    def measure_cosines(drawn):
        vectors = (torch.from_numpy(part) @ network.basis.mT for part in (mapped.identities(drawn), target))
        return torch.cosine_similarity(*vectors)

    nearer = approached.fuse(target, maps)
    assert (measure_cosines(nearer) > measure_cosines(mapped.fuse(target, maps))).all()
    np.testing.assert_allclose(approached.fuse(target[1:2], [maps[0][1:2]]), nearer[1:2], atol=1e-3)


def test_steps_without_a_latent_space_are_refused(world):
    with pytest.raises(ParameterError, match="identity_steps is 8, but the published generator has no latent codes"):
        FrozenStageOne(MINI, method(world).resources, 8)


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
