"""The second phase of the training of a generator: decoding goes on, and the images become sharp.

A decoder that is trained on absolute errors blurs what its codes do not determine: hair, pores, the edges of glasses. A
measure of texture asks for as much local detail as the image has, a discriminator for detail that looks right, in
decoded images and in random faces. docs/backbones.md has the measurements.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.generator import GeneratorSettings, SharpeningSettings
from masquerade.backbones.generator.reconstruction import (
    COOLDOWN,
    WARMUP,
    Examples,
    Prior,
    Weights,
    compute_decoding_losses,
)
from masquerade.core import seeding
from masquerade.networks import deterministic
from masquerade.networks.discriminators import Heads, Projection
from masquerade.networks.stylegan2 import Generator
from masquerade.training import distributed, precision
from masquerade.training.optimizers import compute_cooldown, descend

OTHERS_RATE = 0.003  # largest learning rate of Adam, for what Muon does not train (ours)
DECODED = 0.02  # weight of the adversarial loss of decoded images; pixels have weight 1 (ours)
AROUND = 7  # side in pixels of the square over which the texture is averaged


class Sharpening:
    """One update of the generator with its mapping network, and one of the discriminator."""

    def __init__(self, params: GeneratorSettings, generator: Generator, examples: Examples, seed: int):
        settings = params.small_scale.sharpening
        distributed.check_batch(settings.batch, "backbones.generator.small_scale.sharpening.batch")
        self.params, self.settings, self.generator, self.examples = params, settings, generator, examples
        self.seed = seed
        self.weights = Weights(generator, settings.kernel_rate, OTHERS_RATE)
        self.prior = Prior(params.small_scale.reconstruction.critic, generator, examples)
        self.adversary = Adversary(settings, params.mixed, examples.device)
        self.modules: dict[str, nn.Module] = self.adversary.modules | self.prior.modules
        self.optimizers = self.weights.optimizers | self.prior.optimizers | self.adversary.optimizers

    def step(self, step: int) -> dict[str, float]:
        """One update of each network. Returns the losses."""
        settings, mixed = self.settings, self.params.mixed
        draw = seeding.make_generator(self.seed, "sharpening", step)
        torch.manual_seed(seeding.derive_seed(self.seed, "noise", step))
        images, weights, codes = self.examples.batch(draw, settings.batch)
        decoded, values = compute_decoding_losses(self.generator, codes, images, weights, mixed, "fresh")
        values["texture"] = ((compute_texture(decoded) - compute_texture(images)).abs() * weights).mean()
        sampled = self._samples(draw)
        values["decoded"] = self.adversary.fooled(decoded, draw)
        values["samples"] = self.adversary.fooled(sampled, draw)
        values["prior"] = self.prior.loss(draw)
        loss = (
            values["pixels"] + values["edges"] + values["coarse"] + values["prior"]
            + settings.texture * values["texture"] + DECODED * values["decoded"]
            + settings.samples * values["samples"]
        )  # fmt: skip
        share = min(1.0, (step + 1) / WARMUP) * compute_cooldown(step, settings.steps, COOLDOWN)
        self.weights.descend(loss, share)
        values["discriminator"] = self.adversary.learn(images, (decoded.detach(), sampled.detach()), draw)
        return {name: value.item() for name, value in values.items()}

    def _samples(self, draw: np.random.Generator) -> Tensor:
        """Random faces, the rows of this process."""
        z = draw.standard_normal((self.settings.batch, self.generator.style_width), dtype=np.float32)
        z = distributed.select_rows(torch.from_numpy(z)).to(self.examples.device)
        with precision.use_bfloat16(z.device, self.params.mixed):
            codes = self.generator.broadcast(self.generator.map(z))
            return self.generator.synthesize(codes, "fresh").float()


def compute_texture(images: Tensor) -> Tensor:
    """Local sharpness of images (N, 3, S, S): the magnitude of the Laplacian of their gray, averaged around a pixel.

    Returns (N, 1, S, S). It is large where there is fine detail, whatever its place.
    """
    gray = functional.pad(images.mean(dim=1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    middle = gray[..., 1:-1, 1:-1]
    around = gray[..., :-2, 1:-1] + gray[..., 2:, 1:-1] + gray[..., 1:-1, :-2] + gray[..., 1:-1, 2:]
    return functional.avg_pool2d((around - 4 * middle).abs(), AROUND, 1, AROUND // 2, count_include_pad=False)


SHIFT = 4  # pixels by which images are moved at most before they are judged by features
BRIGHTNESS = 0.15  # added to all their pixels at most


class Adversary:
    """What the generator works against: a discriminator of features with the hinge loss, the mean over the scales.

    Sauer et al. 2021 and their code.

    All images are moved and made brighter or darker first, so that the heads do not learn images by heart: two of
    the changes of Zhao et al. 2020 (arXiv:2006.10738).
    """

    def __init__(self, settings: SharpeningSettings, mixed: bool, device: torch.device):
        self.mixed = mixed
        self.projection, self.heads = Projection(settings.projected).to(device), Heads().to(device)
        self.modules: dict[str, nn.Module] = {"discriminator": self.heads}
        # beta 0 and 0.99: Karras et al. 2020 and Sauer et al. 2021
        self.optimizer = torch.optim.Adam(self.heads.parameters(), lr=settings.discriminator_rate, betas=(0.0, 0.99))
        self.optimizers: dict[str, torch.optim.Optimizer] = {"discriminator": self.optimizer}

    def fooled(self, images: Tensor, draw: np.random.Generator) -> Tensor:
        """The loss of a generator that made ``images`` (N, 3, S, S)."""
        self.heads.requires_grad_(False)
        loss = -torch.stack([scores.mean() for scores in self._scores(images, draw)]).mean()
        self.heads.requires_grad_(True)
        return loss

    def learn(self, images: Tensor, generated: tuple[Tensor, ...], draw: np.random.Generator) -> Tensor:
        """One update on images and on kinds of generated ones, each (N, 3, S, S). Returns the loss."""
        real = [functional.relu(1 - scores).mean() for scores in self._scores(images, draw)]
        fakes = [[functional.relu(1 + scores).mean() for scores in self._scores(kind, draw)] for kind in generated]
        loss = torch.stack(real).mean() + torch.stack([torch.stack(losses).mean() for losses in fakes]).mean()
        descend(self.optimizer, loss)
        return loss.detach()

    def _scores(self, images: Tensor, draw: np.random.Generator) -> list[Tensor]:
        with precision.use_bfloat16(images.device, self.mixed):
            return [scores.float() for scores in self.heads(self.projection(move_images(images, draw)))]


def move_images(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Images (N, 3, S, S), each with another brightness, all moved by the same few pixels; differentiable."""
    size = images.shape[-1]
    count = len(images) * distributed.count_processes()
    light = draw.uniform(-BRIGHTNESS, BRIGHTNESS, (count, 1, 1, 1)).astype(np.float32)
    down, right = draw.integers(0, 2 * SHIFT + 1, 2)
    padded = deterministic.reflect(images, SHIFT)
    light = distributed.select_rows(torch.from_numpy(light)).to(images)
    return padded[..., down : down + size, right : right + size] + light
