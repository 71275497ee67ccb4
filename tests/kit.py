"""What many tests build: archives of faces, small networks with random weights, and trainings in a folder."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from masquerade.backbones.generator import training as _generator
from masquerade.backbones.inversion import training as _inversion
from masquerade.backbones.recognition import training as _recognition
from masquerade.backbones.semantics import network as _semantics
from masquerade.core import discovery, fingerprints
from masquerade.core.images import ArchiveWriter, Faces
from masquerade.networks.ir_se import IRSE
from masquerade.training import checkpoints, loop
from masquerade.training.settings import TrainingJob

SIZE = 32
WIDTHS, UNITS = [8, 8, 8, 8, 8], [1, 1, 1, 1]
"""Of the encoders of `networks`."""


def job(folder: Path, name: str = "trained", backbones: Mapping[str, Path] | Iterable[str] = (), **more) -> TrainingJob:
    """A training in ``folder`` from its faces.zip, which writes the checkpoint ``name``.

    ``backbones``: their checkpoints, or their names if the checkpoints are in ``folder``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not isinstance(backbones, Mapping):
        backbones = {each: folder / f"{each}.safetensors" for each in backbones}
    usual = {
        "faces": folder / "faces.zip", "backbones": backbones,
        "checkpoint": folder / f"{name}.safetensors", "state": folder / f"{name}.state", "seed": 0, "threads": 1,
        "log": lambda step, values: None, "picture": lambda label, pixels: None, "people": "train",
    }  # fmt: skip
    return TrainingJob(**usual | more)


class Curve(dict):
    """Step -> the values that a training logged there: give it as ``log``."""

    def __call__(self, step: int, values) -> None:
        self[step] = dict(values)

    def of(self, name: str) -> list[float]:
        return [values[name] for values in self.values() if name in values]


def resumed(train: Callable[[TrainingJob], None], cut: TrainingJob, stops: Sequence[int]) -> list[int]:
    """Train, interrupted at each step of ``stops``, until the checkpoint is there. Returns the steps that it logged."""
    steps, ahead = [], list(stops)

    def log(step, values):
        steps.append(step)
        if ahead and step == ahead[0]:
            ahead.pop(0)
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASQUERADE_SAVE_EVERY_SECONDS", "0")
        patch.setattr(loop, "LOG_EVERY", 1)
        while not cut.checkpoint.is_file():
            with contextlib.suppress(KeyboardInterrupt):
                train(replace(cut, log=log))
    return steps


def archive(path: Path, pictures, train: int = 8, rows: Sequence[dict] = (), masks=None, **metadata) -> Path:
    """An archive of images (H, W, 3) of a person each; the first ``train`` are of the train split.

    ``rows``: more columns for each image, or others in place of these. The remaining split is validation.
    """
    with ArchiveWriter(path, metadata) as out:
        for number, picture in enumerate(pictures):
            split = "train" if number < train else "validation"
            row = {"id": f"f{number}", "identity": f"p{number}", "split": split} | (rows[number] if rows else {})
            out.add(np.clip(picture, 0, 255).astype(np.uint8), row, None if masks is None else masks[number])
    return path


def noise(count: int, tile: int = 1, size: int = SIZE, seed: int = 0) -> np.ndarray:
    """Images of squares of random colors, uint8 (count, size, size, 3). ``tile``: the side of a square."""
    coarse = np.random.default_rng(seed).integers(0, 256, (count, size // tile, size // tile, 3), dtype=np.uint8)
    return coarse.repeat(tile, axis=1).repeat(tile, axis=2)


def discs(count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Images of a bright disc on a dark ground, and their masks: 1 in the disc."""
    draw, (down, across) = np.random.default_rng(0), np.mgrid[:SIZE, :SIZE]
    pictures, masks = [], []
    for _ in range(count):
        disc = np.hypot(down - 16, across - 16 + draw.integers(-4, 5)) < 6 + draw.integers(4)
        pictures.append(np.where(disc[..., None], draw.integers(120, 256, 3), 40).astype(np.uint8))
        masks.append(disc.astype(np.uint8))
    return np.stack(pictures), np.stack(masks)


def landmarks(size: int = 64) -> np.ndarray:
    """68 points of a plain face in the middle of an image, float32 (1, 68, 2)."""
    along = np.linspace(0, np.pi, 17)
    points = np.full((68, 2), size / 2)
    points[:17] = np.stack([size / 2 - size / 4 * np.cos(along), size / 2 + size / 4 * np.sin(along)], axis=1)
    points[17:27] = np.stack([np.linspace(size / 3, 2 * size / 3, 10), np.full(10, size * 0.4)], axis=1)
    points[36:42], points[42:48] = (size * 0.4, size * 0.45), (size * 0.6, size * 0.45)
    points[60:68] = np.stack([np.linspace(size * 0.45, size * 0.55, 8), np.full(8, size * 0.65)], axis=1)
    return points[None].astype(np.float32)


def faces(count: int = 3, size: int = SIZE) -> Faces:
    """Faces of noise."""
    images = np.random.default_rng(9).uniform(-1, 1, (count, 3, size, size)).astype(np.float32)
    return Faces(images, pd.DataFrame({"id": [f"face{number}" for number in range(count)]}))


class Identity(nn.Module):
    """A differentiable substitute for the identity encoder: images of any size -> unit (N, width)."""

    def __init__(self, width: int = 8, grid: int = 4):
        super().__init__()
        torch.manual_seed(5)
        self.grid, self.width, self.project = grid, width, nn.Linear(3 * grid**2, width)
        self.eval().requires_grad_(False)

    def forward(self, images):
        pooled = nn.functional.adaptive_avg_pool2d(images, self.grid).flatten(1)
        return nn.functional.normalize(self.project(pooled))


def replace_backbones(patch: pytest.MonkeyPatch, **networks: nn.Module) -> None:
    """Backbones, by name, load these networks whatever their checkpoint is."""
    for name, network in networks.items():
        patch.setattr(discovery.load("backbones", name), "load", lambda checkpoint, network=network: network)


ARCHITECTURE = {"channels": [16, 16, 16, 8], "style": 12, "mapping": 2, "mapping_rate": 1.0}
"""Of the generator of `networks`."""


def networks(folder: Path, words: Sequence[str] = (), architecture: dict = ARCHITECTURE) -> dict[str, Path]:
    """Checkpoints of a generator, an inversion, a text-image model and an identity encoder with random weights.

    The text-image model reads sentences of ``words``, if there are any.
    """
    torch.manual_seed(0)
    paths = {name: folder / f"{name}.safetensors" for name in ("generator", "inversion", "semantics", "identity")}
    generator = _generator.build(architecture)
    _generator.measure_mean(generator, 0)
    _generator.save(paths["generator"], generator, architecture)
    shape = {"kind": "e4e", "linear": False, "input_size": SIZE, "widths": WIDTHS, "units": UNITS}
    mean = generator.latent_avg.expand(generator.layers, -1).contiguous()
    inverter = _inversion.build(shape, fingerprints.md5(paths["generator"]), mean)
    checkpoints.save_checkpoint(paths["inversion"], {"inverter": inverter}, {**shape, "generator": inverter.generator})
    text = {"vocabulary": "captions", "words": list(words), "context": 8, "width": 8, "layers": 1, "heads": 2}
    vision = {"image_size": SIZE, "patch": 16, "width": 8, "layers": 1, "heads": 2, "embedding": 8, "stem": []}
    metadata = {**vision, "activation": "gelu", "text": text if words else None, **_semantics.OURS}
    checkpoints.save_checkpoint(paths["semantics"], {"clip": _semantics.build(metadata)}, metadata)
    recognizer = _recognition.Recognizer(IRSE(SIZE, WIDTHS, UNITS), SIZE)
    metadata = {"widths": WIDTHS, "units": UNITS, "input_size": SIZE, "identities": 2}
    checkpoints.save_checkpoint(paths["identity"], {"network": recognizer.network}, metadata)
    return paths


GENERATOR = {
    "published": "", "channels": [8, 8, 8, 4], "style": 6, "mapping": 2, "mapping_rate": 1.0, "ema": 0.5,
    "small_scale": {
        "reconstruction": {"steps": 4, "batch": 2, "modulation": 0.3, "critic": 0.1},
        "sharpening": {"steps": 4, "batch": 2, "projected": 32},
    },
    "adversarial": {
        "steps": 4, "batch": 2, "learning_rate": 0.002, "r1": 10.0, "r1_every": 2, "path_length": 2.0,
        "path_length_every": 2, "mixing": 0.9,
    },
    "samples_every": 8, "quality_samples": 4, "floor_detection": 0.0,
}  # fmt: skip
"""Knobs of a generator that draws images of SIZE pixels."""
BFLOAT16 = {"precision": "bfloat16", "channels_last": False}
FIT = {
    "size": 32, "width": 4, "halvings": 1, "blocks": 1,
    "discriminator": {"width": 4, "depth": 2, "scales": 2}, "classifier": {"width": 4, "depth": 2},
    "small_scale": {
        "reach": 0.8, "shared": False, "identity_of": "both", "last_stride": 2, "first_norm": True, "gray": 0.5,
    },
    "losses": {
        "adversarial": 1, "password": 1, "identity": 2, "feature": 2, "wrong_feature": 1, "between_feature": 1,
        "pixels": 10, "reconstruction": 100,
    },
    "margin": 0.0, "steps": 6, "batch": 2, "learning_rate": 1e-3, "betas": [0.5, 0.999],
    "kernel_rate": 0.01, "cooldown": 0.5, "ema": 0.5, "samples_every": 3,
}  # fmt: skip
"""Knobs of FIT for such images."""
