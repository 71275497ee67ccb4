"""Exchanges images with another program: exports the faces that it gets, and collects what it made of them.

Every image that comes back is compared with the originals. One that shows an original, or an original in disguise, is
never stored.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from masquerade.core.errors import ArchiveError, MasqueradeError, PictureError
from masquerade.core.images import OK, TEST, FaceArchive, to_uint8
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.names import files
from masquerade.methods.imported.method import RECOVERED, store
from masquerade.methods.imported.originals import Originals
from masquerade.params import overlays
from masquerade.params.blocks import IMPORTED, SCALES
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import anonymization, informed

BATCH = 32
MEGAPIXELS = 40.0  # the limit of one image, against decompression bombs
MOST_NAMES = 5  # names that an error lists; the others are counted
MANIFEST, README = "faces.json", "README.txt"
COMPARED = 10
"""The fewest images of which the order of the colors is judged."""
INSTRUCTIONS = """{count} faces of {size} x {size} pixels: PNG files, RGB, 8 bits a channel.

Write one image for each of them, of the same size, under the same name, into another folder, and score it:

    masquerade score NAME RESULTS --scale {scale}

{parts}
Your program may use all of them together, but it must not learn from the faces of the part "test".
"""
PARTS = {
    TEST: "anonymized and measured",
    "attackers": "anonymized, and what attackers learn from who know your method",
    "methods": "anonymized, and what classifiers of attributes learn from",
}
"""Part of the exported faces -> what is done with it."""


def select_exported(archive: FaceArchive, parameters: Parameters, dataset: str) -> pd.DataFrame:
    """The usable faces that another program gets, rows of the index with a column ``part`` (a key of PARTS)."""
    rows = {TEST: archive.select(TEST)}
    if dataset == parameters.matrix.train_on:
        settings = parameters.informed.of(IMPORTED, "")
        own = informed.select_own_images(archive, settings)
        rows["attackers"] = own[own["status"] == OK]
        if dataset in parameters.attributes.cells:
            subset = anonymization.select_subset(
                archive.select("methods", status=None), parameters.attributes.train_pictures
            )
            rows["methods"] = subset[subset["status"] == OK]
    return pd.concat([each.assign(part=part) for part, each in rows.items()])


def export(archive: FaceArchive, rows: pd.DataFrame, output: Path, scale: str, dataset: str) -> None:
    """Write ``rows`` to the folder ``output`` as ``<id>.png``, with a manifest and instructions."""
    output.mkdir(parents=True, exist_ok=True)
    for faces in archive.batches(BATCH, rows=rows):
        for name, picture in zip(faces.ids, to_uint8(faces.images), strict=True):
            Image.fromarray(picture).save(output / f"{name}.png")
    ids = {part: rows["id"][rows["part"] == part].tolist() for part in PARTS}
    about = {"scale": scale, "dataset": dataset, "faces": archive.metadata["checksum"], "ids": ids}
    (output / MANIFEST).write_text(json.dumps(about, indent=1), encoding="utf-8")
    listed = "".join(f"- {part}: {len(names)} faces, {PARTS[part]}\n" for part, names in ids.items() if names)
    size = archive.metadata["size"]
    (output / README).write_text(
        INSTRUCTIONS.format(count=len(rows), size=size, scale=scale, parts=listed), encoding="utf-8"
    )
