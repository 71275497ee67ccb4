"""Trains the head with which MobileStyleGAN draws 256 pixels: the published network has one for 1024 pixels alone.

The target of a pixel is the mean of the 4 x 4 pixels of the published picture. The style of the head is trained, and
its convolution follows by least squares.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import trange

from masquerade.backbones.generator.settings import HeadSettings
from masquerade.core import seeding
from masquerade.networks.mobile_stylegan import LARGE, LEVELS, SIZE, STYLE, MobileStyleGAN, inverse_haar
from masquerade.training import precision

DRAWN = 4  # pictures that are drawn at a time
POINTS = 256  # pixels of a picture from which the head learns
BATCH = 32  # pictures of an update
STYLE_RATE, KERNEL_RATE = 1e-4, 3e-4
PSI = (0.5, 1.0)  # truncations of the pictures
MIXED = 0.25  # share of the pictures whose last layers have the code of another one


@dataclass(frozen=True)
class Examples:
    """``codes`` (M, STYLE) of the head, ``features`` (M, C, POINTS) of 256 pixels, and their ``colors``
    (M, 3, POINTS).
    """

    codes: Tensor
    features: Tensor
    colors: Tensor


@torch.no_grad()
def examples(network: MobileStyleGAN, count: int, seed: int) -> Examples:
    """Features and colors of ``count`` drawn pictures at random pixels."""
    rows: list[tuple[Tensor, Tensor, Tensor]] = []
    for batch in trange(-(-count // DRAWN), desc="examples of the head", mininterval=5):
        draw = seeding.generator(seed, "head", batch)
        z = torch.from_numpy(draw.standard_normal((2 * DRAWN, STYLE), dtype=np.float32))
        psi = torch.from_numpy(draw.uniform(*PSI, (2 * DRAWN, 1))).float()
        w, others = (network.latent_avg + psi * (network.map(z) - network.latent_avg)).chunk(2)
        layers = 2 * LEVELS[LARGE] + 1
        own = int(draw.integers(2, 2 * LEVELS[SIZE])) if draw.random() < MIXED else layers
        codes = [w] * own + [others] * (layers - own)
        with precision.mixed(z.device, network.mixed):
            features = network.features(codes, LEVELS[SIZE])
            last = network.levels[LEVELS[SIZE]](features, codes[-1], codes[-1])
            pictures = inverse_haar(network.large_head(last, codes[-1])).float()
        colors = functional.avg_pool2d(pictures, LARGE // SIZE).flatten(2)
        points = torch.from_numpy(draw.integers(0, SIZE * SIZE, POINTS))
        rows.append((codes[-1], features.float().flatten(2)[..., points].half(), colors[..., points]))
    return Examples(*(torch.cat(column)[:count] for column in zip(*rows, strict=True)))


def train(network: MobileStyleGAN, settings: HeadSettings, seed: int) -> dict[str, float]:
    """Train the head of ``network``, in place. Returns its PSNR in dB on pictures of which it did not learn."""
    known = examples(network, settings.pictures, seed)
    held = max(BATCH, settings.pictures // 30)
    mean, deviation = known.codes.mean(0), known.codes.std()
    codes = (known.codes - mean) / deviation
    size = known.features[:-held].float().square().mean((0, 2)).sqrt() + 1e-4
    style = nn.Linear(STYLE, len(size))
    nn.init.zeros_(style.weight)
    nn.init.ones_(style.bias)

    def scaled(rows: Tensor) -> Tensor:
        return known.features[rows].float() / size[:, None] * style(codes[rows])[..., None]

    def solved() -> tuple[Tensor, Tensor]:
        """The convolution and its bias by least squares: (3, C) and (3,)."""
        products, targets = torch.zeros(len(size) + 1, len(size) + 1).double(), torch.zeros(len(size) + 1, 3).double()
        with torch.no_grad():
            for rows in torch.arange(len(codes) - held).split(BATCH):
                x = functional.pad(scaled(rows), (0, 0, 0, 1), value=1.0).transpose(0, 1).flatten(1).double()
                products += x @ x.T
                targets += x @ known.colors[rows].transpose(0, 1).flatten(1).T.double()
        products += 1e-4 * products.diagonal().mean() * torch.eye(len(products))
        solution = torch.linalg.solve(products, targets).float()
        return solution[:-1].T.contiguous(), solution[-1]

    def errors(rows: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        return (kernel @ scaled(rows) + bias[:, None] - known.colors[rows]).square().mean()

    kernel, bias = (values.requires_grad_(True) for values in solved())
    optimizer = torch.optim.AdamW(
        [{"params": style.parameters(), "lr": STYLE_RATE}, {"params": [kernel, bias], "lr": KERNEL_RATE}],
        betas=(0.9, 0.98), weight_decay=0.0,
    )  # fmt: skip
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    for step in range(settings.steps):
        draw = seeding.generator(seed, "head updates", step)
        loss = errors(torch.from_numpy(draw.integers(0, len(codes) - held, BATCH)), kernel, bias)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        kernel, bias = solved()
        unseen = errors(torch.arange(len(codes) - held, len(codes)), kernel, bias)
        head = network.head
        head.style.weight.copy_(style.weight / deviation / size[:, None])
        head.style.bias.copy_((style.bias - style.weight @ mean / deviation) / size)
        head.kernel.copy_(kernel[..., None, None])
        head.bias.copy_(bias)
    return {"psnr": 10 * float(torch.log10(4 / unseen))}
