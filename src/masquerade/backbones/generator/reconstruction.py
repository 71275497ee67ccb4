"""The first phase of the training of a generator: from the principal components of an image to the image.

It gives good faces in minutes on two cores. The principal components of the training images are codes that describe
most of an image linearly. They are uncorrelated, so random codes give faces. The generator learns to decode these
codes, and the mapping network learns their distribution. docs/backbones.md has the measurements.
"""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.generator import ReconstructionSettings
from masquerade.core import seeding
from masquerade.core.images import FaceArchive
from masquerade.networks.discriminators import compute_r1
from masquerade.networks.stylegan2 import Generator, Noise
from masquerade.networks.w_space import CodeDiscriminator, LinearCodes, choose_linear_side
from masquerade.training import distributed, precision
from masquerade.training.batches import mirror, to_images
from masquerade.training.optimizers import Muon, compute_cooldown

PARTS = (2, 3, 4, 5, 6, 10, 11, 12, 13)  # brows, eyes, glasses, nose, mouth, lips: classes of the parsing masks
SKIN = 1
AT_ONCE = 512  # images of which the codes, and the weights of the pixels, are computed together
KERNEL_RATE = 0.05  # largest learning rate of Muon in the first phase (ours)
PARTS_WEIGHT = (
    4.0  # extra weight of a pixel of brows, eyes, nose and mouth over one of the background; of skin: half of it
)
OTHERS_RATE = 0.01  # learning rate of Adam, for all but the weights of convolutions and modulations
PRIOR_RATE = 0.002  # learning rate of Adam, for the mapping network and its critic
PRIOR = 256  # codes of a step with which the output of the mapping network is compared
WARMUP, COOLDOWN = 30, 0.4  # steps over which the rate rises, and share of the steps over which it falls


class PixelWeights:
    """The weights of the pixels of a part of the faces, which follow from their parsing masks.

    ``parts``: the extra weight of brows, eyes, nose and mouth; skin has half of it. Masks are kept, and weights are
    computed when they are asked for, because they take four times the memory of masks.
    """

    def __init__(self, archive: FaceArchive, part: str, size: int, parts: float):
        rows = archive.select(part)
        self.size, self.parts = size, parts
        self.masks = torch.from_numpy(archive.masks(rows)) if parts else None

    def of(self, rows: Tensor) -> Tensor:
        """The weights of the images with these numbers, float32 (N, 1, size, size), with mean 1 in an image."""
        if self.masks is None:
            return torch.ones(len(rows), 1, self.size, self.size)
        masks = self.masks[rows][:, None]
        inner = torch.isin(masks, torch.tensor(PARTS, dtype=torch.uint8)).float()
        weights = 1.0 + self.parts * functional.max_pool2d(inner, 3, 1, 1) + 0.5 * self.parts * (masks == SKIN)
        return weights / weights.mean(dim=(1, 2, 3), keepdim=True)


class Examples:
    """The training images and their mirror images, the weights of their pixels, and their linear codes.

    Of M images, number M + n is the mirror image of number n. It is made when it is asked for.
    """

    def __init__(self, archive: FaceArchive, part: str, pictures: Tensor, generator: Generator, parts: float,
                 linear: LinearCodes, seed: int):  # fmt: skip
        self.pictures, self.device = pictures, generator.latent_avg.device
        self.weights = PixelWeights(archive, part, generator.size, parts)
        numbers = torch.arange(2 * len(pictures)).split(AT_ONCE)
        mean = torch.stack([self._weights(some).sum(dim=0) for some in numbers]).sum(dim=0) / (2 * len(pictures))
        images = (self._images(some) for some in numbers)
        linear.cpu().learn(images, mean, seeding.derive_seed(seed, "components"))
        self.linear = linear.to(self.device)

    @cached_property
    def codes(self) -> Tensor:
        """The codes of all images, float32 (2 M, width).

        They are computed for the first batch, because the map may first be restored, or be copied from another process.
        """
        numbers = torch.arange(2 * len(self.pictures)).split(AT_ONCE)
        with torch.no_grad():
            return torch.cat([self.linear(self._images(some).to(self.device)).cpu() for some in numbers])

    def _images(self, rows: Tensor) -> Tensor:
        return mirror(to_images(self.pictures[rows % len(self.pictures)]), rows >= len(self.pictures))

    def _weights(self, rows: Tensor) -> Tensor:
        return mirror(self.weights.of(rows % len(self.pictures)), rows >= len(self.pictures))

    def batch(self, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """``count`` images (N, 3, S, S) in [-1, 1], the weights (N, 1, S, S) of their pixels, and their codes."""
        rows = distributed.select_rows(torch.from_numpy(draw.integers(0, 2 * len(self.pictures), count)))
        images, weights, codes = self._images(rows), self._weights(rows), self.codes[rows]
        return images.to(self.device), weights.to(self.device), codes.to(self.device)

    def some_codes(self, draw: np.random.Generator) -> Tensor:
        """PRIOR of the codes. Every process of a training has the same."""
        return self.codes[torch.from_numpy(draw.integers(0, len(self.codes), PRIOR))].to(self.device)


class Weights:
    """The optimizers of a generator: Muon for convolutions and modulations, Adam for the rest and for the mapping."""

    def __init__(self, generator: Generator, kernel_rate: float, rate: float):
        blocks: list[Any] = [generator.conv1, *generator.convs]
        heads: list[Any] = [generator.to_rgb1, *generator.to_rgbs]
        kernels = [block.conv.weight for block in blocks]
        modulations = [part.conv.modulation.weight for part in (*blocks, *heads)]
        # Muon takes matrices: each kernel is one, (outputs, inputs * 9), that shares the memory of the kernel.
        self.matrices = {nn.Parameter(weight.detach().flatten(0, 1).flatten(1)): weight for weight in kernels}
        self.mapping = list(generator.style.parameters())
        special = {id(weight) for weight in (*kernels, *modulations, *self.mapping)}
        others = [weight for weight in generator.parameters() if id(weight) not in special]
        self.generator = generator
        self.optimizers: dict[str, torch.optim.Optimizer] = {
            "kernels": Muon([*self.matrices, *modulations], lr=kernel_rate),
            "others": torch.optim.Adam(others, lr=rate, betas=(0.9, 0.99)),
            "prior": torch.optim.Adam(self.mapping, lr=PRIOR_RATE, betas=(0.9, 0.99)),
        }
        self.rates = {"kernels": kernel_rate, "others": rate, "prior": PRIOR_RATE}

    def descend(self, loss: Tensor, share: float) -> None:
        """Take one step on ``loss`` at ``share`` of the largest learning rates."""
        self.generator.zero_grad(set_to_none=True)
        loss.backward()
        distributed.average_gradients(weight.grad for weight in self.generator.parameters())
        for matrix, weight in self.matrices.items():
            matrix.grad = None if weight.grad is None else weight.grad.flatten(0, 1).flatten(1)
        for name, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = self.rates[name] * share
            optimizer.step()


class Prior:
    """The distribution of W: that of the codes of the training images, by energy distance and, if weighted, a critic.

    The energy distance alone leaves codes between two modes, which give images of two haircuts at once.
    """

    def __init__(self, weight: float, generator: Generator, examples: Examples):
        self.weight, self.generator, self.examples = weight, generator, examples
        self.modules: dict[str, nn.Module] = {}
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        if weight:
            critic = CodeDiscriminator(generator.style_width, 3, equalized=True).to(examples.device)
            self.modules["critic"] = critic
            self.optimizers["critic"] = torch.optim.Adam(critic.parameters(), lr=PRIOR_RATE, betas=(0.0, 0.99))

    def loss(self, draw: np.random.Generator) -> Tensor:
        """The loss of the mapping network. Every process computes all of it. The critic takes a step of its own."""
        z = torch.from_numpy(draw.standard_normal((PRIOR, self.generator.style_width), dtype=np.float32))
        w, real = self.generator.map(z.to(self.examples.device)), self.examples.some_codes(draw)
        loss = compute_energy_distance(w, real)
        if not self.weight:
            return loss
        critic, optimizer = self.modules["critic"], self.optimizers["critic"]
        real.requires_grad_(True)
        scores = critic(real)
        separation = functional.softplus(-scores).mean() + functional.softplus(critic(w.detach())).mean()
        optimizer.zero_grad(set_to_none=True)
        (separation + compute_r1(scores, real)).backward()  # gamma = 2
        optimizer.step()
        critic.requires_grad_(False)
        loss = loss + self.weight * functional.softplus(-critic(w)).mean()
        critic.requires_grad_(True)
        return loss


class Reconstruction:
    """One update of the generator on the images of a batch, and one of the mapping network on codes alone."""

    def __init__(
        self, settings: ReconstructionSettings, generator: Generator, examples: Examples, mixed: bool, seed: int
    ):
        distributed.check_batch(settings.batch, "backbones.generator.small_scale.reconstruction.batch")
        self.settings, self.generator, self.examples = settings, generator, examples
        self.mixed, self.seed = mixed, seed
        blocks: list[Any] = [generator.conv1, *generator.convs]
        with torch.no_grad():
            for block in blocks:
                block.conv.modulation.weight.mul_(settings.modulation)
        self.weights = Weights(generator, KERNEL_RATE, OTHERS_RATE)
        self.prior = Prior(settings.critic, generator, examples)
        self.modules, self.optimizers = self.prior.modules, self.weights.optimizers | self.prior.optimizers

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses."""
        draw = seeding.make_generator(self.seed, "reconstruction", step)
        images, weights, codes = self.examples.batch(draw, self.settings.batch)
        values = compute_decoding_losses(self.generator, codes, images, weights, self.mixed)[1]
        values["prior"] = self.prior.loss(draw)
        loss = values["pixels"] + values["edges"] + values["coarse"] + values["prior"]
        share = min(1.0, (step + 1) / WARMUP) * compute_cooldown(step, self.settings.steps, COOLDOWN)
        self.weights.descend(loss, share)
        return {name: value.item() for name, value in values.items()}


def compute_decoding_losses(
    generator: Generator, codes: Tensor, images: Tensor, weights: Tensor, mixed: bool, noise: Noise = "none"
) -> tuple[Tensor, dict[str, Tensor]]:
    """The images of ``codes`` (N, width), and the losses that compare the images of every level with ``images``."""
    with precision.use_bfloat16(codes.device, mixed):
        pyramid = generator.pyramid(generator.broadcast(codes), noise)
    pyramid = [level.float() for level in pyramid]
    pixels, edges = compute_differences(pyramid[-1], images, weights)
    coarse = torch.stack([(level - reduce_images(images, level)).abs().mean() for level in pyramid[:-1]]).sum() / len(
        pyramid
    )
    return pyramid[-1], {"pixels": pixels, "edges": edges, "coarse": coarse}


def reduce_images(images: Tensor, like: Tensor) -> Tensor:
    """Images averaged down to the size of the images ``like``."""
    return functional.avg_pool2d(images, images.shape[-1] // like.shape[-1])


def compute_differences(generated: Tensor, images: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean absolute error of the pixels, and of the steps to the next pixel to the right and below."""
    error = generated - images
    across, down = error[..., 1:] - error[..., :-1], error[..., 1:, :] - error[..., :-1, :]
    edges = (across.abs() * weights[..., 1:]).mean() + (down.abs() * weights[..., 1:, :]).mean()
    return (error.abs() * weights).mean(), edges


def compute_energy_distance(first: Tensor, second: Tensor) -> Tensor:
    """2 E|x - y| - E|x - x'| - E|y - y'| of two samples (N, D), (M, D); its mean is 0 for equal distributions.

    Szekely and Rizzo 2013, Energy statistics, Journal of Statistical Planning and Inference 143(8), Eq. 6.1.
    """
    between = torch.cdist(first, second).mean()
    return 2 * between - _measure_within(first) - _measure_within(second)


def _measure_within(sample: Tensor) -> Tensor:
    count = len(sample)
    return torch.cdist(sample, sample).sum() / (count * (count - 1))


def build_linear_codes(generator: Generator) -> LinearCodes:
    """The map of which the generator decodes the codes, still untrained."""
    return LinearCodes(choose_linear_side(generator.layers), generator.style_width)
