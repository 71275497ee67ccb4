"""Tests of StyleGAN2: the equations against a plain loop, each published layout key by key; its discriminators."""

import logging
import math

import pytest
import torch
from torch.nn import functional

from masquerade.backbones.generator import layouts
from masquerade.backbones.generator.adversarial import compute_path_lengths
from masquerade.core.errors import CheckpointError
from masquerade.networks.discriminators import HEAD, MIXED, Discriminator, Heads, Projection, compute_deviation
from masquerade.networks.stylegan2 import Generator
from masquerade.networks.stylegan2_layers import ModulatedConv2d
from masquerade.training import weight_files
from masquerade.training.checkpoints import load_into
from official import as_genforce

SMALL = (8, 6, 5, 4)


@pytest.fixture
def generator():
    torch.manual_seed(0)
    made = Generator(32, SMALL, style=7, mapping=2, mapping_rate=0.01).eval()
    for name, value in made.named_parameters():
        if name.endswith(("noise.weight", "bias")):
            value.data.normal_(mean=1.0 if "modulation" in name else 0.0)
    made.latent_avg.normal_()
    return made


def enlarged_with_zeros(x, before, after):
    out = torch.zeros(x.shape[0], x.shape[1] * 2, x.shape[2] * 2)
    out[:, ::2, ::2] = x
    return functional.pad(out, (before, after, before, after))


def low_pass(x):
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
    kernel = torch.outer(taps, taps) / 64 * 4
    return functional.conv2d(x[:, None], kernel[None, None])[:, 0]


def straightforward(state, codes, size):
    """Karras et al. 2020, Eq. 1 and 3, one image and one layer at a time, weights modulated explicitly."""

    def linear(name, w):
        weight = state[f"{name}.weight"]
        return weight @ w / math.sqrt(weight.shape[1]) + state[f"{name}.bias"]

    def modulated(name, x, w, demodulate, up):
        weight = state[f"{name}.weight"][0]
        _, inputs, kernel, _ = weight.shape
        weight = weight / math.sqrt(inputs * kernel * kernel)
        weight = weight * linear(f"{name}.modulation", w)[None, :, None, None]  # Eq. 1
        if demodulate:
            weight = weight / (weight.square().sum((1, 2, 3), keepdim=True) + 1e-8).sqrt()  # Eq. 3
        if up:  # a true convolution of the image with zeros between its pixels, then the filter
            x = enlarged_with_zeros(x, 2, 1)
            x = functional.conv2d(x[None], weight.flip(-2, -1))[0]
            return low_pass(functional.pad(x, (1, 1, 1, 1)))
        return functional.conv2d(x[None], weight, padding=kernel // 2)[0]

    def styled(name, x, w, noise, up=False):
        x = modulated(f"{name}.conv", x, w, True, up)
        x = x + state[f"{name}.noise.weight"] * state[f"noises.noise_{noise}"][0]
        return functional.leaky_relu(x + state[f"{name}.activate.bias"][:, None, None], 0.2) * math.sqrt(2)

    pictures = []
    for w_plus in codes:
        x = styled("conv1", state["input.input"][0], w_plus[0], 0)
        rgb = modulated("to_rgb1.conv", x, w_plus[1], False, False) + state["to_rgb1.bias"][0]
        for level in range(int(math.log2(size)) - 2):
            layer = 2 * level + 1
            x = styled(f"convs.{2 * level}", x, w_plus[layer], layer, up=True)
            x = styled(f"convs.{2 * level + 1}", x, w_plus[layer + 1], layer + 1)
            name = f"to_rgbs.{level}"
            new = modulated(f"{name}.conv", x, w_plus[layer + 2], False, False) + state[f"{name}.bias"][0]
            rgb = new + low_pass(enlarged_with_zeros(rgb, 2, 1))
        pictures.append(rgb)
    return torch.stack(pictures)


def test_batch_of_codes_gives_what_the_equations_give_one_by_one(generator):
    codes = torch.randn(3, generator.layers, 7)
    expected = straightforward(generator.state_dict(), codes, 32)
    torch.testing.assert_close(generator.synthesize(codes), expected, atol=2e-5, rtol=1e-4)


def with_own_weights(conv, x, code):
    """Karras et al. 2020, Eq. 1 and 3, as published: the weights of each image, and a convolution in groups."""
    count, (_, outputs, inputs, side, _) = len(x), conv.weight.shape
    weight = conv.weight * conv.scale * conv.modulation(code).view(count, 1, inputs, 1, 1)
    if conv.demodulate:
        weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
    x = x.reshape(1, count * inputs, *x.shape[2:])
    if conv.up:
        weight = weight.transpose(1, 2).reshape(count * inputs, outputs, side, side)
        made = functional.conv_transpose2d(x, weight, stride=2, groups=count)
        return conv.blur(made.view(count, outputs, *made.shape[2:]))
    made = functional.conv2d(x, weight.reshape(-1, inputs, side, side), padding=side // 2, groups=count)
    return made.view(count, outputs, *made.shape[2:])


@pytest.mark.parametrize(("kernel", "demodulate", "up"), [(3, True, False), (3, True, True), (1, False, False)])
def test_one_shared_convolution_of_scaled_maps_equals_those_with_scaled_weights(kernel, demodulate, up):
    torch.manual_seed(0)
    conv = ModulatedConv2d(6, 5, kernel, 7, demodulate, up)
    given = [torch.randn(3, 6, 8, 8).requires_grad_(True), torch.randn(3, 7).requires_grad_(True), conv.weight]
    made, expected = conv(*given[:2]), with_own_weights(conv, *given[:2])
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)
    weights = torch.rand_like(made) / made[0].numel()
    gradients = [torch.autograd.grad((result * weights).sum(), given) for result in (made, expected)]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("inputs", "outputs", "side"), [(6, 3, 5), (4, 4, 1), (5, 2, 16)])
def test_enlarging_and_filtering_in_one_step_gives_the_same_maps_and_gradients(inputs, outputs, side):
    layer = ModulatedConv2d(inputs, outputs, 3, 7, up=True).requires_grad_(False)
    x, code = torch.randn(2, inputs, side, side, requires_grad=True), torch.randn(2, 7, requires_grad=True)

    def enlarged():
        made = layer(x, code)
        return made, *torch.autograd.grad((made * torch.arange(2 * side)).sum(), (x, code))

    keys, expected = layer.state_dict().keys(), enlarged()
    layer.fold()
    torch.testing.assert_close(enlarged(), expected, atol=1e-4, rtol=1e-4)
    assert layer.state_dict().keys() == keys


def test_on_a_gpu_quick_drawing_folds_the_layers_that_narrow(generator):
    generator.to("meta").requires_grad_(False)
    generator.quicken()
    folded = [layer.conv.folded is not None for layer in generator.convs]
    assert folded == [place % 2 == 0 and SMALL[place // 2 + 1] < SMALL[place // 2] for place in range(len(folded))]
    assert any(folded)
    codes = torch.randn(2, generator.layers, 7, device="meta")
    assert generator.synthesize(codes).shape == (2, 3, 32, 32)


@pytest.mark.parametrize("noise", ["fixed", "none"])
def test_quick_drawing_gives_the_same_pictures_and_gradients(generator, noise):
    codes = torch.randn(3, generator.layers, 7, requires_grad=True)

    def drawn():
        made = generator.synthesize(codes, noise)
        return made, torch.autograd.grad(made.square().sum(), codes)[0]

    keys, (made, gradient) = generator.state_dict().keys(), drawn()
    generator.quicken()
    quick, quick_gradient = drawn()
    torch.testing.assert_close(quick, made, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(quick_gradient, gradient, atol=1e-3, rtol=1e-4)
    assert generator.state_dict().keys() == keys, "a quick generator has the same checkpoint"


def test_with_bfloat16_maps_stay_in_bfloat16_and_pictures_near_those_of_32_bits(generator):
    types, codes = [], torch.randn(2, generator.layers, 7)
    exact = generator.synthesize(codes)
    for layer in generator.convs:
        layer.register_forward_hook(lambda *parts: types.append(parts[-1].dtype))
    generator.quicken()
    with torch.autocast("cpu", torch.bfloat16):
        made = generator.synthesize(codes)
    assert types == [torch.bfloat16] * len(generator.convs)
    assert (made - exact).square().mean() < 1e-3 * exact.square().mean()


def test_smaller_pictures_are_block_means_and_pass_the_gradient_on(generator):
    smaller = Generator(32, SMALL, style=7, mapping=2, pictures=8)
    smaller.load_state_dict(generator.state_dict())
    codes = torch.randn(2, 8, 7, requires_grad=True)
    drawn, made = generator.synthesize(codes), smaller.synthesize(codes)
    assert (made.shape, smaller.size, smaller.drawn, smaller.layers) == ((2, 3, 8, 8), 8, 32, 8)
    torch.testing.assert_close(made[1, 2, 5, 3], drawn[1, 2, 20:24, 12:16].mean())
    made[0, 0, 0, 0].backward()
    assert codes.grad[0].abs().sum() > 0 == codes.grad[1].abs().sum()


def test_noise_is_fixed_by_default(generator):
    codes = torch.randn(1, generator.layers, 7)
    assert torch.equal(generator.synthesize(codes), generator.synthesize(codes))
    assert not torch.equal(generator.synthesize(codes, "fresh"), generator.synthesize(codes, "fresh"))
    assert not torch.equal(generator.synthesize(codes, "none"), generator.synthesize(codes))


def test_mapping_ignores_the_length_of_z_and_truncation_pulls_to_the_mean(generator):
    z = torch.randn(4, 7)
    torch.testing.assert_close(generator.map(z), generator.map(3 * z), atol=1e-4, rtol=1e-4)
    w = generator.map(z)
    torch.testing.assert_close(generator.truncate(w, 0.0), generator.latent_avg.expand(4, -1))
    torch.testing.assert_close(generator.truncate(w, 1.0), w)
    half = generator.truncate(w, 0.5) - generator.latent_avg
    torch.testing.assert_close(half, 0.5 * (w - generator.latent_avg))


def test_wrong_shape_of_codes_is_refused(generator):
    with pytest.raises(ValueError, match="must be"):
        generator.synthesize(torch.randn(1, generator.layers - 1, 7))


def test_discriminator_scores_each_picture_and_uses_the_deviation_in_its_group():
    judged = Discriminator(32, SMALL)(torch.randn(4, 3, 32, 32))
    assert judged.shape == (4, 1)
    same = torch.ones(4, 2, 4, 4)
    assert compute_deviation(same).abs().max() < 1e-3
    apart = torch.stack([torch.zeros(2, 4, 4), torch.full((2, 4, 4), 2.0)])
    torch.testing.assert_close(compute_deviation(apart), torch.ones(2, 1, 4, 4))  # deviation of 0 and 2


def test_path_length_is_that_of_the_jacobian(generator):
    """If the image is linear in the code, ||J^T y|| has a known value."""

    class Linear(torch.nn.Module):
        def synthesize(self, codes, noise):
            return (codes[:, 0, :3, None, None] * 2.0).expand(-1, 3, 4, 4)

    codes = torch.zeros(2000, 1, 3, requires_grad=True)
    torch.manual_seed(0)
    lengths = compute_path_lengths(Linear(), codes)
    # y / 4 sums 16 independent normals a channel: N(0, 1); times 2; the norm over 3 channels squared has mean 12
    assert abs(lengths.square().mean().item() - 12.0) < 0.6


# --- published layouts -------------------------------------------------------------------------------------------


def adopted(content, tmp_path, like):
    torch.save(content, tmp_path / "published.pt")
    state, layout = layouts.read_generator(weight_files.read(tmp_path / "published.pt"), tmp_path / "published.pt")
    fresh = Generator(32, SMALL, 7, 2)
    load_into(fresh, state, tmp_path / "published.pt")
    for name, value in fresh.state_dict().items():
        torch.testing.assert_close(value, like.state_dict()[name], msg=name)
    return layout


@pytest.mark.parametrize("layout", ["rosinality", "GenForce"])
def test_published_layout_is_adopted_key_for_key(generator, tmp_path, layout):
    state = generator.state_dict()
    contents = {
        "GenForce": {"generator": {}, "generator_smooth": as_genforce(dict(state)), "discriminator": {}},
        "rosinality": {"latent_avg": state.pop("latent_avg"), "g_ema": state, "d": {}},
    }
    assert adopted(contents[layout], tmp_path, generator) == layout
    with pytest.raises(CheckpointError, match="it needs the key g_ema"):
        layouts.read_generator({"weights": {}}, tmp_path)


def test_up_sampling_of_genforce_is_the_same_operation(generator):
    """GenForce turns its kernel before it transposes the convolution."""
    weight = as_genforce(generator.state_dict())["synthesis.layer1.weight"]
    x = torch.randn(1, 8, 4, 4)
    theirs = functional.conv_transpose2d(x, weight.transpose(0, 1).flip(2, 3), stride=2)
    ours = functional.conv_transpose2d(x, generator.convs[0].conv.weight[0].transpose(0, 1), stride=2)
    torch.testing.assert_close(theirs, ours)


def test_noise_is_drawn_from_a_seed_only_if_a_file_has_none_at_all(generator, tmp_path, caplog):
    """rosinality's file of 256 pixels was saved before its code kept the noise (its issues 71 and 176)."""
    state = {name: value for name, value in generator.state_dict().items() if not name.startswith("noises.")}
    mean = state.pop("latent_avg")
    with caplog.at_level(logging.INFO):
        adopted({"g_ema": state, "latent_avg": mean}, tmp_path, generator)  # the fixture's noise has the same seed
    assert "7 maps are drawn from seed 0" in caplog.text
    caplog.clear()
    some = generator.noises.noise_3
    with caplog.at_level(logging.INFO), pytest.raises(CheckpointError, match=r"noises.noise_0 is missing"):
        adopted({"g_ema": state | {"noises.noise_3": some}, "latent_avg": mean}, tmp_path, generator)
    assert "drawn" not in caplog.text


def test_noise_of_a_new_generator_depends_on_no_global_state():
    first = Generator(32, SMALL, 7, 2)
    torch.manual_seed(1)
    second = Generator(32, SMALL, 7, 2)
    assert not torch.equal(first.input.input, second.input.input)
    maps = [getattr(first.noises, f"noise_{layer}") for layer in range(7)]
    assert [tuple(noise.shape) for noise in maps] == [(1, 1, side, side) for side in (4, 8, 8, 16, 16, 32, 32)]
    assert all(torch.equal(noise, getattr(second.noises, f"noise_{layer}")) for layer, noise in enumerate(maps))


def test_another_low_pass_filter_is_refused(generator, tmp_path):
    state = generator.state_dict()
    state["convs.0.conv.blur.kernel"] = torch.ones(4, 4) / 4
    with pytest.raises(CheckpointError, match="low-pass"):
        adopted({"g_ema": state}, tmp_path, generator)


@pytest.fixture(scope="module")
def projection():
    return Projection(64)


def test_maps_go_from_fine_to_coarse(projection):
    maps = projection(torch.rand(2, 3, 16, 16) * 2 - 1)
    assert [tuple(found.shape) for found in maps] == [
        (2, width, side, side) for width, side in zip(MIXED, (16, 8, 4, 2), strict=True)
    ]
    assert [tuple(scores.shape) for scores in Heads()(maps)] == [(2, 4)] * 4


def test_larger_pictures_are_averaged_down(projection):
    """Columns of two white and two black pixels are gray at a quarter of the size; by two pixels alone, white."""
    columns, gray = -torch.ones(1, 3, 256, 256), torch.zeros(1, 3, 256, 256)
    columns[..., 1::4] = columns[..., 2::4] = 1.0
    found, white, expected = (projection(images)[0] for images in (columns, gray + 1, gray))
    assert (found - expected).abs().mean() < 0.5 * (found - white).abs().mean()


def test_fine_maps_have_features_of_the_coarse_ones(projection):
    """A change in a corner reaches the opposite corner of the finest map through the coarser scales alone."""
    black = -torch.ones(1, 3, 64, 64)
    changed = black.clone()
    changed[..., 48:, 48:] = 1.0
    finest, other = projection(black)[0], projection(changed)[0]
    assert (finest - other)[..., 0, 0].abs().max() > 1e-4


def test_nothing_in_the_projection_learns_and_no_seed_changes_it(projection):
    torch.manual_seed(1)
    images = torch.rand(1, 3, 16, 16, requires_grad=True)
    found, again = projection(images), Projection(64)(images)
    assert not any(weight.requires_grad for weight in projection.parameters())
    assert all(torch.equal(a, b) for a, b in zip(found, again, strict=True))
    sum(part.sum() for part in found).backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0, "the gradient reaches the images"


def test_every_layer_of_the_heads_has_norm_one():
    torch.manual_seed(0)
    heads = Heads()
    maps = [torch.randn(2, width, side, side) for width, side in zip(MIXED, (16, 8, 4, 2), strict=True)]
    for _ in range(30):  # one power iteration each
        heads(maps)
    layers = [layer for layer in heads.modules() if isinstance(layer, torch.nn.Conv2d)]
    norms = [torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() for layer in layers]
    assert norms == pytest.approx([1.0] * len(layers), rel=0.05)
    assert HEAD in {layer.out_channels for layer in layers}
