"""The third phase of the training of a generator: that of StyleGAN2 (Karras et al. 2020, appendix B).

Non-saturating logistic loss, R1 and path length penalties at some steps (lazy regularization), style mixing.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.generator import AdversarialSettings
from masquerade.core import seeding
from masquerade.networks.discriminators import Discriminator, choose_group_size, compute_r1
from masquerade.networks.stylegan2 import Generator
from masquerade.training import distributed
from masquerade.training.batches import mirror, to_images
from masquerade.training.optimizers import descend

LENGTH_DECAY = 0.01  # of the running mean of path lengths: Karras et al. 2020, appendix B
LENGTH_SHRINK = 2  # factor by which the batch of the path length is smaller: appendix B


class PathLength(nn.Module):
    """The running mean of path lengths."""

    mean: Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))


class Adversarial:
    """One update of the discriminator and one of the generator."""

    def __init__(
        self, settings: AdversarialSettings, generator: Generator, channels: list[int], pictures: Tensor, seed: int
    ):
        knob = "backbones.generator.adversarial.batch"
        distributed.check_batch(settings.batch, knob, together=choose_group_size(settings.batch))
        if settings.path_length:
            distributed.check_batch(
                count_path_lengths(settings.batch), f"the batch of the path length (half of {knob})"
            )
        self.settings, self.generator, self.pictures, self.seed = settings, generator, pictures, seed
        self.device = generator.latent_avg.device
        self.discriminator = Discriminator(generator.size, channels).to(self.device)
        self.length = PathLength().to(self.device)
        self.modules = {"discriminator": self.discriminator, "length": self.length}
        self.optimizers = {
            "generator": self._optimizer(generator, settings.path_length_every if settings.path_length else 0),
            "discriminator": self._optimizer(self.discriminator, settings.r1_every if settings.r1 else 0),
        }

    def _optimizer(self, module: nn.Module, every: int) -> torch.optim.Optimizer:
        """Adam, corrected for a penalty at every ``every``-th step: Karras et al. 2020, appendix B."""
        share = every / (every + 1) if every else 1.0
        rate = self.settings.learning_rate * share
        return torch.optim.Adam(module.parameters(), lr=rate, betas=(0.0**share, 0.99**share))

    def step(self, step: int) -> dict[str, float]:
        """One update of the discriminator and one of the generator. Returns the losses."""
        draw = seeding.make_generator(self.seed, "adversarial", step)
        torch.manual_seed(seeding.derive_seed(self.seed, "noise", step))
        count = self.settings.batch
        rows = distributed.select_rows(torch.from_numpy(draw.integers(0, len(self.pictures), count)))
        mirrored = distributed.select_rows(torch.from_numpy(draw.random(count) < 0.5)).to(self.device)
        images = mirror(to_images(self.pictures[rows].to(self.device)), mirrored)
        values = self._update_discriminator(images, self._codes(draw, count), step)
        values |= self._update_generator(self._codes(draw, count), step)
        return values

    def _codes(self, draw: np.random.Generator, count: int) -> Tensor:
        """W+ of ``count`` random faces, the rows of this process. Some change the code at a random layer (mixing)."""
        z = torch.from_numpy(draw.standard_normal((2, count, self.generator.style_width), dtype=np.float32))
        first, second = (
            self.generator.broadcast(self.generator.map(distributed.select_rows(part).to(self.device))) for part in z
        )
        layers = self.generator.layers
        start = np.where(draw.random(count) < self.settings.mixing, draw.integers(1, layers, count), layers)
        is_second = torch.arange(layers)[None, :] >= torch.from_numpy(distributed.select_rows(start))[:, None]
        return torch.where(is_second.to(self.device)[..., None], second, first)

    def _update_discriminator(self, images: Tensor, codes: Tensor, step: int) -> dict[str, float]:
        settings = self.settings
        with torch.no_grad():
            generated = self.generator.synthesize(codes, "fresh")
        penalized = settings.r1 > 0 and step % settings.r1_every == 0  # lazy regularization, as the path length
        images.requires_grad_(penalized)
        real = self.discriminator(images)
        loss = functional.softplus(self.discriminator(generated)).mean() + functional.softplus(-real).mean()
        values = {"discriminator": loss.item()}
        if penalized:
            penalty = compute_r1(real, images)
            loss = loss + settings.r1 / 2 * penalty * settings.r1_every
            values["r1"] = penalty.item()
        descend(self.optimizers["discriminator"], loss)
        return values

    def _update_generator(self, codes: Tensor, step: int) -> dict[str, float]:
        settings = self.settings
        self.discriminator.requires_grad_(False)
        loss = functional.softplus(-self.discriminator(self.generator.synthesize(codes, "fresh"))).mean()
        self.discriminator.requires_grad_(True)
        values = {"generator": loss.item()}
        if settings.path_length > 0 and step % settings.path_length_every == 0:
            lengths = compute_path_lengths(self.generator, codes[: count_path_lengths(len(codes))])
            mean = lengths.detach().mean()
            distributed.average_gradients([mean])
            self.length.mean.lerp_(mean, LENGTH_DECAY)
            penalty = (lengths - self.length.mean).square().mean()  # Karras et al. 2020, Eq. 4
            loss = loss + settings.path_length * settings.path_length_every * penalty
            values["path_length"] = lengths.mean().item()
        descend(self.optimizers["generator"], loss)
        return values


def count_path_lengths(batch: int) -> int:
    """The number of codes of a batch on which the path length is measured."""
    return max(1, batch // LENGTH_SHRINK)


def compute_path_lengths(generator: Generator, codes: Tensor) -> Tensor:
    """||J_w^T y|| of random images y, (N,): Karras et al. 2020, Eq. 4; the mean over style layers, as published."""
    images = generator.synthesize(codes, "fresh")
    directions = distributed.draw_normal(*images.shape, like=images) / math.sqrt(images.shape[-1] * images.shape[-2])
    slope = torch.autograd.grad((images * directions).sum(), codes, create_graph=True)[0]
    return slope.square().sum(dim=2).mean(dim=1).sqrt()
