"""Writes files of random weights in the layouts in which the official ones are published.

The names and shapes come from the published code (named at each function), not from our networks. If such a file loads
strictly, our networks have the published tensors. The numbers are random and scaled so that a forward pass is finite.
"""

import argparse
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor

Shapes = dict[str, tuple[int, ...]]
POOL = 2**22  # random numbers that are drawn; longer tensors repeat them
SHARED = 2**16  # tensors with more numbers are views of the drawn ones

CHANNELS = {4: 512, 8: 512, 16: 512, 32: 512, 64: 512, 128: 256, 256: 128, 512: 64, 1024: 32}
"""Of StyleGAN2's config F, by pixels (channel multiplier 2)."""
CLASSES = {"facenet_vggface2": 8631, "facenet_casia": 10575}
"""People whom FaceNet's public models were trained on (facenet-pytorch, InceptionResnetV1.__init__)."""


def write(role: str, path: Path, seed: int = 0) -> Path:
    """Writes the file of a role of the registry at ``path``, creates its folders, and returns ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if role in PROGRAMS:
        torch.jit.save(program({name: value.half() for name, value in content(role, seed).items()}), path)
    elif role in NAMELESS:
        path.write_bytes(b"".join(value.numpy().tobytes() for value in content(role, seed).values()))
    else:
        torch.save(content(role, seed), path)
    return path


def content(role: str, seed: int = 0) -> dict:
    """The content of the file of a role."""
    return FILES[role](seed)


# --- names of layers ----------------------------------------------------------------------------------------------


def convolution(at: str, outputs: int, inputs: int, height: int, width: int | None = None, bias: bool = True) -> Shapes:
    weight = {f"{at}.weight": (outputs, inputs, height, width or height)}
    return weight | ({f"{at}.bias": (outputs,)} if bias else {})


def linear(at: str, outputs: int, inputs: int) -> Shapes:
    return {f"{at}.weight": (outputs, inputs), f"{at}.bias": (outputs,)}


def norm(at: str, channels: int) -> Shapes:
    """A layer normalization."""
    return {f"{at}.weight": (channels,), f"{at}.bias": (channels,)}


def batch_norm(at: str, channels: int, affine: bool = True) -> Shapes:
    learned = norm(at, channels) if affine else {}
    return learned | {
        f"{at}.running_mean": (channels,), f"{at}.running_var": (channels,), f"{at}.num_batches_tracked": (),
    }  # fmt: skip


def below(prefix: str, shapes: Shapes) -> Shapes:
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


# --- layouts ------------------------------------------------------------------------------------------------------


def residual_body(squeeze: bool) -> Shapes:
    """Stem and 50 layers of ArcFace's residual network: with ``squeeze`` model_irse.py of InsightFace_Pytorch (also in
    e4e and pSp), without it net.py of AdaFace."""
    shapes = convolution("input_layer.0", 64, 3, 3, bias=False) | batch_norm("input_layer.1", 64)
    shapes |= {"input_layer.2.weight": (64,)}
    inputs, number = 64, 0
    for outputs, count in ((64, 3), (128, 4), (256, 14), (512, 3)):
        for _ in range(count):
            at = f"body.{number}"
            if inputs != outputs:
                shapes |= convolution(f"{at}.shortcut_layer.0", outputs, inputs, 1, bias=False)
                shapes |= batch_norm(f"{at}.shortcut_layer.1", outputs)
            layers = [batch_norm("0", inputs), convolution("1", outputs, inputs, 3, bias=False)]
            if squeeze:
                layers += [{"2.weight": (outputs,)}, convolution("3", outputs, outputs, 3, bias=False)]
                layers += [batch_norm("4", outputs), convolution("5.fc1", outputs // 16, outputs, 1, bias=False)]
                layers += [convolution("5.fc2", outputs, outputs // 16, 1, bias=False)]
            else:
                layers += [batch_norm("2", outputs), {"3.weight": (outputs,)}]
                layers += [convolution("4", outputs, outputs, 3, bias=False), batch_norm("5", outputs)]
            for layer in layers:
                shapes |= below(f"{at}.res_layer", layer)
            inputs, number = outputs, number + 1
    return shapes


def ir_se50() -> Shapes:
    """model_ir_se50.pth (InsightFace_Pytorch, model.py)."""
    ends = batch_norm("output_layer.0", 512) | linear("output_layer.3", 512, 512 * 7 * 7)
    return residual_body(squeeze=True) | ends | batch_norm("output_layer.4", 512)


def adaface_ir50() -> Shapes:
    """The network of adaface_ir50_ms1mv2.ckpt (mk-minchul/AdaFace, net.py); the last norm has no weights of its own."""
    ends = batch_norm("output_layer.0", 512) | linear("output_layer.3", 512, 512 * 7 * 7)
    return residual_body(squeeze=False) | ends | batch_norm("output_layer.4", 512, affine=False)


def facenet(people: int) -> Shapes:
    """The network of the package facenet-pytorch, with its classification layer."""
    from masquerade.networks import torchvision_internals

    torchvision_internals.ensure()
    from facenet_pytorch import InceptionResnetV1

    with torch.device("meta"):
        return shapes_of(InceptionResnetV1(classify=True, num_classes=people))


def stylegan2(size: int) -> Shapes:
    """``g_ema`` of rosinality/stylegan2-pytorch (model.py, Generator; commit bef283a)."""
    shapes: Shapes = {}
    for layer in range(1, 9):
        shapes |= linear(f"style.{layer}", 512, 512)
    shapes |= {"input.input": (1, 512, 4, 4)} | _styled("conv1", 512, 512, up=False) | _to_rgb("to_rgb1", 512, up=False)
    inputs, number = 512, 0
    for pixels in _pixels(size)[1:]:
        outputs = CHANNELS[pixels]
        shapes |= _styled(f"convs.{2 * number}", outputs, inputs, up=True)
        shapes |= _styled(f"convs.{2 * number + 1}", outputs, outputs, up=False)
        shapes |= _to_rgb(f"to_rgbs.{number}", outputs, up=True)
        inputs, number = outputs, number + 1
    for layer in range(2 * int(math.log2(size)) - 3):
        side = 2 ** ((layer + 5) // 2)
        shapes[f"noises.noise_{layer}"] = (1, 1, side, side)
    return shapes


def _pixels(size: int) -> list[int]:
    return [pixels for pixels in CHANNELS if pixels <= size]


def _styled(at: str, outputs: int, inputs: int, up: bool) -> Shapes:
    shapes = {f"{at}.conv.weight": (1, outputs, inputs, 3, 3), **linear(f"{at}.conv.modulation", inputs, 512)}
    if up:
        shapes[f"{at}.conv.blur.kernel"] = (4, 4)
    return shapes | {f"{at}.noise.weight": (1,), f"{at}.activate.bias": (outputs,)}


def _to_rgb(at: str, inputs: int, up: bool) -> Shapes:
    shapes = {f"{at}.bias": (1, 3, 1, 1), f"{at}.conv.weight": (1, 3, inputs, 1, 1)}
    shapes |= linear(f"{at}.conv.modulation", inputs, 512)
    return shapes | ({f"{at}.upsample.kernel": (4, 4)} if up else {})


def encoder(styles: int) -> Shapes:
    """``encoder.*`` of e4e and pSp (encoder4editing and pixel2style2pixel, models/encoders/psp_encoders.py)."""
    shapes = residual_body(squeeze=True)
    for style in range(styles):
        side = 16 if style < 3 else 32 if style < 7 else 64
        for number in range(int(math.log2(side))):
            shapes |= convolution(f"styles.{style}.convs.{2 * number}", 512, 512, 3)
        shapes |= linear(f"styles.{style}.linear", 512, 512)
    return shapes | convolution("latlayer1", 512, 256, 1) | convolution("latlayer2", 512, 128, 1)


def transformer(at: str, width: int, layers: int) -> Shapes:
    shapes: Shapes = {}
    for layer in range(layers):
        block = norm("ln_1", width) | norm("ln_2", width)
        block |= {"attn.in_proj_weight": (3 * width, width), "attn.in_proj_bias": (3 * width,)}
        block |= linear("attn.out_proj", width, width)
        block |= linear("mlp.c_fc", 4 * width, width) | linear("mlp.c_proj", width, 4 * width)
        shapes |= below(f"{at}.resblocks.{layer}", block)
    return shapes


def clip(patch: int) -> Shapes:
    """CLIP's ViT-B (openai/CLIP, clip/model.py); FaRL's is that of ``patch`` 16."""
    tokens = (224 // patch) ** 2 + 1
    shapes = {"positional_embedding": (77, 512), "text_projection": (512, 512), "logit_scale": ()}
    shapes |= {"token_embedding.weight": (49408, 512)} | norm("ln_final", 512) | transformer("transformer", 512, 12)
    vision = {"class_embedding": (768,), "positional_embedding": (tokens, 768), "proj": (768, 512)}
    vision |= {"conv1.weight": (768, 3, patch, patch)} | norm("ln_pre", 768) | norm("ln_post", 768)
    return shapes | below("visual", vision | transformer("transformer", 768, 12))


def farl_heads() -> Shapes:
    """The heads of FaRL's masked image modeling, besides CLIP (FacePerceiver/FaRL, farl/network/farl/model.py)."""
    heads = {"mask_token": (768,), "lm_head.weight": (8192, 768), **norm("ln_lm", 768)}
    return below("visual", heads | transformer("lm_transformer", 768, 1))


def bisenet() -> Shapes:
    """79999_iter.pth (zllrunning/face-parsing.PyTorch, model.py and resnet.py)."""

    def joined(at: str, outputs: int, inputs: int, kernel: int) -> Shapes:
        return convolution(f"{at}.conv", outputs, inputs, kernel, bias=False) | batch_norm(f"{at}.bn", outputs)

    shapes = convolution("cp.resnet.conv1", 64, 3, 7, bias=False) | batch_norm("cp.resnet.bn1", 64)
    inputs = 64
    for layer, outputs in ((1, 64), (2, 128), (3, 256), (4, 512)):
        for block in (0, 1):
            at = f"cp.resnet.layer{layer}.{block}"
            shapes |= convolution(f"{at}.conv1", outputs, inputs if block == 0 else outputs, 3, bias=False)
            shapes |= convolution(f"{at}.conv2", outputs, outputs, 3, bias=False)
            shapes |= batch_norm(f"{at}.bn1", outputs) | batch_norm(f"{at}.bn2", outputs)
        if layer > 1:
            at = f"cp.resnet.layer{layer}.0.downsample"
            shapes |= convolution(f"{at}.0", outputs, inputs, 1, bias=False) | batch_norm(f"{at}.1", outputs)
        inputs = outputs
    for at, inputs in (("cp.arm16", 256), ("cp.arm32", 512)):
        shapes |= joined(f"{at}.conv", 128, inputs, 3) | batch_norm(f"{at}.bn_atten", 128)
        shapes |= convolution(f"{at}.conv_atten", 128, 128, 1, bias=False)
    shapes |= joined("cp.conv_head32", 128, 128, 3) | joined("cp.conv_head16", 128, 128, 3)
    shapes |= joined("cp.conv_avg", 128, 512, 1) | joined("ffm.convblk", 256, 256, 1)
    shapes |= convolution("ffm.conv1", 64, 256, 1, bias=False) | convolution("ffm.conv2", 256, 64, 1, bias=False)
    for at, inputs, middle in (("conv_out", 256, 256), ("conv_out16", 128, 64), ("conv_out32", 128, 64)):
        shapes |= joined(f"{at}.conv", middle, inputs, 3) | convolution(f"{at}.conv_out", 19, middle, 1, bias=False)
    return shapes


def fan(modules: int = 4) -> Shapes:
    """2DFAN4-11f355bf06.pth.tar (1adrianb/face-alignment, models)."""

    def block(at: str, inputs: int, outputs: int) -> Shapes:
        shapes = batch_norm("bn1", inputs) | convolution("conv1", outputs // 2, inputs, 3, bias=False)
        shapes |= batch_norm("bn2", outputs // 2) | convolution("conv2", outputs // 4, outputs // 2, 3, bias=False)
        shapes |= batch_norm("bn3", outputs // 4) | convolution("conv3", outputs // 4, outputs // 4, 3, bias=False)
        if inputs != outputs:
            shapes |= batch_norm("downsample.0", inputs) | convolution("downsample.2", outputs, inputs, 1, bias=False)
        return below(at, shapes)

    shapes = convolution("conv1", 64, 3, 7) | batch_norm("bn1", 64)
    shapes |= block("conv2", 64, 128) | block("conv3", 128, 128) | block("conv4", 128, 256)
    for module in range(modules):
        for level in (4, 3, 2, 1):
            for name in ("b1", "b2", *(["b2_plus"] if level == 1 else []), "b3"):
                shapes |= block(f"m{module}.{name}_{level}", 256, 256)
        shapes |= block(f"top_m_{module}", 256, 256) | convolution(f"conv_last{module}", 256, 256, 1)
        shapes |= batch_norm(f"bn_end{module}", 256) | convolution(f"l{module}", 68, 256, 1)
        if module < modules - 1:
            shapes |= convolution(f"bl{module}", 256, 256, 1) | convolution(f"al{module}", 256, 68, 1)
    return shapes


def s3fd() -> Shapes:
    """s3fd-619a316812.pth (1adrianb/face-alignment, detection/sfd/net_s3fd.py)."""
    shapes: Shapes = {}
    inputs = 3
    for stage, (outputs, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), start=1):
        for number in range(1, count + 1):
            shapes |= convolution(f"conv{stage}_{number}", outputs, inputs, 3)
            inputs = outputs
    shapes |= convolution("fc6", 1024, 512, 3) | convolution("fc7", 1024, 1024, 1)
    shapes |= convolution("conv6_1", 256, 1024, 1) | convolution("conv6_2", 512, 256, 3)
    shapes |= convolution("conv7_1", 128, 512, 1) | convolution("conv7_2", 256, 128, 3)
    for at, channels in (("conv3_3_norm", 256), ("conv4_3_norm", 512), ("conv5_3_norm", 512)):
        shapes |= {f"{at}.weight": (channels,)}
    looked_at = {"conv3_3_norm": 256, "conv4_3_norm": 512, "conv5_3_norm": 512, "fc7": 1024, "conv6_2": 512,
                 "conv7_2": 256}  # fmt: skip
    for at, channels in looked_at.items():
        shapes |= convolution(f"{at}_mbox_conf", 4 if at == "conv3_3_norm" else 2, channels, 3)
        shapes |= convolution(f"{at}_mbox_loc", 4, channels, 3)
    return shapes


def inception_fid() -> Shapes:
    """pt_inception-2015-12-05-6726825d.pth: the network into which pytorch-fid loads it, with its 1008 classes."""
    from masquerade.networks import torchvision_internals

    torchvision_internals.ensure()
    from pytorch_fid import inception

    with (
        torch.device("meta"),
        mock.patch.object(inception, "load_state_dict_from_url"),
        mock.patch("torchvision.models.Inception3.load_state_dict"),
    ):
        return shapes_of(inception.fid_inception_v3())


def torchvision_network(name: str) -> Shapes:
    """The ImageNet file of ``alexnet`` or ``vgg16``: the network of torchvision, to which LPIPS adds its heads."""
    from masquerade.networks import torchvision_internals

    torchvision_internals.ensure()
    from torchvision import models

    with torch.device("meta"):
        return shapes_of(getattr(models, name)(weights=None))


def shapes_of(network: torch.nn.Module) -> Shapes:
    return {name: tuple(value.shape) for name, value in network.state_dict().items()}


def deepprivacy(start: int) -> Shapes:
    """generator.py, base_model.py and custom_layers.py of DeepPrivacy (branch v1), after five calls of `extend`."""
    channels = {4: start, 8: start, 16: start, 32: start, 64: start // 2, 128: start // 4}

    def scaled(at: str, outputs: int, inputs: int, kernel: int) -> Shapes:
        """WSConv2d: its convolution has no bias of its own."""
        return {f"{at}.bias": (1, outputs, 1, 1)} | convolution(f"{at}.conv", outputs, inputs, kernel, bias=False)

    def block(at: str, outputs: int, inputs: int, between: int) -> Shapes:
        return scaled(f"{at}.0.0", between, inputs, 3) | scaled(f"{at}.1.0", outputs, between, 3)

    def up(at: str, size: int) -> Shapes:
        lower = channels[size // 2]
        joined = scaled(f"{at}.0.0", lower, 2 * lower + 7, 1)
        return joined | block(f"{at}.1.model", channels[size], lower, channels[size])

    shapes = scaled("to_rgb_new", 3, channels[128], 1) | scaled("to_rgb_old", 3, channels[64], 1)
    shapes |= scaled("from_rgb_new.0", channels[128], 3, 1) | scaled("from_rgb_old.1.0", channels[64], 3, 1)
    shapes |= block("new_down.0.model", channels[64], channels[128], channels[64]) | up("new_up", 128)
    places = {64: "0.0.model", 32: "1.1.model", 16: "2.1.model", 8: "3.1.model"}
    for size, place in places.items():
        lower = channels[size // 2]
        shapes |= block(f"core_blocks_down.{place}", lower, channels[size], lower)
    shapes |= block("core_blocks_down.4.1", start, start, start)
    shapes |= scaled("core_blocks_up.0.0.0.0", start, start + 7 + 32, 1)
    shapes |= block("core_blocks_up.0.0.1.model", start, start, start)
    for number, size in enumerate((8, 16, 32, 64), start=1):
        shapes |= up(f"core_blocks_up.{number}", size)
    return shapes


def deepprivacy2(size: int, width: int, most: int) -> Shapes:
    """stylegan_unet.py, base.py and sg2_layers.py of deep_privacy2, without surface embeddings and keypoints."""
    sizes = [size // 2**level for level in range(size.bit_length() - 3)]  # down to 8
    channels = {side: width * min(size // side, most) for side in (*sizes, 4)}

    def layer(at: str, outputs: int, inputs: int, kernel: int, resampled: bool, styled: bool) -> Shapes:
        shapes = convolution(at, outputs, inputs, kernel)
        if styled:
            shapes |= linear(f"{at}.affine", inputs, 512) | linear(f"{at}.affine_beta", inputs, 512)
        return shapes | ({f"{at}.resample_filter": (4, 4)} if resampled else {})

    def block(at: str, outputs: int, inputs: int, down: bool, up: bool, styled: bool) -> Shapes:
        shapes = layer(f"{at}.conv0", outputs, inputs, 3, down, styled)
        shapes |= layer(f"{at}.conv1", outputs, outputs, 3, up, styled)
        skip = layer(f"{at}.skip", outputs, inputs, 1, down or up, styled=False)
        return shapes | {name: shape for name, shape in skip.items() if not name.endswith("bias")}

    shapes = linear("style_net.fc0", 512, 512) | linear("style_net.fc1", 512, 512) | {"style_net.w_avg": (512,)}
    shapes |= convolution("from_rgb", width, 4, 1) | convolution("to_rgb", 3, width, 1)
    for number, side in enumerate(sizes):
        outputs = channels[side] if side == 8 else channels[side // 2]
        shapes |= block(f"encoder.{number}", outputs, channels[side], side < size, False, styled=False)
    for number, side in enumerate(reversed(sizes)):
        inputs = channels[side] if side == 8 else channels[side // 2]
        shapes |= block(f"decoder.{number}", channels[side], inputs, False, side < size, styled=True)
        if number:
            shapes |= convolution(f"unet_block{number}", inputs, inputs, 1)
    return shapes


def ciagan() -> Shapes:
    """arch_unet_flex.py of ciagan, 128 pixels and 1,200 people."""

    def spectral(at: str, outputs: int, inputs: int, kernel: int = 3) -> Shapes:
        at = f"{at}.conv2d"
        vectors = {f"{at}.weight_u": (outputs,), f"{at}.weight_v": (inputs * kernel**2,)}
        return {f"{at}.bias": (outputs,), f"{at}.weight_orig": (outputs, inputs, kernel, kernel)} | vectors

    def residual(at: str, outputs: int, inputs: int) -> Shapes:
        shapes = spectral(f"{at}.conv_r1", outputs, inputs) | spectral(f"{at}.conv_r2", outputs, outputs)
        return shapes | spectral(f"{at}.conv_l", outputs, inputs, 1)

    shapes: Shapes = {}
    for number, (inputs, outputs) in enumerate(((6, 32), (32, 64), (64, 128), (128, 256), (256, 256))):
        shapes |= residual(f"conv{number}", outputs, inputs) | norm(f"in{number}_e", outputs)
    for number, (inputs, outputs) in enumerate(((32, 16), (64, 32), (128, 64), (256, 128), (256, 256))):
        shapes |= residual(f"deconv{number}", outputs, inputs) | norm(f"in{number}_d", outputs)
        shapes |= norm(f"deconv{number}.norm_r1", inputs) | norm(f"deconv{number}.norm_r2", outputs)
    widths = (1200, 256, 256, 256, 256, 512, 512, 512)
    for number in range(7):
        shapes |= linear(f"encode_one_hot.{2 * number}", widths[number + 1], widths[number])
    for at, inputs, outputs in ((0, 32, 64), (3, 64, 128), (6, 128, 256)):
        shapes |= spectral(f"encode_noise.{at}", outputs, inputs) | norm(f"encode_noise.{at + 2}", outputs)
    for number in range(1, 5):
        for part in (1, 2):
            shapes |= spectral(f"res{number}.conv{part}", 256, 256) | norm(f"res{number}.in{part}", 256)
    shapes |= spectral("embed.0", 256, 512) | norm("embed.1", 256)
    return shapes | convolution("conv_end.0", 3, 16, 3)


def dartblur() -> Shapes:
    """nets/UNet.py of DartBlur with four input channels."""
    shapes, inputs = {}, 4
    for number, outputs in enumerate((32, 64, 128, 256, 512)):
        for at, wide in ((0, inputs), (2, outputs)):
            shapes |= convolution(f"down{number}.module.{at}", outputs, wide, 3)
        inputs = outputs
    for number, inputs, between, outputs in (
        (4, 512, 256, 256), (3, 256, 128, 128), (2, 128, 64, 64), (1, 128, 96, 96), (0, 128, 96, 3),
    ):  # fmt: skip
        shapes |= convolution(f"up{number}.module.0", 4 * between, inputs, 3)
        shapes |= convolution(f"up{number}.module.3", outputs, between, 3)
    return shapes


# --- values -------------------------------------------------------------------------------------------------------


class Pool:
    """Standard normal numbers, drawn once, times a factor. Each tensor takes them from a different start.

    Large tensors with the same factor share their memory. A file holds shared memory once: the file of an encoder with
    267 million numbers has 100 MB instead of 1 GB, and networks that load it copy each tensor.
    """

    def __init__(self, seed: int):
        self._numbers = {1.0: torch.randn(POOL, generator=torch.Generator().manual_seed(seed))}
        self._place = 0

    def take(self, shape: Iterable[int], factor: float = 1.0) -> Tensor:
        shape = tuple(shape)
        count = math.prod(shape)
        self._place = (self._place + 7919) % POOL
        if count <= SHARED:
            return (self._repeated(1.0, count) * factor).reshape(shape)
        if factor not in self._numbers:
            self._numbers[factor] = self._numbers[1.0] * factor
        return self._repeated(factor, count).reshape(shape)

    def _repeated(self, factor: float, count: int) -> Tensor:
        numbers = self._numbers[factor]
        if count > POOL:
            return numbers.repeat(-(-count // POOL))[:count]
        start = self._place % (POOL - count + 1)
        return numbers[start : start + count]


def values(shapes: Shapes, seed: int, spread: float | None = None) -> dict[str, Tensor]:
    """Random weights of these shapes. ``spread``: standard deviation; default: one over the square root of fan-in."""
    pool = Pool(seed)
    return {name: _value(name, shape, pool, spread) for name, shape in shapes.items()}


def _value(name: str, shape: tuple[int, ...], pool: Pool, spread: float | None) -> Tensor:
    last = name.rpartition(".")[2]
    if last == "num_batches_tracked":
        return torch.tensor(1000)
    if last == "running_mean":
        return 0.1 * pool.take(shape)
    if last == "running_var":
        return 1.0 + 0.1 * pool.take(shape).abs()
    if last == "logit_scale":
        return torch.tensor(math.log(100.0))
    if len(shape) < 2:
        return (1.0 if last == "weight" else 0.0) + 0.05 * pool.take(shape)
    return pool.take(shape, spread or math.prod(shape[1:]) ** -0.5)


def generator_values(size: int, seed: int) -> dict[str, Tensor]:
    """Weights of `stylegan2`: initialized as in Karras et al. 2020, with a little noise and uneven biases."""
    pool, state = Pool(seed), {}
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
    for name, shape in stylegan2(size).items():
        if name.endswith("kernel"):
            state[name] = torch.outer(taps, taps) / 64 * 4
        elif name.startswith("style.") and name.endswith("weight"):
            state[name] = pool.take(shape, 100.0)  # equalized: the layer multiplies by its learning rate
        elif name.endswith(("bias", "noise.weight")):
            state[name] = float("modulation" in name) + 0.1 * pool.take(shape)
        else:
            state[name] = pool.take(shape)
    return state


# --- files --------------------------------------------------------------------------------------------------------


def plain(layout: Callable[[], Shapes], spread: float | None = None) -> Callable[[int], dict]:
    return lambda seed: values(layout(), seed, spread)


def faceres(seed: int) -> dict[str, Tensor]:
    """faceres.bin of @vladmandic/human: the tensors of faceres.json in its order, kernels as (H, W, in, out).

    Each ReLU6 has its two limits beside it, and the mean its axes.
    """
    limits = torch.tensor([6.0, 0.0])
    shapes = {"age_pred": (256, 100), "feats": (1024, 256), "gender_pred": (256, 1), "conv1": (3, 3, 3, 32)}
    inputs = 32
    for number, outputs in enumerate((64, 128, 128, 256, 256, *(512,) * 6, 1024, 1024), start=1):
        shapes |= {f"conv_dw_{number}": (3, 3, inputs, 1), f"conv_pw_{number}": (1, 1, inputs, outputs)}
        inputs = outputs
    pool, state = Pool(seed), {}
    for name, shape in shapes.items():
        *kernel, before, after = shape
        depthwise = "_dw_" in name
        state[f"{name}.kernel"] = pool.take(shape, (math.prod(kernel) * (1 if depthwise else before) / 2) ** -0.5)
        if depthwise:
            state[f"{name}.factor"] = 1 + 0.05 * pool.take((before,))
        state[f"{name}.bias"] = 0.05 * pool.take((before if depthwise else after,))
        if kernel:
            state[f"{name}.limits"] = limits
    return {name: value.half() for name, value in state.items()} | {"axes": torch.tensor([1, 2], dtype=torch.int32)}


def lightning(seed: int) -> dict:
    """A checkpoint of PyTorch Lightning: the network as ``model.*``, and a head (here of ten classes)."""
    state = {f"model.{name}": value for name, value in values(adaface_ir50(), seed).items()}
    head = {"head.kernel": torch.ones(512, 10), "head.t": torch.zeros(1)}
    head |= {"head.batch_mean": torch.ones(1), "head.batch_std": torch.ones(1)}
    return {"epoch": 25, "global_step": 1, "pytorch-lightning_version": "1.4.4", "state_dict": state | head}


def rosinality(size: int) -> Callable[[int], dict]:
    """What rosinality's convert_weight.py (commit bef283a) writes without its options --gen and --disc."""
    return lambda seed: {"g_ema": generator_values(size, seed), "latent_avg": 0.1 * Pool(seed + 1).take((512,))}


def old_rosinality(size: int) -> Callable[[int], dict]:
    """A snapshot of rosinality's train.py before commit f79322a (15 January 2020): no fixed noise, no mean of W.

    The file of 256 pixels is such a one: the missing noise is in issues 71 and 176, the missing mean in issue 239.
    """

    def made(seed: int) -> dict:
        weights = {name: value for name, value in generator_values(size, seed).items() if "noises." not in name}
        other = torch.nn.Linear(1, 1)  # stands for the discriminator; both optimizers are saved, too
        adam = torch.optim.Adam(other.parameters(), lr=0.002).state_dict()
        return {"g": weights, "d": other.state_dict(), "g_ema": weights, "g_optim": adam, "d_optim": adam}

    return made


def genforce(size: int) -> Callable[[int], dict]:
    def made(seed: int) -> dict:
        state = generator_values(size, seed) | {"latent_avg": 0.1 * Pool(seed + 1).take((512,))}
        return {"generator": {}, "generator_smooth": as_genforce(state), "discriminator": {}}

    return made


def as_genforce(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of rosinality's generator under GenForce's names, in its orientations."""
    kernel = state["convs.0.conv.blur.kernel"].reshape(1, 1, 4, 4)
    out = {"truncation.w_avg": state["latent_avg"], "synthesis.early_layer.const": state["input.input"]}
    out["synthesis.upsample.kernel"] = kernel
    for name, value in state.items():
        parts = name.split(".")
        if parts[0] == "style":
            out[f"mapping.dense{int(parts[1]) - 1}.{parts[2]}"] = value
        elif parts[0] == "noises":
            out[f"synthesis.layer{parts[1].split('_')[1]}.noise"] = value
        elif parts[0] in ("conv1", "convs", "to_rgb1", "to_rgbs"):
            single = parts[0].endswith("1")
            number = 0 if single else int(parts[1]) + 1
            rest = ".".join(parts[1:] if single else parts[2:])
            block = f"synthesis.{'layer' if 'conv' in parts[0] else 'output'}{number}"
            up = parts[0] == "convs" and number % 2 == 1
            if rest == "conv.weight":
                out[f"{block}.weight"] = value[0].flip(-2, -1) if up else value[0]
            elif rest == "conv.modulation.bias":
                out[f"{block}.style.bias"] = value - 1.0
            elif rest == "conv.modulation.weight":
                out[f"{block}.style.weight"] = value
            elif rest == "noise.weight":
                out[f"{block}.noise_strength"] = value.reshape(())
            elif rest in ("activate.bias", "bias"):
                out[f"{block}.bias"] = value.reshape(-1)
            elif rest == "conv.blur.kernel":
                out[f"{block}.filter.kernel"] = kernel
    return out


def inversion(size: int, styles: int) -> Callable[[int], dict]:
    """e4e or pSp: its decoder is the generator that `rosinality` writes with the same seed.

    The keys are those of training/coach.py in encoder4editing (commit 99ea505) and pixel2style2pixel (5cfff38).
    """

    def made(seed: int) -> dict:
        state = {f"encoder.{name}": value for name, value in values(encoder(styles), seed + 1).items()}
        state |= {f"decoder.{name}": value for name, value in generator_values(size, seed).items()}
        options = vars(argparse.Namespace(device="cuda:0", start_from_latent_avg=True, learning_rate=0.0001))
        return {"state_dict": state, "latent_avg": 0.1 * Pool(seed + 2).take((styles, 512)), "opts": options}

    return made


class Part(torch.nn.Module):
    """A module of a program. It holds named tensors and computes nothing."""

    def forward(self, x: int) -> int:
        return x


def grown(start: int) -> Callable[[int], dict]:
    """DeepPrivacy, branch v1: the averaged generator after its growth, beside the other networks (here: a number)."""
    return lambda seed: {
        "running_average_generator": {
            "transition_step": 5,
            "transition_value": 1.0,
            "parameters": values(deepprivacy(start), seed),
        },
        "batch_size": 64,
    }


def averaged(size: int, width: int, most: int) -> Callable[[int], dict]:
    """DeepPrivacy2: the averaged generator, with the filter that its code computes."""

    def content(seed: int) -> dict:
        state, taps = values(deepprivacy2(size, width, most), seed), torch.tensor([1.0, 3.0, 3.0, 1.0])
        filters = {name: torch.outer(taps, taps) / 64 for name in state if name.endswith("resample_filter")}
        return {"EMA_generator": state | filters}

    return content


def program(state: dict[str, Tensor]) -> torch.jit.ScriptModule:
    """A TorchScript program with these parameters, as OpenAI publishes CLIP in half precision."""
    root = Part()
    for name, value in state.items():
        *parents, last = name.split(".")
        part = root
        for parent in parents:
            if parent not in part._modules:
                part.add_module(parent, Part())
            part = part.get_submodule(parent)
        part.register_parameter(last, torch.nn.Parameter(value, requires_grad=False))
    return torch.jit.script(root)


def farl(seed: int) -> dict:
    return {"state_dict": values(clip(16) | farl_heads(), seed, spread=0.02)}


FILES: dict[str, Callable[[int], dict]] = {
    "ir_se50": plain(ir_se50),
    "facenet_vggface2": plain(lambda: facenet(CLASSES["facenet_vggface2"])),
    "facenet_casia": plain(lambda: facenet(CLASSES["facenet_casia"])),
    "adaface_ir50": lightning,
    "stylegan2_256": old_rosinality(256),
    "stylegan2_1024": rosinality(1024),
    "stylegan2_1024_genforce": genforce(1024),
    "e4e_1024": inversion(1024, 18),
    "psp_1024": inversion(1024, 18),
    "farl_ep64": farl,
    "farl_ep16": farl,
    "clip_vit_b32": plain(lambda: clip(32), spread=0.02),
    "bisenet": plain(bisenet),
    "fan4": plain(fan),
    "s3fd": plain(s3fd),
    "inception_fid": plain(inception_fid),
    "faceres": faceres,
    "alexnet": plain(lambda: torchvision_network("alexnet")),
    "vgg16": plain(lambda: torchvision_network("vgg16")),
    "deepprivacy_default": grown(256),
    "deepprivacy_large": grown(512),
    "deepprivacy2_fdf256": averaged(256, 64, 8),
    "deepprivacy2_fdf128": averaged(128, 128, 4),
    "ciagan": plain(ciagan),
    "dartblur": plain(dartblur),
}
"""Role of the registry -> what its file holds, by seed."""
PROGRAMS = ("clip_vit_b32",)
"""Roles that are published as TorchScript programs."""
NAMELESS = ("faceres",)
"""Roles that are published as the numbers of their tensors, one after the other."""
