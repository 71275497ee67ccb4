"""DeepPrivacy2 for faces (Hukkelås and Lindseth 2023): a U-Net whose decoder takes a style, and its training.

The generator is that of the published code, layer by layer (dp2/generator/stylegan_unet.py, dp2/layers/sg2_layers.py).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import softplus

from masquerade.core import seeding
from masquerade.core.errors import CheckpointError
from masquerade.methods._inpainting import region, training
from masquerade.methods._inpainting.training import InpaintingTask, People, Scenes
from masquerade.methods.deepprivacy2 import DeepPrivacy2Settings
from masquerade.networks.discriminators import Discriminator
from masquerade.networks.inputs import device
from masquerade.networks.stylegan2_layers import GAIN, SLOPE, ActivatedLinear, EqualLinear, LowPass, PixelNorm
from masquerade.training import weight_files
from masquerade.training.settings import TrainingJob

CLAMP = 256.0
"""Largest magnitude of the output of a layer of gain 1."""
MAPPING_RATE = 0.01
"""Learning rate of the mapping network, as a share of the others'."""
MEAN_DECAY = 0.998
"""Decay of the running mean of the styles."""

Resampling = Literal["", "up", "down"]


@dataclass(frozen=True)
class Output:
    """What follows a convolution: a bias or none, a LeakyReLU unless it is ``linear``, and the factor ``gain``."""

    gain: float = 1.0
    linear: bool = False
    bias: bool = True


HIDDEN = Output()


class StyleConvolution(nn.Module):
    """Scale and shift of the input by the style, convolution, instance norm, bias, LeakyReLU; each is optional.

    ``style``: width of the style (0: no style).
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        resampling: Resampling = "",
        *,
        style: int = 0,
        norm: bool = False,
        output: Output = HIDDEN,
    ):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs)) if output.bias else None
        self.scale, self.padding, self.resampling = 1 / math.sqrt(inputs * kernel**2), kernel // 2, resampling
        if output.linear:
            self.gain, self.slope, self.limit = output.gain, 1.0, None
        else:
            self.gain, self.slope, self.limit = output.gain * GAIN, SLOPE, output.gain * CLAMP
        self.norm = nn.InstanceNorm2d(outputs) if norm else None
        self.affine = EqualLinear(style, inputs, bias=1.0) if style else None
        self.affine_beta = EqualLinear(style, inputs) if style else None
        if resampling == "down":
            border = 2 if kernel == 3 else 1
            self.filter = LowPass(up=1, padding=(border, border))
        elif resampling == "up":
            self.filter = LowPass(up=1, padding=(1, 1)) if kernel == 3 else LowPass(up=2, padding=(2, 1))

    def forward(self, x: Tensor, style: Tensor | None = None) -> Tensor:
        if self.affine is not None:
            assert self.affine_beta is not None
            x = x * self.affine(style)[:, :, None, None] + self.affine_beta(style)[:, :, None, None]
        x = self._convolve(x, self.weight * self.scale)
        if self.norm is not None:
            x = self.norm(x)
        if self.bias is not None:
            x = x + self.bias[None, :, None, None]
        x = functional.leaky_relu(x, self.slope) * self.gain
        return x if self.limit is None else x.clamp(-self.limit, self.limit)

    def _convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        if not self.resampling:
            return functional.conv2d(x, weight, padding=self.padding)
        if self.resampling == "down":
            return functional.conv2d(self.filter(x) / 4, weight, stride=2)  # `LowPass` has the gain of up-sampling
        if self.padding:
            return self.filter(functional.conv_transpose2d(x, weight.transpose(0, 1), stride=2))
        return self.filter(functional.conv2d(x, weight))


class StyleBlock(nn.Module):
    """Two convolutions and a linear shortcut. It halves the image at its start, or doubles it at its end."""

    def __init__(self, inputs: int, outputs: int, resampling: Resampling, gain: float, style: int = 0):
        super().__init__()
        styled = {"style": style, "norm": bool(style)}
        down, up = ("down", "") if resampling == "down" else ("", resampling)
        self.conv0 = StyleConvolution(inputs, outputs, resampling=down, **styled)
        self.conv1 = StyleConvolution(outputs, outputs, resampling=up, output=Output(gain), **styled)
        self.skip = StyleConvolution(inputs, outputs, 1, resampling, output=Output(gain, linear=True, bias=False))

    def forward(self, x: Tensor, style: Tensor | None = None) -> Tensor:
        return self.skip(x) + self.conv1(self.conv0(x, style), style)


class MappingNetwork(nn.Module):
    """From random numbers to styles, with the running mean of the styles."""

    mean: Tensor

    def __init__(self, width: int, layers: int = 2):
        super().__init__()
        self.layers = nn.Sequential(
            PixelNorm(), *(ActivatedLinear(width, width, rate=MAPPING_RATE) for _ in range(layers))
        )
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, numbers: Tensor) -> Tensor:
        """(N, width) -> (N, width). In training, the mean follows."""
        styles = self.layers(numbers)
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(styles.mean(dim=0).to(self.mean), 1 - MEAN_DECAY)
        return styles


class StyleUNet(nn.Module):
    """Draws a face into an image in which the face is hidden. It gets no keypoints.

    ``size``: side of the images; ``lowest``: side of the coarsest maps (8: published). ``width``: channels at
    full size (64: published, 256 pixels); each halving doubles them, up to ``most`` times (8: published). ``style``:
    width of the random numbers and of the styles (512: published).
    """

    def __init__(self, size: int, lowest: int, width: int, most: int, style: int):
        super().__init__()
        levels = int(math.log2(size // lowest)) + 1
        widths = [width * min(2**level, most) for level in range(levels + 1)]  # at size, size / 2, ...
        self.size, self.style, self.truncation = size, style, 1.0
        self.mapping = MappingNetwork(style)
        self.from_rgb = StyleConvolution(4, widths[0], 1)
        encoder, decoder, skips = [], [], []
        for level in range(levels):
            last = level == levels - 1
            resampling: Resampling = "down" if level else ""
            outputs = widths[level] if last else widths[level + 1]
            encoder.append(StyleBlock(widths[level], outputs, resampling, math.sqrt(1 / 2)))
        for level in reversed(range(levels)):
            lowest_level = level == levels - 1
            inputs = widths[level] if lowest_level else widths[level + 1]
            decoder.append(StyleBlock(inputs, widths[level], "up" if level else "", math.sqrt(1 / 3), style))
            if not lowest_level:
                skips.append(StyleConvolution(inputs, inputs, 1, norm=True, output=Output(math.sqrt(1 / 3))))
        self.encoder, self.decoder = nn.ModuleList(encoder), nn.ModuleList(decoder)
        self.skips = nn.ModuleList(skips)
        self.to_rgb = StyleConvolution(widths[0], 3, 1, output=Output(linear=True))

    def forward(self, hidden: Tensor, masks: Tensor, guide: Tensor, code: Tensor) -> Tensor:
        """The image that is drawn, (N, 3, S, S), not limited to [-1, 1].

        ``hidden`` (N, 3, S, S) in [-1, 1], gray in the region; ``masks`` (N, 1, S, S), 1 in the region to draw;
        ``guide`` is not used; ``code`` (N, ``style``): random numbers. ``truncation`` of the network moves their styles
        towards the mean: 1 leaves them as they are, 0 gives every face the mean.
        """
        style = self.mapping.mean.lerp(self.mapping(code).to(self.mapping.mean), self.truncation)  # (N, style)
        features = self.from_rgb(torch.cat([hidden, 1 - masks], dim=1))
        skips = []
        for block in self.encoder:
            features = block(features)
            skips.append(features)
        skips.pop()
        for number, block in enumerate(self.decoder):
            if number:
                features = features + self.skips[number - 1](skips.pop())
            features = block(features, style)
        return self.to_rgb(features)


AVERAGE = "EMA_generator"
CENTERS = {"style_net.w_centers": "centers of styles, for multi-modal truncation"}
FILTER = "resample_filter"
"""The published name of a filter [1, 3, 3, 1], whose entries have the sum 1; ours have the sum 4."""


def build_generator(settings: DeepPrivacy2Settings) -> StyleUNet:
    """The generator with the shape of ``settings``, untrained."""
    return StyleUNet(**settings.generator.model_dump())


def load_official(params: DeepPrivacy2Settings, path: Path) -> StyleUNet:
    """The generator of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    untrained = build_generator(params)
    return weight_files.load(untrained, official_tensors(untrained.state_dict(), path), path)


def official_tensors(ours: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """The tensors of the generator in a published file, under our names. ``ours``: our state dict."""
    tensors = weight_files.select_tensors(weight_files.read(path), path, CENTERS, under=AVERAGE)
    ours_by_name = weight_files.rename_tensors(tensors, {official_name(name): name for name in ours}, path)
    for name, value in ours_by_name.items():
        if name.endswith(".filter.kernel"):
            if value.shape != ours[name].shape or not torch.allclose(4 * value, ours[name]):
                raise CheckpointError(
                    f"{path}: {official_name(name)} is not the filter [1, 3, 3, 1] of the published code."
                )
            ours_by_name[name] = ours[name]
    return ours_by_name


def official_name(name: str) -> str:
    """The published name of one of our tensors."""
    room, _, rest = name.partition(".")
    if room == "skips":
        number, _, rest = rest.partition(".")
        return f"unet_block{int(number) + 1}.{rest}"
    if name == "mapping.mean":
        return "style_net.w_avg"
    if room == "mapping":  # layers.0 normalizes
        _, number, rest = rest.split(".")
        return f"style_net.fc{int(number) - 1}.{rest}"
    return name.replace("filter.kernel", FILTER)


CONDITION = 4  # channels of the hidden image and of its mask


class DeepPrivacy2Task(InpaintingTask):
    """Non-saturating logistic loss with R1 at some steps (Karras et al. 2020) and a drift term."""

    def __init__(self, settings: DeepPrivacy2Settings, people: People, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        size = settings.generator.size
        critic = Discriminator(size, settings.critic, inputs=3 + CONDITION).to(device())
        super().__init__(settings, build_generator(settings).to(device()), critic, people, seed)

    def build_guide(self, landmarks: np.ndarray) -> np.ndarray:
        return region.make_empty_guide(landmarks, self.size)

    def draw_codes(self, count: int, draw: np.random.Generator) -> np.ndarray:
        return draw.standard_normal((count, self.settings.generator.style), dtype=np.float32)

    def scores(self, images: Tensor, scenes: Scenes) -> Tensor:
        return self.critic(torch.cat([images, scenes.hidden, scenes.masks], dim=1)).squeeze(1)

    def generator_loss(self, scores: Tensor) -> Tensor:
        return softplus(-scores).mean()

    def penalizes(self, step: int) -> bool:
        return self.settings.losses.r1 > 0 and step % self.settings.r1_every == 0

    def critic_loss(self, scenes: Scenes, pasted: Tensor, step: int) -> Tensor:
        weights, every, penalized = self.settings.losses, self.settings.r1_every, self.penalizes(step)
        images = scenes.images.detach().requires_grad_(penalized)  # what the scenes show beside them gets no slope
        real, fake = self.scores(images, scenes), self.scores(pasted, scenes)
        loss = softplus(fake).mean() + softplus(-real).mean() + weights.drift * real.square().mean()
        if penalized:  # R1: Mescheder et al. 2018, Eq. 9
            slope = torch.autograd.grad(real.sum(), images, create_graph=True)[0]
            loss = loss + weights.r1 / 2 * every * slope.square().sum(dim=(1, 2, 3)).mean()
        return loss


def train(settings: DeepPrivacy2Settings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged generator)."""
    training.train(settings, job, settings.generator.size, lambda people: DeepPrivacy2Task(settings, people, job.seed))
