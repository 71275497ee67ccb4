"""Tests of StyleGAN2: the equations against a plain loop, and every published layout key by key."""

import logging
import math

import pytest
import torch
from torch.nn import functional

from masquerade.backbones.generator import layouts
from masquerade.backbones.generator.adversarial import path_lengths
from masquerade.core.errors import CheckpointError
from masquerade.networks.discriminators import Discriminator, compute_deviation
from masquerade.networks.stylegan2 import CHANNELS, Generator, in_channels_last
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
    """Karras et al. 2020, Eq. 1 and 3, one picture and one layer at a time, weights modulated explicitly."""

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
        if up:  # a true convolution of the picture with zeros between its pixels, then the filter
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
    """Karras et al. 2020, Eq. 1 and 3, as published: the weights of each picture, and a convolution in groups."""
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


def test_quick_drawing_keeps_the_channels_of_a_pixel_together(generator):
    orders = []
    for layer in generator.convs:
        layer.register_forward_hook(lambda *parts: orders.append(in_channels_last(parts[-1])))
    generator.quicken()
    generator.synthesize(torch.randn(2, generator.layers, 7))
    assert orders == [True] * len(generator.convs)


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


def test_each_layer_reads_its_own_code(generator):
    codes = torch.randn(1, generator.layers, 7)
    first = generator.synthesize(codes)
    for layer in range(generator.layers):
        other = codes.clone()
        other[:, layer] += 1.0
        assert not torch.allclose(first, generator.synthesize(other), atol=1e-5), layer


def test_later_codes_leave_coarser_pictures_alone(generator):
    codes = torch.randn(1, generator.layers, 7)
    other = codes.clone()
    other[:, 6:] += 1.0  # from 32 pixels on
    for before, after in list(zip(generator.pyramid(codes), generator.pyramid(other), strict=True))[:3]:
        assert torch.equal(before, after)


def test_smaller_pictures_are_block_means_and_pass_the_gradient_on(generator):
    smaller = Generator(32, SMALL, style=7, mapping=2, pictures=8)
    smaller.load_state_dict(generator.state_dict())
    codes = torch.randn(2, 8, 7, requires_grad=True)
    drawn, made = generator.synthesize(codes), smaller.synthesize(codes)
    assert (made.shape, smaller.size, smaller.drawn, smaller.layers) == ((2, 3, 8, 8), 8, 32, 8)
    torch.testing.assert_close(made[1, 2, 5, 3], drawn[1, 2, 20:24, 12:16].mean())
    made[0, 0, 0, 0].backward()
    assert codes.grad[0].abs().sum() > 0 == codes.grad[1].abs().sum()
    with pytest.raises(ValueError, match="no multiple"):
        Generator(32, SMALL, pictures=24)


def test_batches_of_large_pictures_are_smaller():
    counts = {
        size: Generator(size, (1,) * (int(math.log2(size)) - 1), style=1, mapping=1).at_once for size in (64, 256, 1024)
    }
    assert counts == {64: 32, 256: 32, 1024: 2}


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


def test_published_generator_has_its_published_size():
    with torch.device("meta"):
        counted = Generator(1024, CHANNELS)
    weights = sum(value.numel() for value in counted.parameters())
    assert weights == 30_370_060  # G of StyleGAN2, config F, as its authors print it (30.37 M)


@pytest.mark.parametrize("size", [12, 4, 100])
def test_size_that_is_no_power_of_two_is_refused(size):
    with pytest.raises(ValueError, match="8, 16, 32"):
        Generator(size, SMALL)


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
    """If the picture is linear in the code, ||J^T y|| has a known value."""

    class Linear(torch.nn.Module):
        def synthesize(self, codes, noise):
            return (codes[:, 0, :3, None, None] * 2.0).expand(-1, 3, 4, 4)

    codes = torch.zeros(2000, 1, 3, requires_grad=True)
    torch.manual_seed(0)
    lengths = path_lengths(Linear(), codes)
    # y / 4 sums 16 independent normals a channel: N(0, 1); times 2; the norm over 3 channels squared has mean 12
    assert abs(lengths.square().mean().item() - 12.0) < 0.6


# --- published layouts -------------------------------------------------------------------------------------------


def adopted(content, tmp_path, like):
    torch.save(content, tmp_path / "published.pt")
    state, layout = layouts.generator(weight_files.read(tmp_path / "published.pt"), tmp_path / "published.pt")
    fresh = Generator(32, SMALL, 7, 2)
    load_into(fresh, state, tmp_path / "published.pt")
    for name, value in fresh.state_dict().items():
        torch.testing.assert_close(value, like.state_dict()[name], msg=name)
    return layout


def test_rosinality_layout_is_adopted_key_for_key(generator, tmp_path):
    state = generator.state_dict()
    mean = state.pop("latent_avg")
    assert adopted({"g_ema": state, "latent_avg": mean, "d": {}}, tmp_path, generator) == "rosinality"


def test_genforce_layout_is_adopted_key_for_key(generator, tmp_path):
    content = {"generator": {}, "generator_smooth": as_genforce(generator.state_dict()), "discriminator": {}}
    assert adopted(content, tmp_path, generator) == "GenForce"


def test_up_sampling_of_genforce_is_the_same_operation(generator):
    """GenForce turns its kernel before it transposes the convolution."""
    weight = as_genforce(generator.state_dict())["synthesis.layer1.weight"]
    x = torch.randn(1, 8, 4, 4)
    theirs = functional.conv_transpose2d(x, weight.transpose(0, 1).flip(2, 3), stride=2)
    ours = functional.conv_transpose2d(x, generator.convs[0].conv.weight[0].transpose(0, 1), stride=2)
    torch.testing.assert_close(theirs, ours)


@pytest.mark.parametrize("layout", ["rosinality", "genforce"])
def test_left_over_and_missing_keys_are_named(generator, layout, tmp_path):
    def content(change):
        state = generator.state_dict()
        mean = state.pop("latent_avg")
        if layout == "genforce":
            tree = {"generator_smooth": as_genforce({**state, "latent_avg": mean})}
            change(tree["generator_smooth"])
        else:
            tree = {"g_ema": state, "latent_avg": mean}
            change(tree["g_ema"])
        return tree

    with pytest.raises(CheckpointError, match="left over"):
        adopted(content(lambda state: state.update({"synthesis.more": torch.zeros(1)})), tmp_path, generator)
    with pytest.raises(CheckpointError, match="missing"):
        adopted(content(lambda state: state.pop(next(name for name in state if "bias" in name))), tmp_path, generator)


def test_error_for_a_file_of_another_resolution_names_the_keys(generator, tmp_path):
    other = Generator(16, SMALL[:3], 7, 2)
    with pytest.raises(CheckpointError, match=r"convs\.4.* is missing"):
        adopted({"g_ema": other.state_dict()}, tmp_path, generator)


def test_cut_and_foreign_files_are_refused(generator, tmp_path):
    path = tmp_path / "cut.pt"
    torch.save({"g_ema": generator.state_dict()}, path)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(CheckpointError, match="cannot be read"):
        weight_files.read(path)
    with pytest.raises(CheckpointError, match="missing"):
        weight_files.read(tmp_path / "nowhere.pt")
    with pytest.raises(CheckpointError, match="g_ema"):
        layouts.generator({"weights": {}}, path)


def test_file_that_would_run_code_is_not_opened(tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, ("raise SystemExit('executed')",))

    torch.save({"g_ema": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(CheckpointError, match="never run"):
        weight_files.read(tmp_path / "evil.pt")


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
    assert abs(maps[6].mean()) < 0.15
    assert abs(maps[6].std() - 1) < 0.1
    assert not torch.equal(maps[5], maps[6])


def test_another_low_pass_filter_is_refused(generator, tmp_path):
    state = generator.state_dict()
    state["convs.0.conv.blur.kernel"] = torch.ones(4, 4) / 4
    with pytest.raises(CheckpointError, match="low-pass"):
        adopted({"g_ema": state}, tmp_path, generator)
