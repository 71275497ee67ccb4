"""The networks of DeepPrivacy (Hukkelås et al. 2019, arXiv:1909.04538), its published weight file, and its training.

The networks are those of the published code, layer by layer (branch v1, models/generator.py and
models/discriminator.py). The progressive growing of the paper is left out, as in the configuration deep_privacy_v1 of
the code's second version: the networks have their final size from the first step.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.core import seeding
from masquerade.core.errors import CheckpointError
from masquerade.methods._inpainting import region, training
from masquerade.methods._inpainting.training import InpaintingTask, People, Scenes
from masquerade.methods.deepprivacy import DeepPrivacySettings
from masquerade.networks.discriminators import gradient_penalty
from masquerade.networks.inputs import device
from masquerade.networks.stylegan2_layers import PixelNorm
from masquerade.training import weight_files
from masquerade.training.settings import TrainingJob

SMALLEST = 4
"""Side in pixels of the coarsest maps."""
SLOPE = 0.2  # of every LeakyReLU
CONDITION = 4  # channels of the hidden image and of its mask


class EqualConvolution(nn.Module):
    """A convolution whose weights are scaled at run time by sqrt(2 / fan-in) (equalized learning rate)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, padding: int | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.scale = math.sqrt(2 / (inputs * kernel * kernel))
        self.padding = kernel // 2 if padding is None else padding

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight * self.scale, self.bias, padding=self.padding)


class _Block(nn.Sequential):
    """Two convolutions 3 x 3, each with a LeakyReLU and, in the generator, a pixel norm."""

    def __init__(self, inputs: int, between: int, outputs: int, norm: bool):
        layers: list[nn.Module] = []
        for into, out in ((inputs, between), (between, outputs)):
            layers += [EqualConvolution(into, out, 3), nn.LeakyReLU(SLOPE), *([PixelNorm()] if norm else [])]
        super().__init__(*layers)


def _pointwise(inputs: int, outputs: int, norm: bool) -> nn.Sequential:
    layers: list[nn.Module] = [EqualConvolution(inputs, outputs, 1), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers, *([PixelNorm()] if norm else []))


class InpaintingUNet(nn.Module):
    """Draws a face into an image in which the face is hidden.

    ``widths``: channels at each size, finest first, down to 4 x 4 pixels. ``pose``: maps of keypoints, one channel a
    keypoint (0: no pose). ``code``: channels of the latent code at 4 x 4 pixels (32: the published code).
    """

    def __init__(self, widths: Sequence[int], pose: int = 7, code: int = 32):
        super().__init__()
        self.size, self.pose, self.code = SMALLEST * 2 ** (len(widths) - 1), pose, code
        coarser = [*widths[1:], widths[-1]]
        self.from_picture = _pointwise(3, widths[0], norm=True)
        self.down = nn.ModuleList(
            _Block(wide, deep, deep, norm=True) for wide, deep in zip(widths, coarser, strict=True)
        )
        self.merge = _pointwise(widths[-1] + pose + code, widths[-1], norm=True)
        self.bottom = _Block(widths[-1], widths[-1], widths[-1], norm=True)
        pairs = list(zip(widths, coarser, strict=True))[-2::-1]  # from 8 x 8 pixels up
        self.join = nn.ModuleList(_pointwise(2 * deep + pose, deep, norm=True) for _, deep in pairs)
        self.up = nn.ModuleList(_Block(deep, wide, wide, norm=True) for wide, deep in pairs)
        self.to_picture = EqualConvolution(widths[0], 3, 1)

    def forward(self, hidden: Tensor, masks: Tensor, keypoints: Tensor, code: Tensor) -> Tensor:
        """The image that is drawn, (N, 3, S, S), not limited to [-1, 1].

        ``hidden`` (N, 3, S, S) in [-1, 1], gray in the region to draw, which is how the network finds it: it does not
        see ``masks`` (N, 1, S, S); ``keypoints`` (N, ``pose``, 2) as shares of the
        sides, outside of [0, 1) if unknown; ``code`` (N, ``code``, 4, 4).
        """
        features = self.from_picture(hidden)  # (N, widths[0], S, S)
        skips = []
        for level, block in enumerate(self.down):
            features = block(features)
            if level < len(self.down) - 1:
                skips.append(features)
                features = functional.avg_pool2d(features, 2)
        # at 4 x 4 pixels: the features, the maps of the keypoints, and the code
        features = self.bottom(self.merge(torch.cat([features, self._maps(keypoints, features), code], dim=1)))
        for join, up in zip(self.join, self.up, strict=True):
            features = functional.interpolate(features, scale_factor=2.0, mode="nearest")
            features = up(join(torch.cat([features, skips.pop(), self._maps(keypoints, features)], dim=1)))
        return self.to_picture(features)

    def _maps(self, keypoints: Tensor, like: Tensor) -> Tensor:
        return pose_maps(keypoints[:, : self.pose], like.shape[-1])


class InpaintingCritic(nn.Module):
    """Scores an image that stands in its context; (N,), larger is more real. It has no norm.

    ``widths``: as those of the generator; the published critic has floor(sqrt(2) * width / 8) * 8 channels.
    """

    def __init__(self, widths: Sequence[int], pose: int = 7):
        super().__init__()
        self.pose = pose
        wider = [max(8, int(math.sqrt(2) * width / 8) * 8) for width in widths]
        coarser = wider[1:]
        self.from_picture = _pointwise(3 + CONDITION, wider[0], norm=False)
        self.down = nn.ModuleList(
            _Block(wide + pose, wide, deep, norm=False) for wide, deep in zip(wider[:-1], coarser, strict=True)
        )
        last = wider[-1]
        self.last = nn.Sequential(
            EqualConvolution(last + pose, last, 3), nn.LeakyReLU(SLOPE),
            EqualConvolution(last, last, SMALLEST, padding=0), nn.LeakyReLU(SLOPE),
            nn.Flatten(), nn.Linear(last, 1),
        )  # fmt: skip

    def forward(self, images: Tensor, hidden: Tensor, masks: Tensor, keypoints: Tensor) -> Tensor:
        """Images (N, 3, S, S), their hidden versions (N, 3, S, S), masks (N, 1, S, S) and keypoints -> (N,)."""
        features = self.from_picture(torch.cat([images, hidden, masks], dim=1))
        for block in self.down:
            features = functional.avg_pool2d(block(self._with_pose(features, keypoints)), 2)
        return self.last(self._with_pose(features, keypoints)).squeeze(1)

    def _with_pose(self, features: Tensor, keypoints: Tensor) -> Tensor:
        return torch.cat([features, pose_maps(keypoints[:, : self.pose], features.shape[-1])], dim=1)


def pose_maps(keypoints: Tensor, size: int) -> Tensor:
    """One map a keypoint, (N, K, size, size): 1 at the pixel that holds the keypoint, else 0.

    ``keypoints`` (N, K, 2): x, y as shares of the sides. One outside of [0, 1), or unknown (NaN), gives an empty map.
    """
    inside = ((keypoints >= 0) & (keypoints < 1)).all(dim=-1)
    places = torch.where(inside[..., None], keypoints, 0).mul(size).long()
    maps = keypoints.new_zeros(*keypoints.shape[:2], size * size)
    maps.scatter_(2, (places[..., 1] * size + places[..., 0])[..., None], inside[..., None].to(maps.dtype))
    return maps.unflatten(2, (size, size))


AVERAGE = "running_average_generator"
GROWN = "transition_step"
SHARE = "transition_value"
"""Share of the finest blocks in the image; 1 after the growth."""
EARLIER = {f"{name}.": "used only while the network grows" for name in ("from_rgb_old", "to_rgb_old")}


def build_generator(settings: DeepPrivacySettings) -> InpaintingUNet:
    """The generator with the widths of ``settings``, untrained."""
    return InpaintingUNet(settings.widths, settings.pose, settings.code)


def load_official(params: DeepPrivacySettings, path: Path) -> InpaintingUNet:
    """The generator of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    return weight_files.load(build_generator(params), official_tensors(params, path), path)


def official_tensors(params: DeepPrivacySettings, path: Path) -> dict[str, Tensor]:
    """The tensors of the generator in a published file, under our names."""
    content = weight_files.read(path)
    average = content.get(AVERAGE) if isinstance(content, Mapping) else None
    if not isinstance(average, Mapping) or not {GROWN, SHARE} <= average.keys():
        raise CheckpointError(f"{path} has no {AVERAGE} with a {GROWN}: it is no file of DeepPrivacy, branch v1.")
    grown, levels = average[GROWN], len(params.widths) - 1
    if grown != levels or average[SHARE] != 1:
        raise CheckpointError(
            f"{path}: the generator has grown {grown} times (share of the last: {average[SHARE]}). With "
            f"{levels + 1} widths it must have grown {levels} times, completely."
        )
    tensors = weight_files.select_tensors(average, path, EARLIER, under="parameters")
    ours = weight_files.rename_tensors(tensors, official_names(levels), path)
    return {name: value.flatten() if name.endswith("bias") else value for name, value in ours.items()}


def official_names(levels: int) -> dict[str, str]:
    """Published name -> our name of each tensor of a generator that has grown ``levels`` (at least two) times."""
    layers = {
        "from_rgb_new.0": "from_picture.0",
        "core_blocks_up.0.0.0.0": "merge.0",
        "new_up.0.0": f"join.{levels - 1}.0",
        "to_rgb_new": "to_picture",
    }
    layers |= {f"core_blocks_up.{level}.0.0": f"join.{level - 1}.0" for level in range(1, levels)}
    blocks = {"new_down.0.model": "down.0", "core_blocks_down.0.0.model": "down.1"}
    blocks |= {f"core_blocks_down.{level}.1.model": f"down.{level + 1}" for level in range(1, levels - 1)}
    blocks |= {f"core_blocks_down.{levels - 1}.1": f"down.{levels}", "core_blocks_up.0.0.1.model": "bottom"}
    blocks |= {f"core_blocks_up.{level}.1.model": f"up.{level - 1}" for level in range(1, levels)}
    blocks |= {"new_up.1.model": f"up.{levels - 1}"}
    layers |= {f"{theirs}.{at}.0": f"{ours}.{3 * at}" for theirs, ours in blocks.items() for at in (0, 1)}
    kinds = {"conv.weight": "weight", "bias": "bias"}
    return {f"{theirs}.{a}": f"{ours}.{b}" for theirs, ours in layers.items() for a, b in kinds.items()}


class DeepPrivacyTask(InpaintingTask):
    """Improved Wasserstein loss (Gulrajani et al. 2017, Eq. 3) with a drift term (Karras et al. 2018, appendix A.1)."""

    jitter = 0.02  # the published code

    def __init__(self, settings: DeepPrivacySettings, people: People, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        network = build_generator(settings).to(device())
        critic = InpaintingCritic(settings.widths, settings.pose).to(device())
        super().__init__(settings, network, critic, people, seed)

    def build_guide(self, landmarks: np.ndarray) -> np.ndarray:
        return region.select_keypoints(landmarks, self.size)

    def draw_codes(self, count: int, draw: np.random.Generator) -> np.ndarray:
        return draw.standard_normal((count, self.settings.code, SMALLEST, SMALLEST), dtype=np.float32)

    def scores(self, images: Tensor, scenes: Scenes) -> Tensor:
        return self.critic(images, scenes.hidden, scenes.masks, scenes.guide)

    def generator_loss(self, scores: Tensor) -> Tensor:
        return -scores.mean()

    def penalizes(self, step: int) -> bool:
        return self.settings.losses.gradient_penalty > 0 and step % self.settings.small_scale.penalty_every == 0

    def critic_loss(self, scenes: Scenes, pasted: Tensor, step: int) -> Tensor:
        weights = self.settings.losses
        real, fake = self.scores(scenes.images, scenes), self.scores(pasted, scenes)
        loss = fake.mean() - real.mean() + weights.drift * real.square().mean()
        if self.penalizes(step):
            draw = seeding.make_generator(self.seed, "penalty", step)
            penalty = gradient_penalty(lambda mixed: self.scores(mixed, scenes), scenes.images, pasted, draw)
            loss = loss + weights.gradient_penalty * self.settings.small_scale.penalty_every * penalty
        return loss


def train(settings: DeepPrivacySettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged generator)."""
    training.train(settings, job, settings.size, lambda people: DeepPrivacyTask(settings, people, job.seed))
