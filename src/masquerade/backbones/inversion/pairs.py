"""Drawn pictures whose codes are known, and the error of codes by what they do in the generator."""

import logging
import shutil
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from masquerade.core import seeding
from masquerade.core.errors import CheckpointError
from masquerade.networks import deterministic
from masquerade.networks.mobile_stylegan import MobileStyleGAN
from masquerade.training import checkpoints

logger = logging.getLogger(__name__)

PSI = (0.5, 1.0)  # truncation of the codes
CROSSED, MIXED = 0.25, 0.45  # shares of codes with the later layers of another face, and with each layer between two
FARTHEST = 0.7  # of the way to the other face
CHUNK = 200  # pictures in a file


def drawn_codes(generator: MobileStyleGAN, draw: np.random.Generator, count: int) -> Tensor:
    """W+ (count, layers, style) of faces that do not exist. In three quarters the layers differ, as in photographs."""
    layers, device = generator.layers, generator.latent_avg.device
    psi = torch.from_numpy(draw.uniform(*PSI, (count, 1)).astype(np.float32)).to(device)
    z = torch.from_numpy(draw.standard_normal((2, count, generator.style_width), dtype=np.float32)).to(device)
    kind, first = draw.random(count)[:, None], draw.integers(1, layers, count)[:, None]
    crossed = (kind < CROSSED) & (np.arange(layers) >= first)
    between = (kind >= CROSSED) & (kind < CROSSED + MIXED)
    share = np.where(between, draw.uniform(0, FARTHEST, (count, layers)), crossed).astype(np.float32)
    with torch.no_grad():
        own, other = (generator.latent_avg + psi * (generator.map(part) - generator.latent_avg) for part in z)
    return own[:, None] + torch.from_numpy(share).to(device)[..., None] * (other - own)[:, None]


class Pairs:
    """``count`` drawn pictures, uint8 (count, 3, side, side), and their codes, both from ``seed``.

    Drawing takes most of the time of a training on pairs, so it happens once: `draw` keeps the pictures in files of
    `CHUNK` pictures in ``folder``, from which an interrupted training goes on, until `discard`.
    """

    def __init__(self, generator: MobileStyleGAN, count: int, side: int, folder: Path, seed: int):
        self.generator, self.folder, self.seed, self.side = generator, folder, seed, side
        starts = tqdm(range(0, count, CHUNK), desc="drawing pairs", mininterval=5)
        drawn = [self._chunk(start, min(CHUNK, count - start)) for start in starts]
        self.pictures, self.codes = (torch.cat(parts) for parts in zip(*drawn, strict=True))

    def batch(self, draw: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
        """Pictures (count, 3, side, side) in [-1, 1] and their codes, drawn with repetition."""
        device = self.generator.latent_avg.device
        rows = torch.from_numpy(draw.integers(0, len(self.pictures), count))
        return self.pictures[rows].to(device).float() / 127.5 - 1, self.codes[rows].to(device)

    def discard(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _chunk(self, start: int, count: int) -> tuple[Tensor, Tensor]:
        codes = drawn_codes(self.generator, seeding.generator(self.seed, "pairs", start), count)
        file = self.folder / f"{start:06d}_{count}_{self.seed}_{self.side}.safetensors"
        try:
            return checkpoints.load_checkpoint(file)[0]["pairs"]["pictures"], codes.cpu()
        except CheckpointError:  # not drawn yet
            pictures = torch.cat([self._drawn(part) for part in codes.split(self.generator.at_once)])
            self.folder.mkdir(parents=True, exist_ok=True)
            kept = nn.Module()
            kept.register_buffer("pictures", pictures)
            checkpoints.save_checkpoint(file, {"pairs": kept}, {})
            return pictures, codes.cpu()

    def _drawn(self, codes: Tensor) -> Tensor:
        with torch.no_grad():
            images = self.generator.synthesize(codes).clamp(-1, 1)
        images = deterministic.averaged(images, (self.side, self.side))
        return ((images + 1) * 127.5).round().byte().cpu().contiguous()


class StyleErrors:
    """The squared error of codes (N, layers, style), measured on the styles that they give to the generator's layers.

    A code acts by affine maps alone, one or two a layer. Each of their outputs is divided by its deviation over random
    faces, so that each layer weighs the same: e = mean over layers l of  mean over outputs k of
    (a_lk . (w - w'))^2 / var(a_lk . w).  A guess of the mean code has an error of about 1 for faces without truncation.
    """

    def __init__(self, generator: MobileStyleGAN, w: Tensor):
        """``w``: codes of random faces (M, style), of which the deviations are taken."""
        self.maps = []
        with torch.no_grad():
            for layer in range(generator.layers):
                weights = torch.cat([affine.weight for affine in generator.affine_maps(layer)])
                self.maps.append(weights.T / ((w @ weights.T).std(0) * len(weights) ** 0.5))

    def __call__(self, codes: Tensor, known: Tensor) -> Tensor:
        """The error of each face, (N,)."""
        errors = [((codes[:, layer] - known[:, layer]) @ own).square().sum(1) for layer, own in enumerate(self.maps)]
        return torch.stack(errors, 1).mean(1)
