"""How the generator is trained, adopted, loaded and judged."""

import json
import logging
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from masquerade import seeding, training
from masquerade.backbones import _layouts
from masquerade.backbones._adversarial import Adversarial
from masquerade.backbones._reconstruction import Reconstruction
from masquerade.errors import CheckpointError, ParameterError
from masquerade.images import FaceArchive, to_uint8
from masquerade.methods import TrainingJob
from masquerade.networks.stylegan2 import Generator

if TYPE_CHECKING:
    from masquerade.backbones.generator import StyleGenerator

logger = logging.getLogger(__name__)

PSI = 0.7  # truncation at which fakes are drawn and the quality is judged: Barattin et al. 2023, published code
MEAN_OF = 10_000  # draws of Z whose W is averaged: Karras et al. 2019, appendix B
SAMPLES = 8  # of a row of a sample picture
ARCHITECTURE = ("channels", "style", "mapping", "mapping_rate")


class GeneratorTask:
    """Reconstruction, then adversarial training, of one generator; the batch of a step depends on its number alone."""

    parallel = True

    def __init__(self, params: "StyleGenerator.Params", generator: Generator, archive: FaceArchive, seed: int):
        pictures = pictures_of(archive, generator.size)
        self.params, self.generator = params, generator
        self.modules: dict[str, nn.Module] = {"generator": generator}
        self.optimisers: dict[str, torch.optim.Optimizer] = {}
        self.first = self.second = None
        if params.reconstruction.steps:
            self.first = Reconstruction(params.reconstruction, generator, archive, pictures, seed)
            self.optimisers |= self.first.optimisers
        if params.adversarial.steps:
            self.second = Adversarial(params.adversarial, generator, params.channels, pictures, seed)
            self.modules |= self.second.modules
            self.optimisers |= self.second.optimisers

    def kind(self, step: int) -> Hashable:
        first = self.params.reconstruction.steps
        return None if step < first else self.second.kind(step - first)

    def step(self, step: int) -> dict[str, float]:
        first = self.params.reconstruction.steps
        return self.first.step(step) if step < first else self.second.step(step - first)


def pictures_of(archive: FaceArchive, size: int) -> Tensor:
    """The train split, uint8 (M, size, size, 3). Raises ParameterError where the archive holds another size."""
    if archive.facts["size"] != size:
        raise ParameterError(
            f"{archive.path} holds pictures of {archive.facts['size']} pixels, and backbones.generator.channels is "
            f"that of a generator of {size}: it needs log2(pixels) - 1 numbers."
        )
    return torch.from_numpy(np.concatenate([to_uint8(part.images) for part in archive.batches(256, split="train")]))


def build(facts: Mapping, pictures: int | None = None) -> Generator:
    """A generator with the architecture that a checkpoint's facts, or the parameters, name.

    ``pictures``: the side of its pictures, where that is smaller than what it draws. Raises ParameterError where it
    cannot have it.
    """
    drawn = 2 ** (len(facts["channels"]) + 1)
    if pictures and drawn % pictures:
        raise ParameterError(
            f"backbones.generator.channels is that of a generator of {drawn} pixels, and image.size is {pictures}: its "
            f"pictures can be averaged to {drawn}, {drawn // 2}, {drawn // 4} ... pixels and never enlarged."
        )
    return Generator(drawn, *(facts[name] for name in ARCHITECTURE), pictures=pictures)


def train(params: "StyleGenerator.Params", job: TrainingJob) -> None:
    """Train both phases and write the averaged generator, whose ``latent_avg`` is the mean of W."""
    torch.set_num_threads(job.threads)
    if not params.reconstruction.steps + params.adversarial.steps:
        raise ParameterError("backbones.generator: reconstruction.steps and adversarial.steps are both 0.")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    seed = seeding.derive(job.seed, "generator")
    torch.manual_seed(seeding.derive(seed, "weights"))
    archive = FaceArchive(job.faces)
    generator = build(params.model_dump()).to(device)
    task = GeneratorTask(params, generator, archive, seed)
    average = training.Average(generator, params.ema)
    steps = params.reconstruction.steps + params.adversarial.steps

    def sample(step: int) -> None:
        if (step + 1) % params.samples_every == 0 or step + 1 == steps:
            measure_mean(average.module, seed)
            job.picture(f"samples_{step + 1:06d}", samples(average.module, seed))

    training.fit(
        task,
        steps=steps,
        state=job.state,
        fingerprint=json.dumps([params.model_dump(mode="json"), seed, archive.facts["checksum"]]),
        log=job.log,
        averages={"generator": average},
        after=sample,
    )
    save(job.checkpoint, average.module, params.model_dump())


def adopt(params: "StyleGenerator.Params", published: Path, job: TrainingJob) -> None:
    """Write the checkpoint from a published file; its pictures are of the size of the training faces.

    Raises CheckpointError where it does not fit ``params``, ParameterError where it cannot draw that size.
    """
    state, layout = _layouts.generator(_layouts.read(published), published)
    generator = build(params.model_dump(), FaceArchive(job.faces).facts["size"])
    known = "latent_avg" in state
    training.load_into(generator, {"latent_avg": generator.latent_avg} | state, published)
    if not known:
        measure_mean(generator, 0)
    logger.info("%s: %s layout, %d style layers", published, layout, generator.layers)
    save(job.checkpoint, generator, params.model_dump())


def save(checkpoint: Path, generator: Generator, architecture: Mapping) -> None:
    facts = {name: architecture[name] for name in ARCHITECTURE} | {"pictures": generator.size}
    training.save_checkpoint(checkpoint, {"generator": generator}, facts)


def load(checkpoint: Path) -> Generator:
    """The generator of a checkpoint, frozen. Raises CheckpointError where it does not fit."""
    tensors, facts = training.load_checkpoint(checkpoint)
    try:
        generator = build(facts, facts["pictures"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{checkpoint} is not a checkpoint of a generator ({error}).") from error
    training.load_into(generator, tensors.get("generator", {}), checkpoint)
    return generator.eval().requires_grad_(False)


@torch.no_grad()
def measure_mean(generator: Generator, seed: int) -> None:
    """Set ``latent_avg`` to the mean of W over MEAN_OF draws."""
    generator.latent_avg.copy_(
        generator.map(normal(seed, "mean", MEAN_OF, generator.style_width).to(generator.latent_avg)).mean(0)
    )


def normal(seed: int, name: str, count: int, width: int) -> Tensor:
    """Draws of Z, float32 (count, width), that depend on the seed and the name alone."""
    return torch.from_numpy(seeding.generator(seed, "z", name).standard_normal((count, width), dtype=np.float32))


@torch.no_grad()
def faces(generator: Generator, z: Tensor, psi: float) -> Tensor:
    """Generated faces, float32 (N, 3, size, size) in [-1, 1] on the CPU."""
    device = generator.latent_avg.device
    return torch.cat([generator(part.to(device), psi).clamp(-1, 1).cpu() for part in z.split(generator.at_once)])


def samples(generator: Generator, seed: int) -> np.ndarray:
    """Four rows of faces, uint8 (4 size, 8 size, 3): two as they are drawn, two truncated by PSI."""
    z = normal(seed, "samples", 2 * SAMPLES, generator.style_width)
    rows = torch.cat([faces(generator, z, 1.0), faces(generator, z, PSI)]).numpy()
    pictures = to_uint8(rows).reshape(4, SAMPLES, generator.size, generator.size, 3)
    return pictures.transpose(0, 2, 1, 3, 4).reshape(4 * generator.size, SAMPLES * generator.size, 3)


def quality(generator: Generator, job: TrainingJob, count: int) -> dict[str, float]:
    """How real and how varied ``count`` generated faces are.

    ``detection`` (truncated) and ``detection_untruncated``: the share that dlib's HOG finds. ``frechet_distance`` of
    untruncated faces to the train split by MobileNetV2's features, and of the validation split to the same
    (``frechet_distance_of_real``: what other real people have). ``variety``: mean distance of two generated faces'
    features over that of two real ones' (1: as varied).
    """
    from masquerade import discovery
    from masquerade.judges.dlib_face import detections
    from masquerade.metrics.frechet_distance import frechet

    torch.set_num_threads(job.threads)
    z = normal(job.seed, "quality", count, generator.style_width)
    drawn, truncated = (faces(generator, z, psi).numpy() for psi in (1.0, PSI))
    cls = discovery.load("judges", "mobilenet_v2")
    judge = cls(cls.Params(size=min(max(generator.size, 64), 224)), {})
    archive = FaceArchive(job.faces)

    def features(images: np.ndarray) -> np.ndarray:
        return judge.measure(images)["features"].astype(np.float64)

    rows = archive.select("train").iloc[: 4 * count]
    real = np.concatenate([features(part.images) for part in archive.batches(64, rows=rows)])
    others = np.concatenate([features(part.images) for part in archive.batches(64, split="validation")])
    made = features(drawn)
    return {
        "detection": float(detections(truncated).mean()),
        "detection_untruncated": float(detections(drawn).mean()),
        "frechet_distance": frechet(made, real),
        "frechet_distance_of_real": frechet(others, real),
        "variety": _spread(made) / _spread(real[:count]),
    }


def _spread(features: np.ndarray) -> float:
    from scipy.spatial.distance import pdist

    return float(pdist(features).mean())
