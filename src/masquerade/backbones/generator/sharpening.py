"""The second phase of the training of a generator: decoding goes on, and the pictures become sharp.

A decoder that is trained on absolute errors blurs what its codes do not determine: hair, pores, the edges of glasses. A
measure of texture asks for as much local detail as the picture has, a discriminator for detail that looks right, in
decoded pictures and in random faces. docs/generator.md has the measurements.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.generator.adversaries import Adversary, OnFeatures, OnPixels
from masquerade.backbones.generator.reconstruction import COOLDOWN, WARMUP, Examples, Prior, Weights, decoding_losses
from masquerade.backbones.generator.settings import GeneratorSettings
from masquerade.core import seeding
from masquerade.networks.discriminators import group
from masquerade.networks.stylegan2 import Generator
from masquerade.training import distributed, precision
from masquerade.training.optimizers import cooldown_share

AROUND = 7  # side in pixels of the square over which the texture is averaged


class Sharpening:
    """One update of the generator with its mapping network, and one of the discriminator."""

    def __init__(self, params: GeneratorSettings, generator: Generator, examples: Examples, seed: int):
        settings = params.sharpening
        together = 1 if settings.projected else group(settings.batch)
        distributed.check_batch(settings.batch, "backbones.generator.sharpening.batch", together=together)
        self.params, self.settings, self.generator, self.examples = params, settings, generator, examples
        self.seed = seed
        self.weights = Weights(generator, settings.kernel_rate, settings.learning_rate)
        self.prior = Prior(params.reconstruction.critic, generator, examples)
        self.adversary: Adversary = (
            OnFeatures(settings, params.mixed, examples.device) if settings.projected
            else OnPixels(settings, generator.size, params.channels, params.mixed, examples.device)
        )  # fmt: skip
        self.modules: dict[str, nn.Module] = self.adversary.modules | self.prior.modules
        self.optimizers = self.weights.optimizers | self.prior.optimizers | self.adversary.optimizers

    def step(self, step: int) -> dict[str, float]:
        """One update of each network. Returns the losses."""
        settings, mixed = self.settings, self.params.mixed
        draw = seeding.generator(self.seed, "sharpening", step)
        torch.manual_seed(seeding.derive(self.seed, "noise", step))
        images, weights, codes = self.examples.batch(draw, settings.batch)
        made, values = decoding_losses(self.generator, codes, images, weights, mixed, settings.noise)
        values["texture"] = ((texture(made) - texture(images)).abs() * weights).mean()
        sampled = self._samples(draw)
        values["decoded"] = self.adversary.fooled(made, draw)
        values["samples"] = self.adversary.fooled(sampled, draw)
        values["prior"] = self.prior.loss(draw)
        loss = (
            values["pixels"] + self.params.reconstruction.edges * values["edges"] + values["coarse"] + values["prior"]
            + settings.texture * values["texture"] + settings.decoded * values["decoded"]
            + settings.samples * values["samples"]
        )  # fmt: skip
        share = min(1.0, (step + 1) / WARMUP) * cooldown_share(step, settings.steps, COOLDOWN)
        self.weights.descend(loss, share)
        values["discriminator"] = self.adversary.learn(images, (made.detach(), sampled.detach()), step, draw)
        return {name: value.item() for name, value in values.items()}

    def _samples(self, draw: np.random.Generator) -> Tensor:
        """Random faces, the rows of this process."""
        z = draw.standard_normal((self.settings.batch, self.generator.style_width), dtype=np.float32)
        z = distributed.rows(torch.from_numpy(z)).to(self.examples.device)
        with precision.mixed(z.device, self.params.mixed):
            codes = self.generator.broadcast(self.generator.map(z))
            return self.generator.synthesize(codes, self.settings.noise).float()


def texture(images: Tensor) -> Tensor:
    """Local sharpness of pictures (N, 3, S, S): the magnitude of the Laplacian of their gray, averaged around a pixel.

    Returns (N, 1, S, S). It is large where there is fine detail, whatever its place.
    """
    gray = functional.pad(images.mean(dim=1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    middle = gray[..., 1:-1, 1:-1]
    around = gray[..., :-2, 1:-1] + gray[..., 2:, 1:-1] + gray[..., 1:-1, :-2] + gray[..., 1:-1, 2:]
    return functional.avg_pool2d((around - 4 * middle).abs(), AROUND, 1, AROUND // 2, count_include_pad=False)
