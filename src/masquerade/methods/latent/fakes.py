"""The set of fakes: generated faces, as codes and features in one file (Barattin et al. 2023, section 3.2).

A file holds one row a fake: ``fakes.codes`` float32 (M, style), truncated W, and ``fakes.features`` float32 (M, D).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from masquerade.core import weight_names
from masquerade.core.errors import ParameterError
from masquerade.methods.latent import SetOfFakes
from masquerade.methods.latent.codes import Table
from masquerade.methods.latent.space import BATCH, LatentSpace
from masquerade.params.blocks import FakesSettings
from masquerade.training import checkpoints, pretrained
from masquerade.training.cards import Card


@dataclass(frozen=True)
class Fakes:
    """``codes``: truncated W of each fake, float32 (M, style). ``features``: their class tokens, (M, D)."""

    codes: Tensor
    features: Tensor

    def __len__(self) -> int:
        return len(self.codes)

    def check_more_than(self, count: int) -> None:
        """Raises ParameterError unless there are more than ``count`` fakes, the number of real faces (section 3.2)."""
        if len(self) <= count:
            raise ParameterError(
                f"There are {len(self)} fakes for {count} faces to anonymize; there must be more fakes than faces. "
                "Raise `fakes.count` in params.yaml."
            )


def write_fakes(space: LatentSpace, output: Path, count: int, psi: float, seed: int) -> torch.Tensor:
    """Draw ``count`` fakes, truncated by ``psi``, and write their codes and features. Returns the first images."""
    from masquerade.backbones.generator.training import draw_z

    generator = space.generator
    codes, features, samples = [], [], None
    with torch.no_grad():
        every = draw_z(seed, "fakes", count, generator.style_width)
        for z in tqdm(every.split(BATCH), desc="fakes", mininterval=5):
            w = generator.truncate(generator.map(z.to(space.device)), psi).cpu()
            images = space.draw(generator.broadcast(w))
            samples = images if samples is None else samples
            codes.append(w)
            features.append(space.embed(images))
    table = Table({"codes": torch.cat(codes), "features": torch.cat(features)})
    checkpoints.save_checkpoint(
        output, {"fakes": table}, {"generator": space.generator_md5, "psi": psi, "count": count}
    )
    assert samples is not None
    return samples


def adopt(settings: FakesSettings, backbones: Mapping[str, Path], output: Path, root: Path = Path()) -> Card:
    """Write the published set of fakes of weights/, and return its card. Raises as `load_pretrained`."""
    name = weight_names.parse_weights_name(settings.published)
    return pretrained.load_pretrained(name, SetOfFakes.architecture, settings, backbones, output, root)


def load_fakes(path: Path, space: LatentSpace) -> Fakes:
    """The fakes of a file. Raises CheckpointError if it is damaged or belongs to another generator."""
    tensors, _ = Table.read(path, "fakes", space.backbones)
    return Fakes(tensors["codes"], tensors["features"])


def find_nearest(real: Tensor, fakes: Tensor, number: int = 0) -> Tensor:
    """The row of ``fakes`` (M, D) that is nearest to each of ``real`` (N, D) in Euclidean distance (Eq. 1), int64 (N,).

    ``number``: 1 for the second nearest, and so on. The distances are sums of squared differences: products of
    matrices would round them.
    """
    distances = torch.cdist(real, fakes, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.argsort(dim=1, stable=True)[:, number]
