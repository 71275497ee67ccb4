"""Embeddings of many generated faces, which enlarge a gallery: drawn and described once, without keeping an image.

A file holds one row a face: ``distractors.<judge>`` float32 (M, D).
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from masquerade.core import weight_names
from masquerade.judges import Judge
from masquerade.methods.latent import SetOfDistractors
from masquerade.methods.latent.codes import Table
from masquerade.methods.latent.space import BATCH
from masquerade.networks import inputs
from masquerade.params.blocks import DistractorSettings
from masquerade.pipeline.measuring import limit_threads
from masquerade.training import checkpoints, pretrained

KIND = "distractors"


def write_distractors(
    backbones: Mapping[str, Path], judges: Mapping[str, Judge], output: Path, settings: DistractorSettings, seed: int
) -> None:
    """Draw the faces of ``settings`` with the generator, and write what each of ``judges`` says of them."""
    from masquerade.backbones.generator.training import draw_faces, draw_z
    from masquerade.core import discovery, fingerprints

    generator = inputs.place(discovery.load("backbones", "generator").load(backbones["generator"]))
    embeddings: dict[str, list[np.ndarray]] = {name: [] for name in judges}
    every = draw_z(seed, KIND, settings.count, generator.style_width)
    with torch.no_grad(), limit_threads(1):
        for z in tqdm(every.split(BATCH), desc=KIND, mininterval=5):
            images = draw_faces(generator, z.to(inputs.device()), settings.psi).numpy()
            for name, judge in judges.items():
                embeddings[name].append(judge.measure(images)["embedding"])
    table = Table({name: torch.from_numpy(np.concatenate(parts)).float() for name, parts in embeddings.items()})
    about = {"psi": settings.psi, "count": settings.count, "judges": list(judges)}
    checkpoints.save_checkpoint(output, {KIND: table}, {"generator": fingerprints.md5(backbones["generator"]), **about})


def adopt(settings: DistractorSettings, backbones: Mapping[str, Path], output: Path, root: Path = Path()) -> None:
    """Write the published embeddings of weights/. Raises as `load_pretrained`."""
    name = weight_names.parse_weights_name(settings.published)
    pretrained.load_pretrained(name, SetOfDistractors.architecture, settings, backbones, output, root)


def read_distractors(path: Path) -> dict[str, np.ndarray]:
    """Judge -> the embeddings of the generated faces, float64 (M, D), without faces that it did not find."""
    parts, _ = checkpoints.load_checkpoint(path)
    found = {name: values.double().numpy() for name, values in parts[KIND].items()}
    return {name: values[np.isfinite(values).all(axis=1)] for name, values in found.items()}
