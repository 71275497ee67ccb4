"""The inversion: training, adoption of a published file, loading, and quality (Tov et al. 2021, sections 4.1-4.3)."""

import logging
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones import load_backbone
from masquerade.backbones.generator import layouts
from masquerade.backbones.generator.reconstruction import PixelWeights, compute_differences
from masquerade.backbones.generator.sharpening import compute_texture
from masquerade.backbones.generator.training import load_linear_map, read_pictures
from masquerade.backbones.inversion import InversionSettings
from masquerade.backbones.inversion.inverter import Inverter, build, compute_errors, load, save, start_from
from masquerade.backbones.inversion.mobile import MobileTask, compute_identity_distances, measure_limit
from masquerade.core import fingerprints, seeding
from masquerade.core.errors import CheckpointError
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.networks import inputs
from masquerade.networks.discriminators import compute_r1
from masquerade.networks.lpips import load_loss
from masquerade.networks.mobilenet_v2 import MobileNetFeatures
from masquerade.networks.stylegan2 import Generator
from masquerade.networks.w_space import CodeDiscriminator
from masquerade.training import precision, weight_files
from masquerade.training.batches import mirror, to_images
from masquerade.training.optimizers import Optimizers, compute_cooldown, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

__all__ = ["convert_official", "load", "quality", "train"]
logger = logging.getLogger(__name__)

R1, R1_EVERY = 10.0, 16  # weight and interval of the R1 penalty: Tov et al. 2021, appendix A
COOLDOWN = 0.4  # share of the steps over which the learning rate falls
SAMPLES = 8  # faces in a sample image
LIMIT_ON = 24  # people of whom the limit of the kind ``mobile`` and its quality are measured
LPIPS_KNOB = "backbones.inversion.weights.lpips"


class InversionTask:
    """Updates of the encoder and, if its loss has a weight, of the discriminator of codes."""

    own_precision = True

    def __init__(self, params: InversionSettings, inverter: Inverter, generator: Generator, identity: nn.Module,
                 pictures: Tensor, weights: PixelWeights, seed: int):  # fmt: skip
        self.params, self.inverter, self.generator, self.identity = params, inverter, generator, identity
        self.pictures, self.weights, self.seed, self.device = pictures, weights, seed, inverter.latent_avg.device
        self.modules: dict[str, nn.Module] = {"inverter": inverter.train()}
        kernels = (4,) if params.small_scale.optimizer == "muon" else ()
        self.optimizers = {"inverter": Optimizers({"inverter": inverter}, params.learning_rate, (0.9, 0.99), kernels)}
        self.discriminator = None
        if params.weights.adversarial:
            settings = params.code_discriminator
            discriminator = CodeDiscriminator(generator.style_width, settings.layers, settings.equalized)
            self.discriminator = discriminator.to(self.device)
            self.modules["discriminator"] = self.discriminator
            self.optimizers["discriminator"] = Optimizers(
                {"discriminator": self.discriminator}, settings.learning_rate, (settings.betas[0], settings.betas[1])
            )
        self.lpips = load_loss(self.device, LPIPS_KNOB) if params.weights.lpips else None

    def stage(self, step: int) -> int:
        """Number of offsets that are trained at a step (progressive training; Tov et al. 2021, section 4.1.1)."""
        started = (step - self.params.offsets_from) // self.params.offsets_every + 1
        return int(np.clip(started, 0, self.inverter.encoder.layers - 1))

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name and their weighted sum, "total"."""
        params = self.params
        draw = seeding.make_generator(self.seed, "inversion", step)
        images, weights = self._images(draw)
        with precision.use_bfloat16(self.device, params.mixed):
            codes = self._encode(images, step).float()
            generated = self.generator.synthesize(codes).float()
            values = self._picture_losses(generated, images, weights)
            if params.kind == "e4e":
                values["offsets"] = (codes[:, 1:] - codes[:, :1]).square().sum(2).mean(0).sum()
            real = self._sample_w(draw).float()
            if params.small_scale.codes:
                with torch.no_grad():
                    random_faces = self.generator.synthesize(self.generator.broadcast(real)).float()
                values["codes"] = (self._encode(random_faces, step).float() - real[:, None]).square().mean()
        if self.discriminator is not None:
            values["adversarial"] = self._adversarial_loss(codes)
        total = weigh_losses(values, params.loss_weights)
        self.optimizers["inverter"].descend(total, compute_cooldown(step, params.steps, COOLDOWN))
        if self.discriminator is not None:
            values["discriminator"] = self._update_discriminator(codes.detach(), real, step)
        return {name: value.item() for name, value in (values | {"total": total}).items()}

    def _picture_losses(self, generated: Tensor, images: Tensor, weights: Tensor) -> dict[str, Tensor]:
        """The losses that compare images, of those that have a weight."""
        loss_weights = self.params.loss_weights
        values = {"pixels": (generated - images).square().mean()}
        if loss_weights.identity:
            values["identity"] = 1 - (self.identity(generated).float() * self.identity(images).float()).sum(1).mean()
        if self.lpips is not None:
            values["lpips"] = self.lpips(generated, images).mean()
        if loss_weights.absolute or loss_weights.edges:
            values["absolute"], values["edges"] = compute_differences(generated, images, weights)
        if loss_weights.texture:
            values["texture"] = ((compute_texture(generated) - compute_texture(images)).abs() * weights).mean()
        return values

    def _images(self, draw: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Images of a batch, half of them mirrored, and the weights of their pixels."""
        rows = torch.from_numpy(draw.integers(0, len(self.pictures), self.params.batch))
        images = to_images(self.pictures[rows].to(self.device))
        weights = self.weights.of(rows).to(self.device)
        mirrored = torch.from_numpy(draw.random(len(images)) < 0.5).to(self.device)
        return mirror(images, mirrored), mirror(weights, mirrored)

    def _encode(self, images: Tensor, step: int) -> Tensor:
        return self.inverter(images, self.stage(step) if self.params.kind == "e4e" else None)

    def _sample_w(self, draw: np.random.Generator) -> Tensor:
        """W of a batch of random faces, (N, style)."""
        z = draw.standard_normal((self.params.batch, self.generator.style_width), dtype=np.float32)
        return self.generator.map(torch.from_numpy(z).to(self.device))

    def _adversarial_loss(self, codes: Tensor) -> Tensor:
        assert self.discriminator is not None
        self.discriminator.requires_grad_(False)
        loss = functional.softplus(-self.discriminator(codes.flatten(0, 1))).mean()  # non-saturating, section 4.1.2
        self.discriminator.requires_grad_(True)
        return loss

    def _update_discriminator(self, codes: Tensor, real: Tensor, step: int) -> Tensor:
        """Update the discriminator. Returns its loss."""
        assert self.discriminator is not None
        real = real.detach().requires_grad_(True)
        logits = self.discriminator(real)
        loss = functional.softplus(self.discriminator(codes.flatten(0, 1))).mean() + functional.softplus(-logits).mean()
        if step % R1_EVERY == 0:
            loss = loss + R1 / 2 * R1_EVERY * compute_r1(logits, real)
        self.optimizers["discriminator"].descend(loss, 1.0)
        return loss.detach()


def train(params: InversionSettings, job: TrainingJob) -> None:
    """Train on the job's people, and for the kind ``mobile`` on drawn pairs, and write the checkpoint."""
    training = Training(job, params, "inversion")
    training.start()
    generator, identity = (load_backbone(name, job.backbones) for name in ("generator", "identity"))
    archive = training.archive
    mean = generator.latent_avg.expand(generator.layers, -1).contiguous()
    linear = load_linear_map(job.backbones["generator"]) if params.small_scale.linear else None
    metadata = params.model_dump() | {"linear": params.small_scale.linear, "limit": None}
    inverter = inputs.place(build(metadata, training.hash_backbones("generator")["generator"], mean, linear))
    pictures = read_pictures(archive, job.people, generator.size)
    task: Any
    if params.kind == "mobile":
        task = MobileTask(params, inverter, generator, pictures, job.state, training.seed)
    else:
        start_from(identity, inverter.encoder)
        if linear is not None:
            inverter.start_at_linear_codes()
        weights = PixelWeights(archive, job.people, generator.size, params.small_scale.parts)
        task = InversionTask(params, inverter, generator, identity, pictures, weights, training.seed)
    unseen = archive.load(rows=archive.select("validation").iloc[:SAMPLES]).images

    def sample() -> np.ndarray:
        inverter.eval()
        picture = draw_samples(inverter, generator, unseen)
        inverter.train()
        return picture

    training.fit(task, params.steps, sample)
    if params.kind == "mobile":
        faces = archive.load(rows=select_measured(archive)).images
        inverter.eval().limit = measure_limit(faces, reconstruct(inverter, generator, faces))
        task.pairs.discard()
    save(job.checkpoint, inverter, params)


def select_measured(archive: FaceArchive) -> pd.DataFrame:
    """The first image of each of at most `LIMIT_ON` people of the validation split."""
    return archive.select("validation").drop_duplicates("identity").iloc[:LIMIT_ON]


def convert_official(params: InversionSettings, published: Path, job: TrainingJob) -> None:
    """Write the checkpoint from a published file. Raises CheckpointError if it or its generator does not fit."""
    encoder, decoder, mean = layouts.read_encoder(weight_files.read(published), published)
    generator = load_backbone("generator", job.backbones)
    if mean.shape != (generator.layers, generator.style_width):
        raise CheckpointError(
            f"{published} is for a generator with {len(mean)} style layers; {job.backbones['generator']} has "
            f"{generator.layers} (a generator of S pixels has 2 log2(S) - 2). Adopt the generator that belongs to it."
        )
    state = generator.state_dict()
    altered = [name for name, value in decoder.items() if name not in state or not torch.equal(state[name], value)]
    if altered:
        raise CheckpointError(
            f"{published} was trained with another generator than {job.backbones['generator']}: {len(altered)} tensors "
            f"differ (the first: {altered[0]}). Adopt the generator that belongs to it."
        )
    inverter = build(params.model_dump() | {"linear": False}, fingerprints.md5(job.backbones["generator"]), mean)
    weight_files.load(inverter.encoder, encoder, published)
    save(job.checkpoint, inverter, params)


def reconstruct(inverter: Inverter, generator: Generator, images: np.ndarray, refined: bool = True) -> np.ndarray:
    """float32 (N, 3, size, size) in [-1, 1] -> the images that the generator makes of their codes, in that form.

    ``refined``: of the codes after the refinement, if there is one.
    """

    def made(part: Tensor) -> Tensor:
        codes = inverter.invert(part, generator) if refined else inverter(part)
        return generator.synthesize(codes).clamp(-1, 1)

    return inputs.apply_in_batches(made, generator.at_once, images).numpy()


def draw_samples(inverter: Inverter, generator: Generator, images: np.ndarray) -> np.ndarray:
    """Faces above their reconstructions by the encoder alone, uint8 (2 size, N size, 3)."""
    rows = [to_uint8(part) for part in (images, reconstruct(inverter, generator, images, refined=False))]
    return np.concatenate([np.concatenate(list(row), axis=1) for row in rows], axis=0)


def quality(inverter: Inverter, job: TrainingJob) -> dict[str, float]:
    """Means over the validation split: ``identity`` (cosine), ``psnr`` (dB), ``perceptual`` (`MobileNetFeatures`).

    For the kind ``mobile`` also ``lpips``, ``dlib`` (distance; no loss has it) and ``reached``, the share of faces that
    the inversion reaches, all on one image of each of at most `LIMIT_ON` people, because a refinement takes seconds.
    """
    generator, identity = (load_backbone(name, job.backbones) for name in ("generator", "identity"))
    network = MobileNetFeatures(min(max(generator.size, 64), 224))
    figures: dict[str, list[np.ndarray]] = defaultdict(list)
    archive = FaceArchive(job.faces)
    mobile = inverter.limit is not None
    rows = select_measured(archive) if mobile else archive.select("validation")
    for faces in archive.batches(32, rows=rows):
        reconstructions = reconstruct(inverter, generator, faces.images)
        vectors = [inputs.apply_in_batches(identity, len(part), part) for part in (reconstructions, faces.images)]
        figures["identity"].append((vectors[0] * vectors[1]).sum(1).numpy())
        figures["psnr"].append(10 * np.log10(4.0 / np.square(reconstructions - faces.images).mean(axis=(1, 2, 3))))
        figures["perceptual"].append(network.measure(reconstructions, faces.images)["perceptual"])
        if mobile:
            figures["lpips"].append(compute_errors(faces.images, reconstructions))
            figures["dlib"].append(compute_identity_distances(faces.images, reconstructions))
            figures["reached"].append(inverter.reaches(faces.images, reconstructions))
    return {name: float(np.concatenate(values).mean()) for name, values in figures.items()}
