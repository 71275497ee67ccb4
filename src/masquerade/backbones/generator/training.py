"""The generator: training, adoption of a published file, loading, and quality."""

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.assets import random_face as package
from masquerade.backbones.generator import GeneratorSettings, layouts, random_face
from masquerade.backbones.generator.adversarial import Adversarial
from masquerade.backbones.generator.reconstruction import PARTS_WEIGHT, Examples, Reconstruction, build_linear_codes
from masquerade.backbones.generator.sharpening import Sharpening
from masquerade.core import seeding
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.networks import inputs
from masquerade.networks.mobile_stylegan import MobileStyleGAN
from masquerade.networks.mobilenet_v2 import MobileNetFeatures
from masquerade.networks.stylegan2 import Generator
from masquerade.networks.w_space import LinearCodes, load_linear_codes
from masquerade.training import checkpoints, weight_files
from masquerade.training.checkpoints import Saved
from masquerade.training.loop import Task
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Phases, Training

logger = logging.getLogger(__name__)

PSI = 0.7  # truncation of the fakes and of the quality figures: Barattin et al. 2023, published code
MEAN_OF = 10_000  # draws of Z over which W is averaged: Karras et al. 2019, appendix B
SAMPLES = 8  # faces in a row of a sample image
ARCHITECTURE = ("channels", "style", "mapping", "mapping_rate")


class GeneratorTask(Phases):
    """The phases of a training, one after another. A batch depends on the number of its step alone.

    ``linear``: the map of which the generator learns to decode the codes; None without the phases that do so.
    """

    parallel = True
    own_precision = True

    def __init__(self, params: GeneratorSettings, generator: Generator, archive: FaceArchive, part: str, seed: int):
        pictures = read_pictures(archive, part, generator.size)
        shared: dict[str, nn.Module] = {"generator": generator}
        self.linear: LinearCodes | None = None
        phases: dict[str, tuple[int, Task]] = {}
        small = params.small_scale
        first, second, third = small.reconstruction, small.sharpening, params.adversarial
        if first.steps or second.steps:
            shared["linear"] = self.linear = build_linear_codes(generator)
            examples = Examples(archive, part, pictures, generator, PARTS_WEIGHT, self.linear, seed)
            if first.steps:
                phases["reconstruction"] = first.steps, Reconstruction(first, generator, examples, params.mixed, seed)
            if second.steps:
                phases["sharpening"] = second.steps, Sharpening(params, generator, examples, seed)
        if third.steps:
            phases["adversarial"] = third.steps, Adversarial(third, generator, params.channels, pictures, seed)
        super().__init__(phases, shared)


def read_pictures(archive: FaceArchive, part: str, size: int) -> Tensor:
    """A part of the faces, uint8 (M, size, size, 3). Raises ParameterError if the archive has another size."""
    if archive.metadata["size"] != size:
        raise ParameterError(
            f"{archive.path} holds images of {archive.metadata['size']} pixels, and backbones.generator.channels "
            f"makes a generator of {size}. Give it log2(pixels) - 1 numbers."
        )
    return torch.from_numpy(archive.pictures(archive.select(part)))


def build(metadata: Mapping, pictures: int | None = None) -> Generator:
    """A generator with the architecture of the metadata of a checkpoint, or of the parameters.

    ``pictures``: the side to which its images are averaged down. Raises ParameterError if that is not possible.
    """
    side = 2 ** (len(metadata["channels"]) + 1)
    if pictures and side % pictures:
        raise ParameterError(
            f"backbones.generator.channels makes a generator of {side} pixels, and image.size is {pictures}: its "
            f"images can be averaged to {side}, {side // 2}, {side // 4} ... pixels and never enlarged. Change one "
            "of the two."
        )
    return Generator(side, *(metadata[name] for name in ARCHITECTURE), pictures=pictures)


def train(params: GeneratorSettings, job: TrainingJob) -> None:
    """Train all phases and write the averaged generator, whose ``latent_avg`` is the mean of W.

    If codes of images were decoded, the checkpoint also has their linear map. Of the generator of a package, the head
    alone is trained.
    """
    if params.head:
        generator = random_face.build_without_head()
        measure_mean(generator, job.seed)
        figures = random_face.train_head(generator, params.head, job.seed)
        logger.info("the head of 256 pixels: %.2f dB to the published images", figures["psnr"])
        save_head(job.checkpoint, generator, params)
        return
    small = params.small_scale
    steps = small.reconstruction.steps + small.sharpening.steps + params.adversarial.steps
    if not steps:
        raise ParameterError(
            "backbones.generator: adversarial.steps, small_scale.reconstruction.steps and small_scale.sharpening.steps "
            "are all 0. Set at least one of them."
        )
    training = Training(job, params, "generator")
    training.start()
    generator = inputs.place(build(params.model_dump()))
    task = GeneratorTask(params, generator, training.archive, job.people, training.seed)
    average = training.average(generator)

    def sample() -> np.ndarray:
        measure_mean(average, training.seed)
        return draw_samples(average, training.seed)

    training.fit(task, steps, sample)
    save(job.checkpoint, average, params.model_dump(), task.linear)


def convert_official(params: GeneratorSettings, published: Path, job: TrainingJob) -> None:
    """Write the checkpoint from a published file. Its images get the size of the training faces.

    Raises CheckpointError if the file does not fit ``params``, ParameterError if it cannot have that size.
    """
    state, layout = layouts.read_generator(weight_files.read(published), published)
    generator = build(params.model_dump(), FaceArchive(job.faces).metadata["size"])
    has_mean = "latent_avg" in state
    weight_files.load(generator, {"latent_avg": generator.latent_avg} | state, published)
    if not has_mean:
        measure_mean(generator, 0)
    logger.info("%s: %s layout, %d style layers", published, layout, generator.layers)
    save(job.checkpoint, generator, params.model_dump())


def save(checkpoint: Path, generator: Generator, architecture: Mapping, linear: LinearCodes | None = None) -> None:
    """Write the checkpoint. ``architecture``: has the keys of ARCHITECTURE. ``linear``: see `load_linear_map`."""
    metadata = {name: architecture[name] for name in ARCHITECTURE} | {"pictures": generator.size}
    modules: dict[str, nn.Module] = {"generator": generator}
    checkpoints.save_checkpoint(checkpoint, modules if linear is None else modules | {"linear": linear}, metadata)


def save_head(checkpoint: Path, generator: MobileStyleGAN, params: GeneratorSettings) -> None:
    """Write the checkpoint of a package's generator: what the package does not have, and the hashes of its files."""
    metadata = {name: getattr(params, name) for name in ARCHITECTURE} | {"package": package.FILES}
    checkpoints.save_checkpoint(checkpoint, {"generator": random_face.Own(generator)}, metadata)


def load_linear_map(checkpoint: Path) -> LinearCodes:
    """The map from images to codes that the generator of a checkpoint learned to decode.

    Raises CheckpointError if it learned from random codes alone, or is a published one.
    """
    tensors = Saved(checkpoint).tensors
    if "linear" not in tensors:
        raise CheckpointError(
            f"{checkpoint} has no linear codes: its generator was not trained by reconstruction. Set "
            "backbones.inversion.small_scale.linear to false."
        )
    return load_linear_codes(tensors["linear"])


def load(checkpoint: Path) -> Generator | MobileStyleGAN:
    """The generator of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    saved = Saved(checkpoint)
    if "package" in saved.metadata:
        return random_face.build(saved.tensors["generator"], checkpoint)
    return saved.frozen("generator", build(saved.metadata, saved.metadata["pictures"]))


@torch.no_grad()
def measure_mean(generator: Generator | MobileStyleGAN, seed: int) -> None:
    """Set ``latent_avg`` to the mean of W over MEAN_OF draws."""
    generator.latent_avg.copy_(
        generator.map(draw_z(seed, "mean", MEAN_OF, generator.style_width).to(generator.latent_avg)).mean(0)
    )


def draw_z(seed: int, name: str, count: int, width: int) -> Tensor:
    """Draws of Z, float32 (count, width). They depend on the seed and the name alone."""
    return torch.from_numpy(seeding.make_generator(seed, "z", name).standard_normal((count, width), dtype=np.float32))


def draw_faces(generator: Generator | MobileStyleGAN, z: Tensor, psi: float) -> Tensor:
    """Generated faces, float32 (N, 3, size, size) in [-1, 1] on the CPU."""
    return inputs.apply_in_batches(lambda part: generator(part, psi).clamp(-1, 1), generator.at_once, z)


def draw_samples(generator: Generator | MobileStyleGAN, seed: int) -> np.ndarray:
    """Four rows of faces, uint8 (4 size, 8 size, 3): two without truncation, two with truncation PSI."""
    z = draw_z(seed, "samples", 2 * SAMPLES, generator.style_width)
    rows = torch.cat([draw_faces(generator, z, 1.0), draw_faces(generator, z, PSI)]).numpy()
    pictures = to_uint8(rows).reshape(4, SAMPLES, generator.size, generator.size, 3)
    return pictures.transpose(0, 2, 1, 3, 4).reshape(4 * generator.size, SAMPLES * generator.size, 3)


def quality(generator: Generator | MobileStyleGAN, job: TrainingJob, count: int) -> dict[str, float]:
    """Realism and variety of ``count`` generated faces.

    ``detection`` (truncated) and ``detection_untruncated``: share of faces that dlib's HOG detects.
    ``frechet_distance``: of untruncated faces to the faces of the training, on MobileNetV2's features.
    ``frechet_distance_of_real``: of the validation split to the faces of the training, for comparison. Both are of
    ``frechet_pictures`` images, because the distance grows when images are few. ``variety``: mean distance between
    the features of generated faces, over that between real faces (1: as varied).
    """
    from masquerade.core.statistics import compute_frechet
    from masquerade.networks.dlib_models import detect_faces

    z = draw_z(job.seed, "quality", count, generator.style_width)
    untruncated, truncated = (draw_faces(generator, z, psi).numpy() for psi in (1.0, PSI))
    network = MobileNetFeatures(min(max(generator.size, 64), 224))
    archive = FaceArchive(job.faces)

    def features(images: np.ndarray) -> np.ndarray:
        return network.measure(images)["features"].astype(np.float64)

    rows = archive.select(job.people).iloc[: 4 * count]
    of_training = np.concatenate([features(part.images) for part in archive.batches(64, rows=rows)])
    of_validation = np.concatenate([features(part.images) for part in archive.batches(64, part="validation")])
    of_generated = features(untruncated)
    count_compared = min(len(of_generated), len(of_validation))
    return {
        "detection": float(detect_faces(truncated).mean()),
        "detection_untruncated": float(detect_faces(untruncated).mean()),
        "frechet_distance": compute_frechet(of_generated[:count_compared], of_training),
        "frechet_distance_of_real": compute_frechet(of_validation[:count_compared], of_training),
        "frechet_pictures": float(count_compared),
        "variety": _measure_spread(of_generated) / _measure_spread(of_training[:count]),
    }


def _measure_spread(features: np.ndarray) -> float:
    """Mean distance between two rows."""
    from scipy.spatial.distance import pdist

    return float(pdist(features).mean())
