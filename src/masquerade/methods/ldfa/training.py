"""LDFA (Rombach et al. 2022): autoencoder, denoising U-Net, sampling, and their trainings, both of which are ours.

The input of the denoiser has the form of Stable Diffusion's inpainting model: the noisy latent map, that of the image
without the face, and the mask. It has no text. It predicts v (Salimans and Ho 2022), as few steps of training learn
noise worse. The sampling is DDIM (Song et al. 2021).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import mse_loss

from masquerade.core import seeding
from masquerade.core.images import to_float
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.training import People, read_people
from masquerade.methods.ldfa import LdfaSettings, PhaseSettings
from masquerade.networks import deterministic
from masquerade.networks.inputs import apply_in_batches, device
from masquerade.training.optimizers import Optimizers, compute_cooldown
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

GROUPS = 8
"""Groups of channels that are normalized together."""


class LatentAutoencoder(nn.Module):
    """Images (N, 3, S, S) in [-1, 1] <-> latent maps (N, ``latent``, s, s), s = S / 2 ** len(widths).

    ``widths``: channels after each halving.
    """

    def __init__(self, widths: Sequence[int], latent: int):
        super().__init__()
        down: list[nn.Module] = []
        for into, out in pairwise([3, *widths]):
            down += [nn.Conv2d(into, out, 4, 2, 1), norm(out), nn.SiLU(), Residual(out)]
        self.encoder = nn.Sequential(*down, nn.Conv2d(widths[-1], latent, 1))
        up: list[nn.Module] = [nn.Conv2d(latent, widths[-1], 3, padding=1), Residual(widths[-1])]
        for into, out in pairwise([*widths[::-1], widths[0]]):
            up += [nn.Upsample(scale_factor=2.0), nn.Conv2d(into, out, 3, padding=1), norm(out), nn.SiLU()]
            up += [Residual(out)]
        self.decoder = nn.Sequential(*up, nn.Conv2d(widths[0], 3, 3, padding=1))

    def forward(self, images: Tensor) -> Tensor:
        """The images, encoded and decoded."""
        return self.decoder(self.encoder(images))


class Residual(nn.Module):
    """x + f(x): norm, SiLU, convolution, twice."""

    def __init__(self, width: int):
        super().__init__()
        layers = [[norm(width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1)] for _ in range(2)]
        self.layers = nn.Sequential(*(layer for some in layers for layer in some))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


def norm(width: int) -> nn.GroupNorm:
    """The norm of each image, over groups of channels."""
    return nn.GroupNorm(GROUPS if width % GROUPS == 0 else 1, width)


TIMES = 1000
"""Times of the schedule."""
FIRST, LAST = 0.00085, 0.0120  # betas of Stable Diffusion, linear in their roots
PERIOD = 10000.0  # of the slowest wave of the embedding of time (Vaswani et al. 2017, section 3.5)


class Denoiser(nn.Module):
    """(N, 2 L + 1, s, s) and times (N,) -> v, (N, L, s, s). ``widths``: channels at s, s / 2, ..."""

    def __init__(self, latent: int, widths: Sequence[int]):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(widths[0], widths[-1]), nn.SiLU(), nn.Linear(widths[-1], widths[-1]))
        self.waves = widths[0]
        self.first = nn.Conv2d(2 * latent + 1, widths[0], 3, padding=1)
        coarser = list(zip(widths, [*widths[1:], widths[-1]], strict=True))[:-1]
        timed = widths[-1]
        self.down = nn.ModuleList(TimedBlock(a, a, timed) for a, _ in coarser)
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 4, 2, 1) for a, b in coarser)
        self.middle = nn.ModuleList(
            [TimedBlock(timed, timed, timed), Attention(timed), TimedBlock(timed, timed, timed)]
        )
        self.enlarge = nn.ModuleList(nn.Conv2d(b, a, 3, padding=1) for a, b in reversed(coarser))
        self.up = nn.ModuleList(TimedBlock(2 * a, a, timed) for a, _ in reversed(coarser))
        self.last = nn.Sequential(norm(widths[0]), nn.SiLU(), nn.Conv2d(widths[0], latent, 3, padding=1))

    def forward(self, maps: Tensor, times: Tensor) -> Tensor:
        embedded = self.time(embed_times(times, self.waves))
        features, skips = self.first(maps), []  # (N, widths[0], s, s)
        for block, halve in zip(self.down, self.shrink, strict=True):
            features = block(features, embedded)
            skips.append(features)
            features = halve(features)
        first, attention, second = self.middle  # at the coarsest size: (N, widths[-1], ...)
        features = second(attention(first(features, embedded)), embedded)
        for double, block in zip(self.enlarge, self.up, strict=True):
            features = double(functional.interpolate(features, scale_factor=2.0, mode="nearest"))
            features = block(torch.cat([features, skips.pop()], dim=1), embedded)
        return self.last(features)


class TimedBlock(nn.Module):
    """A residual block whose second norm is scaled and shifted by the time."""

    def __init__(self, inputs: int, outputs: int, timed: int):
        super().__init__()
        self.norm1, self.first = norm(inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.second = norm(outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(timed, 2 * outputs)
        self.beside = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, embedded: Tensor) -> Tensor:
        scale, shift = self.time(embedded)[:, :, None, None].chunk(2, dim=1)
        deep = self.first(functional.silu(self.norm1(x)))
        deep = self.second(functional.silu(self.norm2(deep) * (1 + scale) + shift))
        return self.beside(x) + deep


class Attention(nn.Module):
    """x + self-attention over the pixels, with one head."""

    def __init__(self, width: int):
        super().__init__()
        self.norm, self.parts, self.out = norm(width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.parts(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, dim=2)  # (N, h w, width)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return x + self.out(mixed.transpose(1, 2).unflatten(2, x.shape[2:]))


def embed_times(times: Tensor, width: int) -> Tensor:
    """Times (N,) -> (N, width) of sines and cosines with periods up to PERIOD."""
    frequencies = torch.exp(-math.log(PERIOD) * torch.arange(width // 2, device=times.device) / (width // 2))
    angles = times[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos(), angles.new_zeros(len(times), width % 2)], dim=1)


def compute_signal_shares() -> Tensor:
    """The product of 1 - beta up to each time, float64 (TIMES,): alpha-bar of Ho et al. 2020, Eq. 4."""
    betas = torch.linspace(FIRST**0.5, LAST**0.5, TIMES, dtype=torch.float64).square()
    return (1 - betas).cumprod(dim=0)


class LatentInpainter(nn.Module):
    """Draws a region by diffusion, in the latent maps of an autoencoder.

    ``strength``: share of the schedule that is run. With less than 1 the start is the original image with noise, as the
    published program has it, so the face reaches the result. ``steps``: steps of the sampling if all of it is run.
    """

    mean: Tensor
    deviation: Tensor
    kept: Tensor

    def __init__(self, settings: LdfaSettings):
        super().__init__()
        self.autoencoder = LatentAutoencoder(settings.autoencoder.widths, settings.latent)
        self.denoiser = Denoiser(settings.latent, settings.denoiser.widths)
        self.register_buffer("mean", torch.zeros(1, settings.latent, 1, 1))
        self.register_buffer("deviation", torch.ones(1, settings.latent, 1, 1))
        self.register_buffer("kept", compute_signal_shares().float(), persistent=False)
        self.strength, self.steps = 1.0, 20

    def encode(self, images: Tensor) -> Tensor:
        """Images -> latent maps with mean 0 and deviation 1 in each channel."""
        return (self.autoencoder.encoder(images) - self.mean) / self.deviation

    def decode(self, maps: Tensor) -> Tensor:
        """The inverse of `encode`."""
        return self.autoencoder.decoder(maps * self.deviation + self.mean)

    def add_noise(self, maps: Tensor, noise: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """x_t = a x + b n (Ho et al. 2020, Eq. 4) and v = a n - b x (Salimans and Ho 2022, appendix D)."""
        a, b = self._factors(times)
        return a * maps + b * noise, a * noise - b * maps

    def predict(self, noisy: Tensor, condition: Tensor, times: Tensor) -> Tensor:
        """v of noisy maps; ``condition`` is that of `condition`."""
        return self.denoiser(torch.cat([noisy, condition], dim=1), times)

    def condition(self, hidden: Tensor, masks: Tensor) -> Tensor:
        """The latent map of the image without the face, and the mask at its size: (N, L + 1, s, s)."""
        maps = self.encode(hidden)
        return torch.cat([maps, deterministic.average(masks, maps.shape[-2:])], dim=1)

    def forward(self, hidden: Tensor, masks: Tensor, guide: Tensor, code: Tensor) -> Tensor:
        """The image that is drawn, (N, 3, S, S), not limited to [-1, 1].

        ``hidden`` (N, 3, S, S), gray in the region; ``masks`` (N, 1, S, S), 1 in the region to draw; ``guide``: the
        unprotected image (N, 3, S, S), used only if ``strength`` is below 1; ``code`` (N, L, s, s): normal numbers.
        """
        condition = self.condition(hidden, masks)
        count = max(1, round(self.strength * self.steps))
        times = torch.linspace(self.strength * (TIMES - 1), 0, count + 1, device=code.device).round().long()
        maps = code
        if self.strength < 1:
            maps = self.add_noise(self.encode(guide), code, times[:1].expand(len(code)))[0]
        for time, after in pairwise(times):
            now = time.expand(len(maps))
            a, b = self._factors(now)
            v = self.predict(maps, condition, now)
            clear, noise = a * maps - b * v, b * maps + a * v  # Salimans and Ho 2022, appendix D
            if after == 0:
                return self.decode(clear)
            a, b = self._factors(after.expand(len(maps)))
            maps = a * clear + b * noise  # DDIM with eta = 0: Song et al. 2021, Eq. 12
        return self.decode(maps)

    def _factors(self, times: Tensor) -> tuple[Tensor, Tensor]:
        signal = self.kept[times][:, None, None, None]
        return signal.sqrt(), (1 - signal).sqrt()


BETAS = (0.9, 0.99)
ENCODED = 128  # images whose latent maps are computed at a time
BOXES = 0.5  # share of the training masks that are face boxes; the others are random boxes
SMALLEST, LARGEST = 0.3, 0.8  # sides of random boxes, as shares of the side of the image
SAMPLES = 6  # rows of a sample image


class LdfaTask:
    """The updates of the autoencoder, then those of the diffusion model."""

    def __init__(self, settings: LdfaSettings, people: People, seed: int):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.people, self.seed = settings, people, seed
        self.network = LatentInpainter(settings).to(device())
        self.modules = {"network": self.network}
        self.optimizers = {
            "autoencoder": self._optimizer(settings.autoencoder, "autoencoder"),
            "denoiser": self._optimizer(settings.denoiser, "denoiser"),
        }

    def _optimizer(self, phase: PhaseSettings, name: str) -> Optimizers:
        module = {name: getattr(self.network, name)}
        return Optimizers.with_kernels(module, phase.learning_rate, phase.kernel_rate, BETAS)

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        first, settings = self.settings.autoencoder.steps, self.settings
        draw = seeding.make_generator(self.seed, "ldfa", step)
        if step < first:
            values = self._reconstruct(draw)
            loss = values["pixels"] + settings.edges * values["edges"]
            share = compute_cooldown(step, first, settings.cooldown)
            self.optimizers["autoencoder"].descend(loss, share)
        else:
            if step == first:
                self._standardize()
            values = {"denoising": self._denoise(draw)}
            share = compute_cooldown(step - first, settings.denoiser.steps, settings.cooldown)
            self.optimizers["denoiser"].descend(values["denoising"], share)
        return {name: value.item() for name, value in values.items()}

    def _reconstruct(self, draw: np.random.Generator) -> dict[str, Tensor]:
        images, _ = self._batch(draw, self.settings.autoencoder.batch)
        error = self.network.autoencoder(images) - images
        edges = torch.stack([error.diff(dim=along).abs().mean() for along in (2, 3)]).sum()
        return {"pixels": error.abs().mean(), "edges": edges}

    def _denoise(self, draw: np.random.Generator) -> Tensor:
        """The mean squared error of v at random times (Salimans and Ho 2022)."""
        images, masks = self._batch(draw, self.settings.denoiser.batch)
        with torch.no_grad():
            maps, condition = self.network.encode(images), self.network.condition(images * (1 - masks), masks)
        noise = torch.from_numpy(draw.standard_normal(maps.shape, dtype=np.float32)).to(maps)
        times = torch.from_numpy(draw.integers(TIMES, size=len(maps))).to(maps.device)
        noisy, v = self.network.add_noise(maps, noise, times)
        return mse_loss(self.network.predict(noisy, condition, times), v)

    @torch.no_grad()
    def _standardize(self) -> None:
        """Set mean and deviation of the latent maps of the training images."""
        maps = apply_in_batches(self.network.autoencoder.encoder, ENCODED, self.people.pictures)
        self.network.mean.copy_(maps.mean(dim=(0, 2, 3), keepdim=True))
        self.network.deviation.copy_(maps.std(dim=(0, 2, 3), keepdim=True))

    def _batch(self, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
        """Images (N, 3, S, S), half of them mirrored, and masks (N, 1, S, S): face boxes and random boxes."""
        rows = draw.integers(len(self.people.pictures), size=count)
        images, size = to_float(self.people.pictures[rows]), self.settings.size
        corners = region.find_boxes(self.people.landmarks[rows], size)
        sides = draw.uniform(SMALLEST, LARGEST, (count, 2)) * size
        start = draw.uniform(0, 1, (count, 2)) * (size - sides)
        random_boxes = np.rint(np.concatenate([start, start + sides], axis=1)).astype(int)
        of_face = np.arange(count) < round(BOXES * count)
        masks = region.draw_masks(np.where(of_face[:, None], corners, random_boxes), size)[:, None].astype(np.float32)
        mirrored = draw.random(count) < 0.5
        images[mirrored], masks[mirrored] = images[mirrored][..., ::-1], masks[mirrored][..., ::-1]
        where = self.network.mean.device
        return torch.from_numpy(images).to(where), torch.from_numpy(masks).to(where)


def train(settings: LdfaSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint`` (the averaged networks)."""
    training = Training(job, settings)
    task = LdfaTask(settings, read_people(training.archive, job.people, settings.size), job.seed)
    network = training.average(task.network)
    samples = read_people(training.archive, "validation", settings.size, SAMPLES)
    first = settings.autoencoder.steps
    training.fit(task, first + settings.denoiser.steps, lambda: draw_samples(network, samples, job.seed), first=first)
    training.save({"network": network}, {"size": settings.size})


@torch.no_grad()
def draw_samples(network: LatentInpainter, people: People, seed: int) -> np.ndarray:
    """uint8 (rows, columns, 3): original | hidden | encoded and decoded | drawn from noise, twice."""
    where, size = network.mean.device, people.pictures.shape[1]
    images = torch.from_numpy(to_float(people.pictures)).to(where)
    masks = torch.from_numpy(region.draw_box_masks(people.landmarks, size)[:, None].astype(np.float32)).to(where)
    hidden, columns = images * (1 - masks), [images, images * (1 - masks), network.autoencoder(images)]
    for number in range(2):
        draw = seeding.make_generator(seed, "samples", number)
        noise = draw.standard_normal(network.encode(images).shape, dtype=np.float32)
        generated = network(hidden, masks, images, torch.from_numpy(noise).to(where))
        columns.append(hidden + generated * masks)
    return arrange_columns(columns)
