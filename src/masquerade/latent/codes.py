"""Codes of real pictures: every face of a dataset inverted and described once, in one file."""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from masquerade import training
from masquerade.errors import PictureError
from masquerade.images import FaceArchive, Faces
from masquerade.latent.store import Table
from masquerade.latent.world import BATCH, World

FARTHEST = 20.0  # an inversion has diverged where a code is so many times farther from W's mean than W is on average
SHOWN = 8  # faces of a sample picture


class Codes:
    """W+ and class-token features of real faces: looked up where they were computed before, else computed."""

    def __init__(self, world: World, stored: Path | None = None):
        self._world = world
        self._rows: dict[str, int] = {}
        if stored is not None:
            self._table = Table.read(stored, "codes", world.generator_md5)
            _, facts = training.load_checkpoint(stored)
            self._rows = {name: row for row, name in enumerate(json.loads(facts["ids"]))}

    def of(self, faces: Faces) -> tuple[Tensor, Tensor]:
        """(W+ (N, layers, style), features (N, D)). Raises PictureError where an inversion diverged."""
        if all(name in self._rows for name in faces.ids):
            rows = torch.tensor([self._rows[name] for name in faces.ids])
            codes, features = self._table["w_plus"][rows], self._table["features"][rows]
        else:
            codes, features = self._world.invert(faces.images), self._world.describe(torch.from_numpy(faces.images))
        if diverged(codes, self._world).any():
            raise PictureError(
                "its inversion diverged: the encoder found no code of the generator's latent space for it"
            )
        return codes, features


def diverged(codes: Tensor, world: World) -> Tensor:
    """Whether the inversion of each face, W+ (N, layers, style), went astray: bool (N,)."""
    generator = world.generator
    with torch.no_grad():
        drawn = generator.map(
            torch.randn(256, generator.style_width, generator=torch.Generator().manual_seed(0)).to(world.device)
        )
        usual = (drawn - generator.latent_avg).square().mean().sqrt().cpu()
    distance = (codes - generator.latent_avg.cpu()).square().mean(dim=(1, 2)).sqrt()
    return ~torch.isfinite(distance) | (distance > FARTHEST * usual)


def write(world: World, archive: FaceArchive, output: Path) -> np.ndarray:
    """Invert every face of ``archive`` that is ok; returns the first faces above their reconstructions, (2, N, ...)."""
    rows = archive.select()
    codes, features, shown = [], [], None
    for faces in tqdm(archive.batches(BATCH, rows=rows), total=-(-len(rows) // BATCH), desc="inversion", mininterval=5):
        codes.append(world.invert(faces.images))
        features.append(world.describe(torch.from_numpy(faces.images)))
        if shown is None:
            shown = np.stack([faces.images[:SHOWN], world.draw(codes[0][:SHOWN]).numpy()])
    w_plus = torch.cat(codes)
    columns = {"w_plus": w_plus, "features": torch.cat(features), "diverged": diverged(w_plus, world)}
    facts = {
        "generator": world.generator_md5,
        "archive": archive.facts["checksum"],
        "ids": json.dumps(rows["id"].tolist()),
    }
    training.save_checkpoint(output, {"codes": Table(columns)}, facts)
    return shown
