"""iFADIT's parts: the flow and its inverse, the mapping, the losses and the refinement, against independent values."""

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import leaky_relu, normalize

from masquerade.core.images import to_float
from masquerade.judges.pixels import Pixels
from masquerade.methods.ifadit import FlowSettings, IfaditSettings, IfaditSmallScale, losses
from masquerade.methods.ifadit.losses import blur_mask, refine, soft_mask
from masquerade.methods.ifadit.network import (
    IdentityCompensation,
    SecureCouplingBlock,
    SecureFlow,
    Transform,
    draw_secrets,
    map_secrets,
)
from masquerade.methods.ifadit.training import draw_pairs, project_to_visible
from masquerade.networks.identity_mapping import IdentityMapping
from masquerade.networks.inputs import round_to_8_bits
from masquerade.networks.stylegan2 import Generator

WIDTH, STYLE = 512, 24
SEEDS = st.integers(0, 2**31)


def unit(count, seed):
    return normalize(torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed)))


def transform():
    flow = FlowSettings(blocks=4, hidden=[32], limit=0.5)
    small_scale = IfaditSmallScale(flow_start=0.5, residual_compensation=True)
    knobs = {"flow": flow, "compensation": True, "compensation_widths": [8, 8, 8], "small_scale": small_scale}
    return Transform(IfaditSettings.model_construct(**knobs), STYLE)


@settings(max_examples=25, deadline=None)
@given(weights=SEEDS, vectors=SEEDS, secret=SEEDS, limit=st.floats(0.1, 1.0), start=st.floats(0.01, 0.6))
def test_the_inverse_recovers_every_identity_under_every_secret(weights, vectors, secret, limit, start):
    torch.manual_seed(weights)
    flow = SecureFlow(WIDTH, STYLE, blocks=4, limit=limit, start=start)
    identity = unit(5, vectors)
    key = torch.randn(5, STYLE, generator=torch.Generator().manual_seed(secret))
    with torch.no_grad():
        back = flow.inverse(flow(identity, key), key)
    assert (back - identity).abs().max() <= 1e-5


def test_another_secret_does_not_recover_the_identity():
    torch.manual_seed(0)
    flow, identity, key = SecureFlow(WIDTH, STYLE), unit(5, 1), torch.randn(5, STYLE)
    with torch.no_grad():
        back = flow.inverse(flow(identity, key), torch.randn(5, STYLE))
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
    made, key = transform(), torch.randn(300, STYLE)

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
