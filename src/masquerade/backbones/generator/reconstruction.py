"""The first phase of the training of a generator: from the principal components of a picture to the picture.

It gives good faces in minutes on two cores. The principal components of the training pictures are codes that describe
most of a picture linearly. They are uncorrelated, so random codes give faces. The generator learns to decode these
codes, and the mapping network learns their distribution. docs/generator.md has the measurements.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.generator.settings import ReconstructionSettings
from masquerade.core import seeding
from masquerade.core.images import FaceArchive
from masquerade.networks.stylegan2 import Generator
from masquerade.training import distributed

PARTS = (2, 3, 4, 5, 6, 10, 11, 12, 13)  # brows, eyes, glasses, nose, mouth, lips: classes of the parsing masks
SKIN = 1
SMALL = 32  # side in pixels of the pictures of which the components are computed
SPREAD = 0.25  # the deviations of the codes are those of the components to the power of 2 * SPREAD
OTHERS_RATE = 0.01  # learning rate of Adam, for all but the weights of convolutions and modulations
PRIOR = 256  # codes of a step with which the output of the mapping network is compared
WARMUP, COOLDOWN = 30, 0.4  # steps over which the rate rises, and share of the steps over which it falls


class Reconstruction:
    """One update of the generator on the pictures of a batch, and one of the mapping network on codes alone."""

    def __init__(
        self,
        settings: ReconstructionSettings,
        generator: Generator,
        archive: FaceArchive,
        part: str,
        pictures: Tensor,
        seed: int,
    ):
        distributed.check_batch(settings.batch, "backbones.generator.reconstruction.batch")
        self.settings, self.generator, self.seed = settings, generator, seed
        self.pictures = torch.cat([pictures, pictures.flip(2)])  # faces and their mirror images
        weights = _weights(archive, part, generator.size, settings.parts)
        self.weights = torch.cat([weights, weights.flip(-1)])
        self.codes = components(self.pictures, self.weights, generator.style_width, seeding.derive(seed, "components"))
        blocks: list[Any] = [generator.conv1, *generator.convs]
        with torch.no_grad():
            for block in blocks:
                block.conv.modulation.weight.mul_(settings.modulation)
        kernels = [block.conv.weight for block in blocks]
        heads: list[Any] = [generator.to_rgb1, *generator.to_rgbs]
        turned = [part.conv.modulation.weight for part in (*blocks, *heads)]
        # Muon takes matrices: each kernel is one, (outputs, inputs * 9), that shares the memory of the kernel.
        self.matrices = {torch.nn.Parameter(weight.detach().flatten(0, 1).flatten(1)): weight for weight in kernels}
        special = {id(weight) for weight in (*kernels, *turned)}
        mapping = list(generator.style.parameters())
        special |= {id(weight) for weight in mapping}
        others = [weight for weight in generator.parameters() if id(weight) not in special]
        self.optimisers: dict[str, torch.optim.Optimizer] = {
            "kernels": torch.optim.Muon(
                [*self.matrices, *turned], lr=settings.learning_rate, momentum=0.9, weight_decay=0.0,
                adjust_lr_fn="match_rms_adamw",
            ),
            "others": torch.optim.Adam(others, lr=OTHERS_RATE, betas=(0.9, 0.99)),
            "prior": torch.optim.Adam(mapping, lr=0.002, betas=(0.9, 0.99)),
        }  # fmt: skip
        self.rates = {"kernels": settings.learning_rate, "others": OTHERS_RATE, "prior": 0.002}

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses."""
        self._schedule(step)
        draw = seeding.generator(self.seed, "reconstruction", step)
        chosen = distributed.rows(torch.from_numpy(draw.integers(0, len(self.pictures), self.settings.batch)))
        device = self.generator.latent_avg.device
        images = self.pictures[chosen].to(device).permute(0, 3, 1, 2).float() / 127.5 - 1.0
        weights, codes = self.weights[chosen].to(device), self.codes[chosen].to(device)
        pyramid = self.generator.pyramid(self.generator.broadcast(codes), noise="none")
        pixels, edges = differences(pyramid[-1], images, weights)
        coarse = torch.stack([(made - reduced(images, made)).abs().mean() for made in pyramid[:-1]]).sum() / len(
            pyramid
        )
        prior = self._prior(draw)
        loss = pixels + self.settings.edges * edges + coarse + prior
        self.generator.zero_grad(set_to_none=True)
        loss.backward()
        distributed.average(weight.grad for weight in self.generator.parameters())
        for matrix, weight in self.matrices.items():
            matrix.grad = weight.grad.flatten(0, 1).flatten(1)
        for optimiser in self.optimisers.values():
            optimiser.step()
        return {"pixels": pixels.item(), "edges": edges.item(), "prior": prior.item()}

    def _prior(self, draw: np.random.Generator) -> Tensor:
        """The energy distance of W to the codes of the training pictures. Every process computes all of it."""
        device = self.generator.latent_avg.device
        z = torch.from_numpy(draw.standard_normal((PRIOR, self.generator.style_width), dtype=np.float32)).to(device)
        some = torch.from_numpy(draw.integers(0, len(self.codes), PRIOR))
        return energy_distance(self.generator.map(z), self.codes[some].to(device))

    def _schedule(self, step: int) -> None:
        steps = self.settings.steps
        factor = min(1.0, (step + 1) / WARMUP) * min(1.0, max(0.02, (steps - step) / (COOLDOWN * steps)))
        for name, optimiser in self.optimisers.items():
            for group in optimiser.param_groups:
                group["lr"] = self.rates[name] * factor


def components(pictures: Tensor, weights: Tensor, width: int, seed: int) -> Tensor:
    """The codes of pictures, uint8 (M, S, S, 3) -> float32 (M, width): their scaled principal components.

    Pixels are weighted by the root of the mean of ``weights`` (M, 1, S, S). The codes have mean 0 and are uncorrelated.
    Their deviations are those of the components to the power of 2 SPREAD, with mean 1: components that change much of
    a picture stay large, because they are easier to decode, and small components are not lost. If there are fewer
    pictures than ``width``, the last codes are 0.
    """
    torch.manual_seed(seed)
    by = weights.mean(dim=0).sqrt()
    small = torch.cat([reduced_to(part.permute(0, 3, 1, 2).float() / 127.5 - 1.0, by) for part in pictures.split(512)])
    centred = small - small.mean(dim=0)
    used = min(width, *centred.shape)
    _, values, basis = torch.pca_lowrank(centred, q=used, center=False, niter=3)
    deviation = values / len(centred) ** 0.5
    codes = centred @ basis / deviation.clamp(min=1e-6) * (deviation / deviation.mean()) ** (1 - 2 * SPREAD)
    return functional.pad(codes, (0, width - used))


def reduced_to(images: Tensor, by: Tensor) -> Tensor:
    """Pictures weighted by ``by``, at SMALL pixels, as vectors."""
    factor = max(1, images.shape[-1] // SMALL)
    return (functional.avg_pool2d(images, factor) * functional.avg_pool2d(by, factor)).flatten(1)


def reduced(images: Tensor, like: Tensor) -> Tensor:
    """Pictures averaged down to the size of the pictures ``like``."""
    return functional.avg_pool2d(images, images.shape[-1] // like.shape[-1])


def differences(made: Tensor, images: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean absolute error of the pixels, and of the steps to the next pixel to the right and below."""
    error = made - images
    across, down = error[..., 1:] - error[..., :-1], error[..., 1:, :] - error[..., :-1, :]
    edges = (across.abs() * weights[..., 1:]).mean() + (down.abs() * weights[..., 1:, :]).mean()
    return (error.abs() * weights).mean(), edges


def energy_distance(first: Tensor, second: Tensor) -> Tensor:
    """2 E|x - y| - E|x - x'| - E|y - y'| of two samples (N, D), (M, D); its mean is 0 for equal distributions.

    Szekely and Rizzo 2013, Energy statistics, Journal of Statistical Planning and Inference 143(8), Eq. 6.1.
    """
    between = torch.cdist(first, second).mean()
    return 2 * between - _within(first) - _within(second)


def _within(sample: Tensor) -> Tensor:
    count = len(sample)
    return torch.cdist(sample, sample).sum() / (count * (count - 1))


def _weights(archive: FaceArchive, part: str, size: int, parts: float) -> Tensor:
    """The weight of each pixel, float32 (M, 1, size, size), with mean 1 in a picture; from the parsing masks."""
    rows = archive.select(part)
    if not parts:
        return torch.ones(len(rows), 1, size, size)
    masks = torch.from_numpy(archive.masks(rows))[:, None]
    inner = torch.isin(masks, torch.tensor(PARTS, dtype=torch.uint8)).float()
    weights = 1.0 + parts * functional.max_pool2d(inner, 3, 1, 1) + 0.5 * parts * (masks == SKIN)
    return weights / weights.mean(dim=(1, 2, 3), keepdim=True)
