"""The two discriminators of the second phase: one of pixels, one of the features of a frozen network."""

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.generator.settings import SharpeningSettings
from masquerade.networks import deterministic
from masquerade.networks.discriminators import Discriminator, Heads, Projection
from masquerade.training import distributed, precision

SHIFT = 4  # pixels by which pictures are moved at most before they are judged by features
BRIGHTNESS = 0.15  # added to all their pixels at most


class Adversary(Protocol):
    """What the generator works against: modules and optimizers whose state is kept, and two losses."""

    modules: dict[str, nn.Module]
    optimizers: dict[str, torch.optim.Optimizer]

    def fooled(self, images: Tensor, draw: np.random.Generator) -> Tensor:
        """The loss of a generator that made ``images`` (N, 3, S, S)."""
        ...

    def learn(self, images: Tensor, made: tuple[Tensor, ...], step: int, draw: np.random.Generator) -> Tensor:
        """One update on pictures and on kinds of made ones, each (N, 3, S, S). Returns the loss."""
        ...


class OnPixels:
    """StyleGAN2's discriminator with the non-saturating logistic loss and R1 (Karras et al. 2020, appendix B)."""

    def __init__(self, settings: SharpeningSettings, size: int, channels: list[int], mixed: bool, device: torch.device):
        self.settings, self.mixed = settings, mixed
        self.discriminator = Discriminator(size, channels).to(device)
        self.modules: dict[str, nn.Module] = {"discriminator": self.discriminator}
        self.optimizer = optimizer(self.discriminator, settings)
        self.optimizers: dict[str, torch.optim.Optimizer] = {"discriminator": self.optimizer}

    def fooled(self, images: Tensor, draw: np.random.Generator) -> Tensor:
        self.discriminator.requires_grad_(False)
        loss = functional.softplus(-self._scores(images)).mean()
        self.discriminator.requires_grad_(True)
        return loss

    def learn(self, images: Tensor, made: tuple[Tensor, ...], step: int, draw: np.random.Generator) -> Tensor:
        penalized = self.settings.r1 > 0 and step % self.settings.r1_every == 0  # lazy R1
        images.requires_grad_(penalized)
        real = self.discriminator(images) if penalized else self._scores(images)
        fakes = [functional.softplus(self._scores(kind)).mean() for kind in made]
        loss = torch.stack(fakes).mean() + functional.softplus(-real).mean()
        value = loss.detach()
        if penalized:
            slope = torch.autograd.grad(real.sum(), images, create_graph=True)[0]
            penalty = slope.square().sum(dim=(1, 2, 3)).mean()  # R1: Mescheder et al. 2018, Eq. 9
            loss = loss + self.settings.r1 / 2 * penalty * self.settings.r1_every
        descend(self.optimizer, loss, self.discriminator)
        return value

    def _scores(self, images: Tensor) -> Tensor:
        with precision.mixed(images.device, self.mixed):
            return self.discriminator(images).float()


class OnFeatures:
    """A discriminator of features with the hinge loss, the mean over the scales (Sauer et al. 2021 and their code).

    All pictures are moved and made brighter or darker first, so that the heads do not learn pictures by heart: two of
    the changes of Zhao et al. 2020 (arXiv:2006.10738).
    """

    def __init__(self, settings: SharpeningSettings, mixed: bool, device: torch.device):
        self.mixed = mixed
        self.projection, self.heads = Projection(settings.projected).to(device), Heads().to(device)
        self.modules: dict[str, nn.Module] = {"discriminator": self.heads}
        self.optimizer = optimizer(self.heads, settings)
        self.optimizers: dict[str, torch.optim.Optimizer] = {"discriminator": self.optimizer}

    def fooled(self, images: Tensor, draw: np.random.Generator) -> Tensor:
        self.heads.requires_grad_(False)
        loss = -mean([scores.mean() for scores in self._scores(images, draw)])
        self.heads.requires_grad_(True)
        return loss

    def learn(self, images: Tensor, made: tuple[Tensor, ...], step: int, draw: np.random.Generator) -> Tensor:
        real = mean([functional.relu(1 - scores).mean() for scores in self._scores(images, draw)])
        fakes = [mean([functional.relu(1 + scores).mean() for scores in self._scores(kind, draw)]) for kind in made]
        loss = real + mean(fakes)
        descend(self.optimizer, loss, self.heads)
        return loss.detach()

    def _scores(self, images: Tensor, draw: np.random.Generator) -> list[Tensor]:
        with precision.mixed(images.device, self.mixed):
            return [scores.float() for scores in self.heads(self.projection(moved(images, draw)))]


def moved(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Pictures (N, 3, S, S), each with another brightness, all moved by the same few pixels; differentiable."""
    size = images.shape[-1]
    light = draw.uniform(-BRIGHTNESS, BRIGHTNESS, (len(images) * distributed.count(), 1, 1, 1)).astype(np.float32)
    down, right = draw.integers(0, 2 * SHIFT + 1, 2)
    padded = deterministic.reflected(images, SHIFT)
    return padded[..., down : down + size, right : right + size] + distributed.rows(torch.from_numpy(light)).to(images)


def optimizer(module: nn.Module, settings: SharpeningSettings) -> torch.optim.Optimizer:
    """Adam with beta 0 and 0.99 (Karras et al. 2020 and Sauer et al. 2021)."""
    return torch.optim.Adam(module.parameters(), lr=settings.discriminator_rate, betas=(0.0, 0.99))


def descend(used: torch.optim.Optimizer, loss: Tensor, module: nn.Module) -> None:
    """One step on ``loss`` of the weights of ``module``."""
    used.zero_grad(set_to_none=True)
    loss.backward()
    distributed.average(weight.grad for weight in module.parameters())
    used.step()


def mean(values: list[Any]) -> Tensor:
    """The mean of scalars."""
    return torch.stack(values).mean()
