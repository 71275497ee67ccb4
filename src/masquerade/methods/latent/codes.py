"""Codes of real images: each face of a dataset that methods anonymize is inverted and described once, in one file.

A file holds one row a face, in the order of the entry ``ids`` of its metadata, e.g. ``["000012", "000031", ...]``:
``codes.w_plus`` float32 (N, layers, style), ``codes.features`` float32 (N, D) and ``codes.diverged`` bool (N,).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from tqdm import tqdm

from masquerade.core.errors import CheckpointError, PictureError
from masquerade.core.images import GALLERY, TEST, FaceArchive, Faces
from masquerade.methods.latent.space import BATCH, LatentSpace
from masquerade.training import checkpoints


class Table(nn.Module):
    """Named tensors with one row a face, as a module so that a checkpoint can hold them."""

    def __init__(self, columns: Mapping[str, Tensor]):
        super().__init__()
        for name, values in columns.items():
            self.register_buffer(name, values)

    @staticmethod
    def read(path: Path, kind: str, backbones: Mapping[str, Path]) -> tuple[dict[str, Tensor], Mapping[str, Any]]:
        """The columns and the metadata of a file.

        Raises CheckpointError if it is damaged, or is of another kind or generator.
        """
        saved = checkpoints.Saved(path, backbones, ("generator",))
        if kind not in saved.tensors:
            raise CheckpointError(f"{path} holds no {kind}. Delete it and run `snakemake {path}` again.")
        return saved.tensors[kind], saved.metadata


FARTHEST = 20.0  # an inversion has diverged if its code is this many times farther from the mean of W than W is
SAMPLES = 8  # faces of a sample image


class Codes:
    """W+ and class-token features of real faces, read from the file ``stored`` if it has them, else computed."""

    def __init__(self, space: LatentSpace, stored: Path | None = None):
        self._space = space
        self._rows: dict[str, int] = {}
        if stored is not None:
            self._table, metadata = Table.read(stored, "codes", space.backbones)
            self._rows = {name: row for row, name in enumerate(json.loads(metadata["ids"]))}

    def of(self, faces: Faces) -> tuple[Tensor, Tensor]:
        """W+ (N, layers, style) and features (N, D). Raises as `w_plus`."""
        codes, rows = self.w_plus(faces), self._find_rows(faces)
        features = self._table["features"][rows] if len(rows) else self._space.embed(torch.from_numpy(faces.images))
        return codes, features

    def w_plus(self, faces: Faces) -> Tensor:
        """W+ (N, layers, style). Raises PictureError if an inversion diverged or missed a face."""
        rows = self._find_rows(faces)
        if len(rows):
            codes, missed = self._table["w_plus"][rows], self._table["diverged"][rows]
        else:
            codes = self._space.invert(faces.images)
            missed = ~torch.from_numpy(self._space.reaches(faces.images, codes))
        if has_diverged(codes, self._space).any():
            raise PictureError(
                "its inversion diverged: the encoder found no code of the generator's latent space for it"
            )
        if missed.any():
            raise PictureError(
                "the inversion does not reach it: what the generator draws of its code differs from it as much as "
                "somebody else does"
            )
        return codes

    def _find_rows(self, faces: Faces) -> Tensor:
        """The rows of the file that hold these faces, int64 (N,); () if one is not in it."""
        all_stored = all(name in self._rows for name in faces.ids)
        return torch.tensor([self._rows[name] for name in faces.ids] if all_stored else [], dtype=torch.int64)


def has_diverged(codes: Tensor, space: LatentSpace) -> Tensor:
    """Whether the inversion of each face diverged: W+ (N, layers, style) -> bool (N,)."""
    generator = space.generator
    with torch.no_grad():
        codes_of_w = generator.map(
            torch.randn(256, generator.style_width, generator=torch.Generator().manual_seed(0)).to(space.device)
        )
        usual = (codes_of_w - generator.latent_avg).square().mean().sqrt().cpu()
    distance = (codes - generator.latent_avg.cpu()).square().mean(dim=(1, 2)).sqrt()
    return ~torch.isfinite(distance) | (distance > FARTHEST * usual)


def select_anonymized(archive: FaceArchive) -> pd.DataFrame:
    """The ok faces that methods anonymize: of the test split, of its gallery, and of the attackers, where there are."""
    groups = ("attackers",) if "group" in archive.index else ()
    return pd.concat([archive.select(part) for part in (TEST, GALLERY, *groups)])


def write_codes(space: LatentSpace, archive: FaceArchive, output: Path) -> np.ndarray:
    """Invert the faces `select_anonymized`. Returns the first faces and their reconstructions, (2, N, 3, S, S)."""
    rows = select_anonymized(archive)
    codes, features, missed, samples = [], [], [], None
    for faces in tqdm(archive.batches(BATCH, rows=rows), total=-(-len(rows) // BATCH), desc="inversion", mininterval=5):
        codes.append(space.invert(faces.images))
        features.append(space.embed(torch.from_numpy(faces.images)))
        missed.append(~torch.from_numpy(space.reaches(faces.images, codes[-1])))
        if samples is None:
            samples = np.stack([faces.images[:SAMPLES], space.draw(codes[0][:SAMPLES]).numpy()])
    w_plus = torch.cat(codes)
    failed = has_diverged(w_plus, space) | torch.cat(missed)
    columns = {"w_plus": w_plus, "features": torch.cat(features), "diverged": failed}
    metadata = {
        "generator": space.generator_md5,
        "archive": archive.metadata["checksum"],
        "ids": json.dumps(rows["id"].tolist()),
    }
    checkpoints.save_checkpoint(output, {"codes": Table(columns)}, metadata)
    assert samples is not None
    return samples
