"""The inversion: training, adoption of a published file, loading, and quality (Tov et al. 2021, sections 4.1-4.3)."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade import assets
from masquerade.backbones.generator import layouts
from masquerade.backbones.generator.training import pictures_of
from masquerade.backbones.inversion.settings import InversionSettings
from masquerade.core import discovery, fingerprints, seeding
from masquerade.core.errors import CheckpointError
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.networks import inputs
from masquerade.networks.code_discriminator import CodeDiscriminator
from masquerade.networks.mobilenet_v2 import MobileNetFeatures
from masquerade.networks.psp import Encoder4Editing, GradualStyleEncoder
from masquerade.networks.stylegan2 import Generator
from masquerade.training import checkpoints, loop
from masquerade.training.job import TrainingJob
from masquerade.training.optimisers import Optimisers, cooldown_share

logger = logging.getLogger(__name__)

KINDS = {"e4e": Encoder4Editing, "psp": GradualStyleEncoder}
ARCHITECTURE = ("kind", "input_size", "widths", "units")
R1, R1_EVERY = 10.0, 16  # weight and interval of the R1 penalty: Tov et al. 2021, appendix A
COOLDOWN = 0.4  # share of the steps over which the learning rate falls
SAMPLES = 8  # faces in a sample picture


class Inverter(nn.Module):
    """Pictures (N, 3, H, W) in [-1, 1], any size -> W+ (N, layers, style): the mean codes plus the encoder's output.

    ``generator``: the md5 of the checkpoint of the generator to which this W+ belongs.
    """

    latent_avg: Tensor

    def __init__(self, encoder: GradualStyleEncoder, mean: Tensor, generator: str):
        super().__init__()
        self.encoder, self.generator = encoder, generator
        self.register_buffer("latent_avg", mean)

    def forward(self, images: Tensor, stage: int | None = None) -> Tensor:
        size = self.encoder.size
        if images.shape[-2:] != (size, size):
            images = functional.interpolate(
                images, size=(size, size), mode="bilinear", align_corners=False, antialias=True
            )
        options = {} if stage is None else {"stage": stage}
        return self.latent_avg + self.encoder(images, **options)


class InversionTask:
    """Updates of the encoder and, if its loss has a weight, of the discriminator of codes."""

    def __init__(self, params: InversionSettings, inverter: Inverter, generator: Generator, identity: nn.Module,
                 pictures: Tensor, seed: int):  # fmt: skip
        self.params, self.inverter, self.generator, self.identity = params, inverter, generator, identity
        self.pictures, self.seed, self.device = pictures, seed, inverter.latent_avg.device
        self.modules: dict[str, nn.Module] = {"inverter": inverter.train()}
        kernels = (4,) if params.optimiser == "muon" else ()
        self._encoding = Optimisers({"inverter": inverter}, params.learning_rate, (0.9, 0.99), kernels)
        self.optimisers = dict(self._encoding.named)
        self.discriminator = None
        if params.weights.adversarial:
            own = params.code_discriminator
            self.discriminator = CodeDiscriminator(generator.style_width, own.layers, own.equalised).to(self.device)
            self.modules["discriminator"] = self.discriminator
            self._discriminating = Optimisers(
                {"discriminator": self.discriminator}, own.learning_rate, (own.betas[0], own.betas[1])
            )
            self.optimisers["discriminator"] = self._discriminating.named["adam"]
        self.lpips = perceptual(self.device, "backbones.inversion.weights.lpips") if params.weights.lpips else None

    def stage(self, step: int) -> int:
        """Number of offsets that are trained at a step (progressive training; Tov et al. 2021, section 4.1.1)."""
        started = (step - self.params.offsets_from) // self.params.offsets_every + 1
        return int(np.clip(started, 0, self.inverter.encoder.layers - 1))

    def kind(self, step: int) -> int | None:
        """The stage for e4e; None for pSp, which has no stages."""
        return self.stage(step) if self.params.kind == "e4e" else None

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name and their weighted sum, "total"."""
        params, generator = self.params, self.generator
        draw = seeding.generator(self.seed, "inversion", step)
        images = self._images(draw)
        codes = self._encode(images, step)
        made = generator.synthesize(codes)
        values = {"pixels": (made - images).square().mean()}
        if params.weights.identity:
            values["identity"] = 1 - (self.identity(made) * self.identity(images)).sum(1).mean()
        if self.lpips is not None:
            values["lpips"] = self.lpips(made, images).mean()
        if params.kind == "e4e":
            values["offsets"] = (codes[:, 1:] - codes[:, :1]).square().sum(2).mean(0).sum()
        real = self._sample_w(draw)
        if params.weights.codes:
            with torch.no_grad():
                drawn = generator.synthesize(generator.broadcast(real))
            values["codes"] = (self._encode(drawn, step) - real[:, None]).square().mean()
        if self.discriminator is not None:
            values["adversarial"] = self._adversarial_loss(codes)
        total = cast("Tensor", sum(getattr(params.weights, name) * value for name, value in values.items()))
        self._encoding.descend(total, cooldown_share(step, params.steps, COOLDOWN))
        if self.discriminator is not None:
            values["discriminator"] = self._update_discriminator(codes.detach(), real, step)
        return {name: value.item() for name, value in (values | {"total": total}).items()}

    def _images(self, draw: np.random.Generator) -> Tensor:
        chosen = torch.from_numpy(draw.integers(0, len(self.pictures), self.params.batch))
        images = self.pictures[chosen].to(self.device).permute(0, 3, 1, 2).float() / 127.5 - 1.0
        mirrored = torch.from_numpy(draw.random(len(images)) < 0.5).to(self.device)
        return torch.where(mirrored[:, None, None, None], images.flip(-1), images)

    def _encode(self, images: Tensor, step: int) -> Tensor:
        return self.inverter(images, self.kind(step))

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
            slope = torch.autograd.grad(logits.sum(), real, create_graph=True)[0]
            loss = loss + R1 / 2 * R1_EVERY * slope.square().sum(1).mean()
        self._discriminating.descend(loss, 1.0)
        return loss.detach()


def perceptual(device: torch.device, knob: str, trunk: Literal["alex", "vgg"] = "alex") -> nn.Module:
    """LPIPS by AlexNet or VGG-16 (Zhang et al. 2018), frozen.

    ``knob``: the parameter with its weight. Raises CheckpointError naming ``knob`` if the trunk's file is missing.
    """
    from masquerade.networks import lpips

    try:
        return lpips.network(assets.checked(lpips.ASSETS[trunk]), trunk).to(device)
    except CheckpointError as error:
        raise CheckpointError(f"LPIPS needs {lpips.ASSETS[trunk]}: {error} Or set {knob} to 0.") from error


def build(facts: Mapping, generator: str, mean: Tensor) -> Inverter:
    """An inverter of the architecture in ``facts``. ``generator``: its md5; ``mean``: mean codes (layers, style)."""
    layers, style = mean.shape
    encoder = KINDS[facts["kind"]](layers, facts["input_size"], style, facts["widths"], facts["units"])
    return Inverter(encoder, mean, generator)


def train(params: InversionSettings, job: TrainingJob) -> None:
    """Train on the job's people and write the checkpoint."""
    torch.set_num_threads(job.threads)
    device = inputs.device()
    seed = seeding.derive(job.seed, "inversion")
    torch.manual_seed(seeding.derive(seed, "weights"))
    generator, identity = (
        discovery.load("backbones", name).load(job.backbones[name]).to(device) for name in ("generator", "identity")
    )
    archive = FaceArchive(job.faces)
    mean = generator.latent_avg.expand(generator.layers, -1).contiguous()
    inverter = build(params.model_dump(), fingerprints.md5(job.backbones["generator"]), mean).to(device)
    start_from(identity, inverter.encoder)
    task = InversionTask(params, inverter, generator, identity, pictures_of(archive, job.people, generator.size), seed)
    unseen = archive.load(rows=archive.select("validation").iloc[:SAMPLES])

    def sample(step: int) -> None:
        if (step + 1) % params.samples_every == 0 or step + 1 == params.steps:
            inverter.eval()
            job.picture(f"samples_{step + 1:06d}", samples(inverter, generator, unseen.images))
            inverter.train()

    parts = [params.model_dump(mode="json"), seed, archive.digest(job.people)]
    loop.fit(
        task,
        steps=params.steps,
        state=job.state,
        fingerprint=json.dumps(
            [*parts, *(fingerprints.md5(job.backbones[name]) for name in ("generator", "identity"))]
        ),
        log=job.log,
        after=sample,
    )
    save(job.checkpoint, inverter, params)


def start_from(identity: nn.Module, encoder: GradualStyleEncoder) -> None:
    """Copy the body of the identity network into the encoder if the shapes agree: Richardson et al. 2021, section 4."""
    network = identity.network
    assert isinstance(network, nn.Module)
    identity_state = network.state_dict()
    own = encoder.state_dict()
    body = {name: value for name, value in identity_state.items() if name.startswith(("input_layer.", "body."))}
    if all(name in own and own[name].shape == value.shape for name, value in body.items()):
        encoder.load_state_dict({**own, **body})
    else:
        logger.info("the encoder starts at random: its widths and units are not those of the identity network")


def adopt(params: InversionSettings, published: Path, job: TrainingJob) -> None:
    """Write the checkpoint from a published file. Raises CheckpointError if it or its generator does not fit."""
    encoder, decoder, mean = layouts.encoder(layouts.read(published), published)
    generator = discovery.load("backbones", "generator").load(job.backbones["generator"])
    if mean.shape != (generator.layers, generator.style_width):
        raise CheckpointError(
            f"{published} is for a generator with {len(mean)} style layers; {job.backbones['generator']} has "
            f"{generator.layers} (a generator of S pixels has 2 log2(S) - 2). Adopt the generator that belongs to it."
        )
    own = generator.state_dict()
    altered = [name for name, value in decoder.items() if name not in own or not torch.equal(own[name], value)]
    if altered:
        raise CheckpointError(
            f"{published} was trained with another generator than {job.backbones['generator']}: {len(altered)} tensors "
            f"differ (the first: {altered[0]}). Adopt the generator that belongs to it."
        )
    inverter = build(params.model_dump(), fingerprints.md5(job.backbones["generator"]), mean)
    checkpoints.load_into(inverter.encoder, encoder, published)
    save(job.checkpoint, inverter, params)


def save(checkpoint: Path, inverter: Inverter, params: InversionSettings) -> None:
    """Write the checkpoint."""
    facts = {name: getattr(params, name) for name in ARCHITECTURE} | {"generator": inverter.generator}
    checkpoints.save_checkpoint(checkpoint, {"inverter": inverter}, facts)


def load(checkpoint: Path) -> Inverter:
    """The inverter of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    tensors, facts = checkpoints.load_checkpoint(checkpoint)
    try:
        inverter = build(facts, facts["generator"], torch.zeros_like(tensors["inverter"]["latent_avg"]))
    except KeyError as error:
        raise CheckpointError(f"{checkpoint} is not a checkpoint of an inversion: it has no {error}.") from error
    checkpoints.load_into(inverter, tensors["inverter"], checkpoint)
    return inverter.eval().requires_grad_(False)


@torch.no_grad()
def reconstruct(inverter: Inverter, generator: Generator, images: np.ndarray) -> np.ndarray:
    """float32 (N, 3, size, size) in [-1, 1] -> the pictures that the generator makes of their codes, in that form."""
    device = inverter.latent_avg.device
    parts = torch.from_numpy(images).split(generator.at_once)
    return torch.cat([generator.synthesize(inverter(part.to(device))).clamp(-1, 1).cpu() for part in parts]).numpy()


def samples(inverter: Inverter, generator: Generator, images: np.ndarray) -> np.ndarray:
    """Faces above their reconstructions, uint8 (2 size, N size, 3)."""
    rows = [to_uint8(part) for part in (images, reconstruct(inverter, generator, images))]
    return np.concatenate([np.concatenate(list(row), axis=1) for row in rows], axis=0)


def quality(inverter: Inverter, job: TrainingJob) -> dict[str, float]:
    """Means over the validation split: ``identity`` (cosine), ``psnr`` (dB), ``perceptual`` (`MobileNetFeatures`)."""
    torch.set_num_threads(job.threads)
    generator, identity = (
        inputs.place(discovery.load("backbones", name).load(job.backbones[name])) for name in ("generator", "identity")
    )
    network = MobileNetFeatures(min(max(generator.size, 64), 224))
    figures: dict[str, list[np.ndarray]] = {"identity": [], "psnr": [], "perceptual": []}
    for faces in FaceArchive(job.faces).batches(32, part="validation"):
        made = reconstruct(inverter, generator, faces.images)
        with torch.inference_mode():
            vectors = [identity(torch.from_numpy(part).to(inputs.device())) for part in (made, faces.images)]
        figures["identity"].append((vectors[0] * vectors[1]).sum(1).cpu().numpy())
        figures["psnr"].append(10 * np.log10(4.0 / np.square(made - faces.images).mean(axis=(1, 2, 3))))
        figures["perceptual"].append(network.measure(made, faces.images)["perceptual"])
    return {name: float(np.concatenate(values).mean()) for name, values in figures.items()}
