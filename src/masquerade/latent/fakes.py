"""The set of fakes: faces of nobody, as codes and features in one file (Barattin et al. 2023, section 3.2)."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from masquerade import training
from masquerade.errors import ParameterError
from masquerade.latent.store import Table
from masquerade.latent.world import BATCH, World


@dataclass(frozen=True)
class Fakes:
    """``codes``: W of each fake, truncated, float32 (M, style); ``features``: their class tokens, (M, D)."""

    codes: Tensor
    features: Tensor

    def __len__(self) -> int:
        return len(self.codes)

    def check_more_than(self, count: int) -> None:
        """Raises ParameterError unless there are more fakes than ``count`` real faces: |X_F| > |X_R|, section 3.2."""
        if len(self) <= count:
            raise ParameterError(
                f"There are {len(self)} fakes for {count} faces to anonymize; there must be more of them than of the "
                "faces. Raise `fakes.count` in params.yaml."
            )


def write(world: World, output: Path, count: int, psi: float, seed: int) -> torch.Tensor:
    """Draw ``count`` fakes, truncated by ``psi``, and write their codes and features; returns the first pictures."""
    from masquerade.backbones._generator import normal

    generator = world.generator
    codes, features, shown = [], [], None
    with torch.no_grad():
        every = normal(seed, "fakes", count, generator.style_width)
        for z in tqdm(every.split(BATCH), desc="fakes", mininterval=5):
            w = generator.truncate(generator.map(z.to(world.device)), psi).cpu()
            images = world.draw(generator.broadcast(w))
            shown = images if shown is None else shown
            codes.append(w)
            features.append(world.describe(images))
    table = Table({"codes": torch.cat(codes), "features": torch.cat(features)})
    training.save_checkpoint(output, {"fakes": table}, {"generator": world.generator_md5, "psi": psi, "count": count})
    return shown


def load(path: Path, world: World) -> Fakes:
    """The fakes of a file. Raises CheckpointError where it is damaged or of another generator."""
    tensors = Table.read(path, "fakes", world.generator_md5)
    return Fakes(tensors["codes"], tensors["features"])
