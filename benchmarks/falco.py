"""FALCO on batches against one image at a time, in one run on one machine: images per second and memory.

`python benchmarks/falco.py` measures the checkpoints of scale mini; `--published` measures the published size (1024
pixels, IR-SE-50, ViT-B/16) with random weights, which needs a GPU. Prints a table and writes benchmarks/falco.md.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from pages import ROOT, table, write

from masquerade.core.images import FaceArchive, Faces
from masquerade.methods import Resources
from masquerade.methods.falco import Falco
from masquerade.params import loading
from masquerade.training import checkpoints as training

PICTURES = 32
"""Measured at the published size."""


def mini() -> tuple[Resources, Faces, Falco.Params, Falco.Variant]:
    checkpoints = ROOT / "checkpoints/mini/backbones"
    backbones = {name: checkpoints / f"{name}.safetensors" for name in Falco.needs}
    resources = Resources(backbones=backbones, fakes=ROOT / "data/mini/fakes.safetensors")
    block = loading.load(ROOT, "mini").methods["falco"]
    faces = FaceArchive(ROOT / "data/mini/faces/synthetic_hq.zip").load("test")
    return resources, faces, block.params, block.variants["m_0"]


def published(
    folder: Path, size: int = 1024, pictures: int = PICTURES
) -> tuple[Resources, Faces, Falco.Params, Falco.Variant]:
    """The published architectures with random weights: their speed and memory are those of the trained ones.

    ``size``: pixels of the generator, a power of 2.
    """
    import pandas as pd

    from masquerade.backbones.generator import training as _generator
    from masquerade.backbones.inversion import inverter as _inversion
    from masquerade.backbones.recognition import training as _recognition
    from masquerade.backbones.semantics import network
    from masquerade.core import fingerprints
    from masquerade.methods.latent import fakes
    from masquerade.methods.latent.space import LatentSpace
    from masquerade.networks.ir_se import IRSE, UNITS_50, WIDTHS_50
    from masquerade.networks.stylegan2 import CHANNELS

    parameters = loading.load(ROOT, "paper")
    paths = {name: folder / f"{name}.safetensors" for name in Falco.needs}
    architecture = {
        "channels": list(CHANNELS[: size.bit_length() - 2]),
        "style": 512,
        "mapping": 8,
        "mapping_rate": 0.01,
    }
    generator = _generator.build(architecture)
    _generator.save(paths["generator"], generator, architecture)
    mean, settings = generator.latent_avg.expand(generator.layers, -1).contiguous(), parameters.backbones["inversion"]
    inverter = _inversion.build(settings.model_dump(), fingerprints.md5(paths["generator"]), mean)
    _inversion.save(paths["inversion"], inverter, settings)
    encoder = {"image_size": 224, "patch": 16, "width": 768, "layers": 12, "heads": 12, "embedding": 512}
    metadata = {**encoder, "stem": [], "activation": "quick_gelu", "text": None, **network.CLIPS}
    training.save_checkpoint(paths["semantics"], {"clip": network.build(metadata)}, metadata)
    narrow = {"widths": list(WIDTHS_50), "units": list(UNITS_50), "input_size": 112}
    recognizer = _recognition.Recognizer(IRSE(112, WIDTHS_50, UNITS_50), 112)
    training.save_checkpoint(paths["identity"], {"network": recognizer.network}, {**narrow, "identities": 2})
    fakes.write_fakes(LatentSpace(paths), folder / "fakes.safetensors", 10 * pictures, 0.7, seed=0)
    images = np.random.default_rng(0).uniform(-1, 1, (pictures, 3, size, size)).astype(np.float32)
    block = parameters.methods["falco"]
    faces = Faces(images, pd.DataFrame({"id": [f"f{number}" for number in range(len(images))]}))
    return Resources(backbones=paths, fakes=folder / "fakes.safetensors"), faces, block.params, block.variants["m_0"]


def measure(
    resources: Resources, faces: Faces, knobs: Falco.Params, variant: Falco.Variant, batch: int, count: int,
    warm: bool = True,
):  # fmt: skip
    """(batch, images a second, peak memory in GiB of this process or of the GPU). ``warm``: after a batch before."""
    small_scale = knobs.small_scale.model_copy(update={"batch": batch})
    method = Falco(knobs.model_copy(update={"small_scale": small_scale}), variant, resources)
    some = Faces(faces.images[:count], faces.index.iloc[:count])
    gpu = torch.cuda.is_available()
    if gpu:
        batch = batch or method._optimization_batch(count)
    if warm:  # with a whole batch, because a compiled optimization is compiled for its size
        few = min(count, max(batch, 1))
        method.anonymize(Faces(some.images[:few], some.index.iloc[:few]), 0)
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    method.anonymize(some, 0)
    seconds = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated() if gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return batch, count / seconds, memory / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--published", action="store_true", help="published sizes, random weights, on a GPU")
    given = parser.parse_args()
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    with tempfile.TemporaryDirectory() as folder:
        case = published(Path(folder)) if given.published else mini()
        faces = len(case[1])
        # the best of three rounds: other processes can only slow a round down; at published size one takes minutes
        rounds = [
            [measure(*case, *row) for row in ((1, 4), (8, 16), (0, faces))] for _ in range(1 if given.published else 3)
        ]
        rows = [max(row, key=lambda measurement: measurement[1]) for row in zip(*rounds, strict=True)]
    size = case[1].images.shape[-1]
    steps = case[2].steps
    lines = [
        (batch or faces, f"{speed:.2f}", f"{speed / rows[0][1]:.1f}", f"{memory:.2f}") for batch, speed, memory in rows
    ]
    write(
        "falco_published" if given.published else "falco",
        f"# FALCO, {size} x {size} pixels, {steps} steps an image, {place}",
        table(("side by side", "images a second", "against one", "peak memory, GiB"), lines),
    )


if __name__ == "__main__":
    main()
