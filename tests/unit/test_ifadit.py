"""iFADIT: its parts against independent values; its key, its recovery, its two phases and its refusals."""

from functools import partial

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.nn.functional import leaky_relu, normalize

import kit
from masquerade.backbones.inversion.inverter import Inverter
from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import to_float, to_uint8
from masquerade.judges.pixels import Pixels
from masquerade.methods import Resources
from masquerade.methods.ifadit import FlowSettings, IfaditSettings, IfaditSmallScale, losses
from masquerade.methods.ifadit.frozen import FrozenNetworks, TrainingImages
from masquerade.methods.ifadit.losses import blur_mask, refine, soft_mask
from masquerade.methods.ifadit.network import (
    IdentityCompensation,
    SecureCouplingBlock,
    SecureFlow,
    Span,
    Transform,
    draw_secrets,
    map_secrets,
)
from masquerade.methods.ifadit.training import PhaseTwo, build_disentangler, draw_pairs, project_to_visible
from masquerade.networks.identity_mapping import IdentityMapping
from masquerade.networks.inputs import round_to_8_bits
from masquerade.networks.latent_encoders import Encoder4Editing
from masquerade.networks.stylegan2 import Generator
from masquerade.networks.w_space import LinearCodes
from masquerade.training import checkpoints

WIDTH, SECRET = 512, 24
SEEDS = st.integers(0, 2**31)


def unit(count, seed):
    return normalize(torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed)))


def transform():
    flow = FlowSettings(blocks=4, hidden=[32], limit=0.5)
    small_scale = IfaditSmallScale(flow_start=0.5, residual_compensation=True)
    knobs = {"flow": flow, "compensation": True, "compensation_widths": [8, 8, 8], "small_scale": small_scale}
    return Transform(IfaditSettings.model_construct(**knobs), SECRET)


@settings(max_examples=25, deadline=None)
@given(weights=SEEDS, vectors=SEEDS, secret=SEEDS, limit=st.floats(0.1, 1.0), start=st.floats(0.01, 0.6))
def test_the_inverse_recovers_every_identity_under_every_secret(weights, vectors, secret, limit, start):
    torch.manual_seed(weights)
    flow = SecureFlow(WIDTH, SECRET, blocks=4, limit=limit, start=start)
    identity = unit(5, vectors)
    key = torch.randn(5, SECRET, generator=torch.Generator().manual_seed(secret))
    with torch.no_grad():
        back = flow.inverse(flow(identity, key), key)
    assert (back - identity).abs().max() <= 1e-5


def test_another_secret_does_not_recover_the_identity():
    torch.manual_seed(0)
    flow, identity, key = SecureFlow(WIDTH, SECRET), unit(5, 1), torch.randn(5, SECRET)
    with torch.no_grad():
        back = flow.inverse(flow(identity, key), torch.randn(5, SECRET))
    assert (back - identity).norm(dim=1).min() > 0.1


def test_a_block_computes_equations_5_and_6():
    block = SecureCouplingBlock(half=2, secret=1, hidden=[], limit=2.0)
    answers = {"omega": 0.0, "phi": 0.5, "rho": 1.0, "eta": -1.0}
    for name, value in answers.items():
        getattr(block, name)[0].weight.data.zero_()
        getattr(block, name)[0].bias.data.fill_(value)
    first, second = block(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.zeros(1, 1))
    np.testing.assert_allclose(second.detach(), [[3 * np.e + 0.5, 4 * np.e + 0.5]], rtol=1e-6)  # a(0) = 2 / 2
    scale = np.exp(2 / (1 + np.exp(-1.0)))
    np.testing.assert_allclose(first.detach(), [[scale - 1, 2 * scale - 1]], rtol=1e-6)


def test_aligned_identities_are_recovered_and_stay_in_the_space_of_identities():
    torch.manual_seed(0)
    basis = torch.linalg.qr(torch.randn(WIDTH, 12)).Q.T
    identity = normalize(torch.randn(300, 12) @ basis)
    made, key = transform(), torch.randn(300, SECRET)

    def inside(vectors):
        return ((vectors @ basis.T).square().sum(1) / vectors.square().sum(1)).mean()

    with torch.no_grad():
        assert inside(made(identity, key)) < 0.7
        made.align(identity)
        changed = made(identity, key)
        assert (made.inverse(changed, key) - identity).abs().max() <= 1e-5
        assert inside(changed) > 0.99


def test_a_picture_shows_the_directions_in_which_faces_differ():
    identity = torch.diag(torch.tensor([2.0, 1.0, 0.0]))  # mean squares 4/3, 1/3, 0
    visibility = project_to_visible(identity, floor=0.25)
    np.testing.assert_allclose(visibility, np.diag([1 / 1.25, 0.5, 0.0]), atol=1e-6)


def test_the_secret_vector_is_the_mapped_code_of_bytes_from_minus_one_to_one():
    torch.manual_seed(0)
    generator = Generator(8, (4, 4), style=3, mapping=2)
    pseudorandom = torch.tensor([[0, 255, 127]], dtype=torch.uint8)
    expected = generator.map(torch.tensor([[-1.0, 1.0, 127 / 127.5 - 1]]))
    np.testing.assert_allclose(map_secrets(generator, pseudorandom), expected.detach(), atol=1e-6)


def test_drawn_pairs_share_their_secrets_and_are_different_faces():
    generator, draw = Generator(8, (4, 4), style=3, mapping=2), np.random.default_rng(0)
    first, second = draw_secrets(generator, draw, 6)
    assert torch.equal(first[0::2], first[1::2])
    assert torch.equal(second[0::2], second[1::2])
    assert not torch.isclose(first, second).all(dim=1).any()
    rows = draw_pairs(draw, 3, 400)
    assert (rows[0::2] != rows[1::2]).all()
    assert rows.max() < 3


@pytest.mark.parametrize("shared", [False, True])
def test_the_mapping_is_an_mlp_of_two_layers_for_each_style_layer_or_for_all(shared):
    torch.manual_seed(0)
    mapping = IdentityMapping(layers=3, identity=4, style=2, hidden=5, shared=shared)
    identity, attributes = torch.randn(6, 4), torch.randn(6, 3, 2)
    for layer in range(3):
        used = 0 if shared else layer
        x = torch.cat([2 * identity, attributes[:, layer]], dim=1)  # sqrt(4) times the replicated identity
        x = leaky_relu(x @ mapping.first.weight[used] + mapping.first.bias[used], 0.2)
        expected = x @ mapping.second.weight[used] + mapping.second.bias[used]
        np.testing.assert_allclose(mapping(identity, attributes)[:, layer].detach(), expected.detach(), atol=1e-5)


def test_a_mapping_can_start_with_the_attributes_alone():
    mapping, attributes = IdentityMapping(2, 4, 3, hidden=8), torch.randn(5, 2, 3)
    mapping.start_at_attributes()
    np.testing.assert_allclose(mapping(torch.randn(5, 4), attributes).detach(), attributes, atol=1e-6)
    with pytest.raises(ValueError, match="6 are needed"):
        IdentityMapping(2, 4, 3, hidden=5).start_at_attributes()


@pytest.mark.parametrize("residual", [False, True])
def test_the_compensation_is_an_mlp_of_four_layers_and_a_residual_one_starts_by_changing_nothing(residual):
    torch.manual_seed(0)
    layer, vectors = IdentityCompensation(8, (5, 6, 7), residual), torch.randn(3, 8)
    torch.testing.assert_close(layer(vectors), vectors if residual else layer.layers(vectors * 8**0.5) / 8**0.5)
    assert sum(isinstance(part, torch.nn.Linear) for part in layer.layers) == 4


def test_the_parsing_term_is_the_norm_of_equation_20_or_its_square():
    made, target = torch.zeros(2, 3, 2, 2), torch.zeros(2, 3, 2, 2)
    made[0], made[1, 0] = 2.0, 3.0  # norms sqrt(12 * 4) and sqrt(4 * 9), of 12 logits each
    assert losses.parsing_loss(made, target, squared=False).item() == pytest.approx((48**0.5 + 6) / 2 / 12**0.5)
    assert losses.parsing_loss(made, target, squared=True).item() == pytest.approx((48 + 36) / 24)
    same = target.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(losses.parsing_loss(same, target, squared=False), same)
    assert torch.equal(slope, torch.zeros_like(slope))


def test_structural_similarity_equals_that_of_the_judge():
    pictures = np.random.default_rng(0).integers(0, 256, (3, 24, 20, 3), dtype=np.uint8)
    pair = to_float(pictures), to_float(pictures // 2 + 40)
    judged = Pixels(Pixels.Params(), {}).measure(*pair)["ssim"]
    np.testing.assert_allclose(losses.structural_similarity(*map(torch.from_numpy, pair)), judged, atol=1e-5)


def test_visual_quality_is_equation_12():
    made, target = torch.rand(2, 3, 16, 16) * 2 - 1, torch.rand(2, 3, 16, 16) * 2 - 1
    by_hand = 0.84 * (1 - losses.structural_similarity(made, target).mean()) + 0.16 * (made - target).abs().mean()
    assert losses.visual_quality_loss(made, target, 0.84, 0.16).item() == pytest.approx(by_hand.item())


def test_identity_losses_are_equations_15_to_19():
    east, north = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    between = torch.tensor([[0.6, 0.8]])
    assert losses.anonymity_loss(between, east).item() == pytest.approx(0.6)
    assert losses.anonymity_loss(-between, east).item() == 0.0  # theta^+ ignores opposite vectors
    assert losses.dissimilarity(-between, east).item() == pytest.approx(1.6)  # theta^- does not ignore them
    assert losses.recovery_loss(between, -east, east).item() == pytest.approx(0.4)
    # two faces under two secrets: cosines of faces 0 and 0.6, their mean 0.3; of secrets 1 and 0.8, their mean 0.9
    first, second = torch.cat([east, north]), torch.cat([east, between])
    assert losses.diversity_loss(first, second).item() == pytest.approx(0.3 + 0.9)


def test_the_mask_at_256_pixels_is_blurred_as_opencv_does_with_15_pixels():
    mask = np.zeros((256, 256), np.float32)
    mask[60:200, 90:170] = 1
    expected = cv2.GaussianBlur(mask, (15, 15), 0)
    np.testing.assert_allclose(blur_mask(torch.from_numpy(mask)[None, None])[0, 0], expected, atol=1e-4)


def test_the_head_mask_includes_hair_and_the_face_mask_does_not():
    labels = torch.zeros(1, 64, 64, dtype=torch.uint8)
    labels[:, :32], labels[:, 32:48] = 17, 1  # hair, skin
    face, head = (soft_mask(labels, region)[0, 0, :, 32] for region in ("face", "head"))
    assert face[10] == 0
    assert head[10] == pytest.approx(1)
    assert face[40] == pytest.approx(1)
    assert 0 < face[32] < 1
    assert 0 < head[47] < 1
    assert head[60] == 0


def test_refinement_keeps_only_the_background():
    made, background = torch.full((1, 3, 4, 4), 0.5), torch.full((1, 3, 4, 4), -0.5)
    mask = torch.tensor([0.0, 0.25, 1.0, 1.0]).expand(1, 1, 4, 4)
    np.testing.assert_allclose(refine(made, background, mask)[0, 0, 0], [-0.5, -0.25, 0.5, 0.5])


def test_a_rounded_picture_is_one_of_8_bits_and_has_a_gradient():
    images = torch.linspace(-1.2, 1.2, 48).view(1, 3, 4, 4).requires_grad_(True)
    levels = (round_to_8_bits(images) + 1) * 127.5
    np.testing.assert_allclose(levels.detach(), levels.detach().round(), atol=1e-3)
    round_to_8_bits(images).sum().backward()
    assert torch.equal(images.grad, (images.detach().abs() <= 1).float())


METHOD = discovery.load("methods", "ifadit")
SIZE, STYLE = 32, 8
WIDTHS, UNITS = kit.WIDTHS, kit.UNITS
IMAGE = {"pixels": 1.0, "lpips": 0.0, "landmarks": 0.1, "parsing": 0.01}
PARAMS = METHOD.Params(
    encoder={"kind": "e4e", "input_size": SIZE, "widths": WIDTHS, "units": UNITS},
    mapping=20,
    flow={"blocks": 2, "hidden": [8], "limit": 0.5},
    compensation_widths=[8, 8, 8],
    phase_one={"steps": 2, "batch": 4, "learning_rate": 1e-3, "structure": 0.84, "pixels": 0.16, "quality": 0.01},
    phase_two={"steps": 2, "batch": 4, "learning_rate": 1e-3, "recovered": IMAGE, "altered": IMAGE, "alone": 2},
    betas=[0.9, 0.99], region="face", diversity_loss=True, image_loss=True, compensation=True, dual_phase=True,
    samples_every=2,
    small_scale={
        "encoder_start": "inversion", "mapping_per_layer": True, "flow_start": 0.5, "flow_aligned": True,
        "residual_compensation": True, "muon": True, "cooldown": 0.4, "swapped": 0.5, "cycle": 1.0,
        "rehearsal": {"steps": 2, "batch": 4, "learning_rate": 1e-3}, "pooled_image_terms": True,
        "squared_parsing": True, "compensation_weight": 1.0, "refined": True,
    },
)  # fmt: skip
KEY, OTHER = (METHOD.capabilities.keys.experiment(0, number) for number in range(2))


def each(key):
    """One key for all `faces`."""
    return [key] * len(faces())


class SmallLandmarks(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(48, 136)

    def forward(self, images):
        return self.project(nn.functional.adaptive_avg_pool2d(images, 4).flatten(1)).view(-1, 68, 2)


class SmallParser(nn.Module):
    """Labels the middle of every image as skin."""

    def __init__(self):
        super().__init__()
        self.project = nn.Conv2d(3, 19, 1)

    def forward(self, images):
        return self.project(images)

    def labels(self, images):
        labels = torch.zeros(len(images), *images.shape[2:], dtype=torch.uint8)
        labels[:, 8:24, 8:24] = 1
        return labels


def backbone(name):
    torch.manual_seed(5)
    generator = Generator(SIZE, (4, 4, 4, 4), style=STYLE, mapping=2)
    if name == "inversion":
        mean = torch.zeros(generator.layers, STYLE)
        network = Inverter(Encoder4Editing(generator.layers, SIZE, STYLE, WIDTHS, UNITS), mean, "its generator")
    else:
        network = {"generator": generator, "identity": kit.Identity(512, 8), "landmarks": SmallLandmarks(),
                   "parsing": SmallParser()}[name]  # fmt: skip
    return network.eval().requires_grad_(False)


def test_attributes_start_as_those_of_the_inversion_with_its_linear_codes():
    torch.manual_seed(0)
    linear, mean = LinearCodes(32, STYLE), torch.randn(8, STYLE)
    linear.learn([torch.rand(20, 3, 32, 32) * 2 - 1], torch.ones(1, 32, 32), seed=0)
    encoder = Encoder4Editing(8, SIZE, STYLE, WIDTHS, UNITS)
    inverter = Inverter(encoder, mean, "its generator", linear).eval()
    images, identity = torch.rand(3, 3, 32, 32) * 2 - 1, torch.randn(3, 512)
    chosen = changed(small={"linear": True})
    disentangler = build_disentangler(chosen, mean, kit.Identity(512, 8), inverter).eval()
    codes = disentangler.codes(identity, disentangler.attributes(images))
    torch.testing.assert_close(codes, inverter(images), atol=1e-4, rtol=1e-4)
    with pytest.raises(ParameterError, match=r"linear must be backbones\.inversion\.small_scale\.linear"):
        build_disentangler(PARAMS, mean, kit.Identity(512, 8), inverter)
    with pytest.raises(ParameterError, match="linear must be"):
        build_disentangler(chosen, mean, kit.Identity(512, 8), Inverter(encoder, mean, "its generator"))


@pytest.fixture(autouse=True)
def small_backbones(monkeypatch):
    kit.replace_backbones(monkeypatch, **{name: backbone(name) for name in METHOD.needs})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An archive, placeholder files for the backbones, and a trained checkpoint."""
    folder = tmp_path_factory.mktemp("ifadit")
    for name in METHOD.needs:
        (folder / f"{name}.safetensors").write_bytes(f"stands for the {name}".encode())
    kit.archive(folder / "faces.zip", kit.noise(10), size=SIZE)
    with pytest.MonkeyPatch.context() as patch:
        kit.replace_backbones(patch, **{name: backbone(name) for name in METHOD.needs})
        METHOD.train(PARAMS, job(folder, "checkpoint"))
    return folder


def job(folder, name, **more):
    return kit.job(folder, name, METHOD.needs, **more)


def changed(small=None, **fields):
    small_scale = PARAMS.small_scale.model_copy(update=small or {})
    return PARAMS.model_copy(update={"small_scale": small_scale, **fields})


faces = partial(kit.faces, 5)


def method(folder, params=PARAMS, name="checkpoint"):
    resources = Resources(folder / f"{name}.safetensors", job(folder, name).backbones)
    return METHOD(params, METHOD.Variant(), resources)


def logged(folder, params, base):
    """The phases of a training."""
    curve = kit.Curve()
    METHOD.train(params, job(folder, "ablation", base=base, log=curve))
    return {name.partition("/")[0] for values in curve.values() for name in values}


def test_the_background_stays_and_the_face_does_not(folder):
    original = faces().images
    made = method(folder).anonymize(faces(), 0, each(KEY))
    assert np.array_equal(made[..., :4], original[..., :4])
    assert np.abs(made - original)[..., 12:20, 12:20].mean() > 0.1


def test_a_smaller_drawn_face_leaves_the_original_around_it(folder, monkeypatch):
    first = method(folder, changed({"overlap": True}))
    whole, parser = first.anonymize(faces(), 0, each(KEY)), first._networks.parsing
    middle = parser.labels(torch.zeros(5, 3, SIZE, SIZE))
    upper = middle.clone()
    upper[:, 16:] = 0
    sizes = iter([middle, upper])
    monkeypatch.setattr(parser, "labels", lambda images: next(sizes))
    made = method(folder, changed({"overlap": True})).anonymize(faces(), 0, each(KEY))
    np.testing.assert_array_equal(made[:, :, 8:15], whole[:, :, 8:15])
    np.testing.assert_array_equal(made[:, :, 18:], faces().images[:, :, 18:])


def test_the_saved_representation_does_not_depend_on_the_key(folder):
    saved = method(folder).save(faces(), 0, each(KEY))
    everything = b"".join(part.tobytes() for part in (saved.identity, saved.attributes, saved.images))
    assert KEY not in everything
    assert KEY.hex().encode() not in everything


def test_recover_keeps_the_background_of_the_picture_and_recover_onto_that_of_the_original(folder):
    chosen = method(folder)
    public = to_float(to_uint8(chosen.anonymize(faces(), 0, each(KEY))))
    originals = faces().images
    assert np.array_equal(chosen.recover(public, each(KEY))[..., :4], public[..., :4])
    assert np.array_equal(chosen.recover_onto(public, each(KEY), originals)[..., :4], originals[..., :4])


def test_views_show_the_face_without_its_identity_or_its_attributes(folder):
    views = method(folder).views(faces())
    assert set(views) == {"reconstructed", "de_identity", "de_attributes"}
    assert not np.allclose(views["reconstructed"], views["de_attributes"], atol=1e-4)


def test_the_second_phase_does_not_change_the_networks_of_the_first(folder):
    longer = changed(phase_two=PARAMS.phase_two.model_copy(update={"steps": 4}))
    METHOD.train(longer, job(folder, "longer"))
    parts = [checkpoints.load_checkpoint(folder / f"{name}.safetensors")[0] for name in ("checkpoint", "longer")]
    assert all(torch.equal(parts[0]["disentangler"][key], value) for key, value in parts[1]["disentangler"].items())
    assert any(not torch.equal(parts[0]["transform"][key], value) for key, value in parts[1]["transform"].items())


def test_an_ablation_that_reuses_the_first_phase_ends_with_the_same_weights(folder):
    without = changed(diversity_loss=False)
    METHOD.train(without, job(folder, "alone"))
    assert logged(folder, without, folder / "checkpoint.safetensors") == {"rehearsal", "phase_two"}
    assert fingerprints.md5(folder / "alone.safetensors") == fingerprints.md5(folder / "ablation.safetensors")


def test_the_first_phase_of_another_training_is_not_reused(folder):
    other = changed(phase_one=PARAMS.phase_one.model_copy(update={"quality": 0.5}))
    assert "phase_one" in logged(folder, other, folder / "checkpoint.safetensors")
    assert "phase_one" in logged(folder, PARAMS, folder / "missing.safetensors")


@pytest.mark.parametrize("switch", ["image_loss", "compensation", "dual_phase"])
def test_every_ablation_trains_and_anonymizes(folder, switch):
    params = changed(**{switch: False})
    phases = logged(folder, params, folder / "checkpoint.safetensors")
    assert phases == ({"phase_two"} if switch == "dual_phase" else {"rehearsal", "phase_two"})
    assert method(folder, params, "ablation").anonymize(faces(), 0, each(KEY)).shape == faces().images.shape


def test_an_encoder_unlike_the_inversion_cannot_start_from_it(folder):
    encoder = PARAMS.encoder.model_copy(update={"kind": "psp"})
    with pytest.raises(ParameterError, match="set it to 'identity'"):
        METHOD.train(changed(encoder=encoder), job(folder, "refused"))


def test_the_inversion_itself_can_encode_attributes_and_is_neither_trained_nor_saved(folder):
    encoder = PARAMS.encoder.model_copy(update={"kind": "inversion"})
    METHOD.train(changed(encoder=encoder), job(folder, "frozen"))
    tensors = checkpoints.load_checkpoint(folder / "frozen.safetensors")[0]
    assert not any(name.startswith("encoder") for name in tensors["disentangler"])
    (folder / "inversion.safetensors").write_bytes(b"another inversion")
    with pytest.raises(CheckpointError, match="inversion"):
        method(folder, changed(encoder=encoder), "frozen")
    (folder / "inversion.safetensors").write_bytes(b"stands for the inversion")
    chosen, images = method(folder, changed(encoder=encoder), "frozen"), faces().images
    codes = backbone("inversion")(torch.from_numpy(images)) - chosen._networks.mean
    np.testing.assert_allclose(chosen.save(faces(), 0, each(KEY)).attributes, codes, atol=1e-5)


def test_the_published_start_is_the_identity_encoder_with_unrefined_pictures(folder):
    encoder = PARAMS.encoder.model_copy(update={"kind": "psp"})
    published = changed({"encoder_start": "identity", "refined": False}, encoder=encoder)
    network = backbone("identity")
    network.network = nn.Module()
    with pytest.MonkeyPatch.context() as patch:
        kit.replace_backbones(patch, identity=network)
        METHOD.train(published, job(folder, "published"))
    assert (folder / "published.safetensors").is_file()


def test_image_loss_is_a_mean_for_each_kind_of_face_or_one_over_all_changed_faces(folder):
    networks = FrozenNetworks(job(folder, "image").backbones, METHOD.needs, "face")
    data = TrainingImages(networks, kit.noise(4), masks=False)
    pixels = {"pixels": 1.0, "lpips": 0.0, "landmarks": 0.0, "parsing": 0.0}
    weights = {"recovered": type(PARAMS.phase_two.recovered)(**pixels),
               "altered": type(PARAMS.phase_two.altered)(**pixels | {"pixels": 0.5})}  # fmt: skip
    batch = data.batch(np.array([0, 1]))
    apart = (0.1, 0.2, 0.4)  # of faces anonymized, recovered and wrongly recovered
    hidden, right, wrong = (batch.images + value for value in apart)
    for pooled, expected in ((False, 0.2 + 0.5 * (0.1 + 0.4)), (True, 0.2 + 0.5 * (2 * 0.1 + 0.4) / 3)):
        chosen = changed({"pooled_image_terms": pooled}, phase_two=PARAMS.phase_two.model_copy(update=weights))
        phase = PhaseTwo(chosen, networks, data, 0, nn.Identity(), nn.Linear(1, 1), joint=False)
        value = phase.sum_image_losses(torch.cat([hidden, hidden]), right, wrong, batch)
        assert value.item() == pytest.approx(expected, rel=1e-5)


OPTIONS = {
    "usual": {},
    "published": {"mapping_per_layer": False, "residual_compensation": False, "pooled_image_terms": False,
                  "squared_parsing": False},
    "span": {"span": 4},
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_saved_representation_and_the_right_key_alone_recover_the_reconstruction(folder, options):
    if options:
        METHOD.train(changed(options), job(folder, "options"))
    chosen = method(folder, changed(options), "options" if options else "checkpoint")
    saved = chosen.save(faces(), 0, each(KEY))
    back, wrong = (chosen.recover_saved(saved, each(key)) for key in (KEY, OTHER))
    middle = (slice(None), slice(None), slice(12, 20), slice(12, 20))
    np.testing.assert_allclose(back[middle], chosen.views(faces())["reconstructed"][middle], atol=1e-4)
    assert np.abs(wrong - back)[middle].max() > 1e-3


def test_a_span_has_the_directions_of_the_people_and_nothing_else():
    torch.manual_seed(0)
    span, plane = Span(changed({"span": 2})), torch.linalg.qr(torch.randn(512, 3))[0].T
    people = functional.normalize(torch.randn(20, 2) @ plane[:2])
    coordinates = span.fit(people)
    torch.testing.assert_close(coordinates @ coordinates.T, people @ people.T, atol=1e-5, rtol=0)
    torch.testing.assert_close(span(people + torch.randn(20, 1) * plane[2]), coordinates, atol=1e-5, rtol=0)
