"""Losses and training of Stage I: IdentityDP (Wen et al. 2022), section IV.D, Eq. 14-18.

Eq. 8-12 of Cao et al. 2021 are the same. The papers print sums of squares. Here every squared norm is the mean over its
elements, so that the weights of Eq. 18 have the same effect at every size of image (docs/identitydp.md).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, normalize, relu

from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, to_float
from masquerade.methods._disentanglement import DisentanglementSettings, LossWeights
from masquerade.methods._disentanglement.network import StageOne, build
from masquerade.networks.discriminators import Heads, MultiScaleDiscriminator, Projection
from masquerade.networks.inputs import apply_in_batches, device
from masquerade.training import pretrained
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Optimizers, compute_cooldown, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

SAMPLES = 6  # rows of a sample image
BATCH = 256  # images that are encoded at a time
SPARED = ("start",)  # the layer from r_id to 2 x 2: its kernel is so large that Muon is not worth its cost
REFINEMENT_RATE = 0.3
"""Learning rates at the start of the refinement, as a share of those of the updates before it (ours)."""
REFINEMENT_WEIGHTS = LossWeights(adversarial=0.4, attributes=10.0, identity=40.0, reconstruction=100.0)
"""The weights of Eq. 18 in the refinement (ours)."""
REFINEMENT_NOISED = 0.5
"""`StageOneSmallScale.noised` of the refinement (ours)."""

Alter = Callable[[np.ndarray], np.ndarray]
"""Identity vectors (N, D) -> (N, D)."""


def adversarial_loss(fake: Sequence[Tensor]) -> Tensor:
    """The generator's L_adv, Eq. 14 in its hinge form: -mean D(X^), mean over the scales. ``fake``: score maps."""
    return torch.stack([-scores.mean() for scores in fake]).mean()


def discriminator_loss(real: Sequence[Tensor], fake: Sequence[Tensor]) -> Tensor:
    """The discriminator's hinge loss, mean max(0, 1 - D(X)) + mean max(0, 1 + D(X^)), mean over the scales (Eq. 14)."""
    losses = [relu(1 - r).mean() + relu(1 + f).mean() for r, f in zip(real, fake, strict=True)]
    return torch.stack(losses).mean()


def identity_loss(generated: Tensor, target: Tensor) -> Tensor:
    """L_id = 1 - cos(r_id(X^), r_id(X)), Eq. 15, the mean over rows (N, D); 0 (same) .. 2 (opposite)."""
    return (1 - cosine_similarity(generated, target)).mean()


def attribute_loss(generated: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
    """L_att = 1/2 sum_k ||r_att^k(X^) - r_att^k(X)||^2, Eq. 16, the mean over the pairs. Maps: (N, C, H, W)."""
    norms = [(d - t).square().mean() for d, t in zip(generated, target, strict=True)]
    return 0.5 * torch.stack(norms).sum()


def reconstruction_loss(generated: Tensor, target: Tensor, same: Tensor) -> Tensor:
    """L_rec = 1/2 ||X^ - X||^2, Eq. 17, the mean over the ``same`` pairs, bool (N,); 0 without such a pair.

    Section IV.D: there is no target image for a pair of different faces, so its L_rec is 0.
    """
    of_pair = 0.5 * (generated - target).square().mean(dim=(1, 2, 3))
    return (of_pair * same).sum() / same.sum().clamp(min=1)


@dataclass(frozen=True)
class Phase:
    """Consecutive steps with one discriminator, one set of weights of the losses, and optimizers of their own."""

    first: int
    """The number of its first step in the training."""
    steps: int
    rate: float
    """The learning rates at its start, as a share of those of the training."""
    weights: LossWeights
    noised: float
    features: nn.Module
    """Frozen: from images to what the discriminator sees."""
    discriminator: nn.Module
    """From ``features`` to a map of scores for each scale."""
    generator_optimizers: Optimizers
    discriminator_optimizers: Optimizers

    def score(self, images: Tensor) -> list[Tensor]:
        """Images (N, 3, S, S) -> the maps of scores."""
        return self.discriminator(self.features(images))


class StageOneTask:
    """One update of the generator and one of the discriminator, on a batch of pairs of training faces.

    First the updates of the paper, with a discriminator of pixels; then those of the refinement, if there are any.
    ``images`` uint8 (M, S, S, 3); ``identities`` their unit vectors (M, D). A pair takes its identity from one image
    and its attributes from another, or both from one (a *same* pair). The batch depends only on the seed and the number
    of the step.
    """

    def __init__(
        self,
        settings: DisentanglementSettings,
        identity: nn.Module,
        images: np.ndarray,
        identities: Tensor,
        seed: int,
        frozen: Mapping[str, nn.Module] | None = None,
    ):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.identity, self.images, self.identities = settings, identity, images, identities
        self.seed, self.device = seed, identities.device
        self.network = build(settings, frozen or {}, identities.shape[1]).to(self.device)
        small = settings.small_scale
        if small.span:
            self.network.fit_span(identities)
        self.modules: dict[str, nn.Module] = {"network": self.network}
        self.optimizers: dict[str, Optimizers] = {}
        self.phases: list[Phase] = []
        pixels = settings.discriminator
        discriminator = MultiScaleDiscriminator(pixels.width, pixels.depth, pixels.scales).to(self.device)
        self.phases.append(
            Phase(0, settings.steps, 1.0, settings.losses, small.noised, nn.Identity(), discriminator,
                  *self._optimizers("", discriminator))
        )  # fmt: skip
        if small.refinement_steps:
            features, discriminator = Projection(small.refinement_size).to(self.device), Heads().to(self.device)
            self.phases.append(
                Phase(settings.steps, small.refinement_steps, REFINEMENT_RATE, REFINEMENT_WEIGHTS, REFINEMENT_NOISED,
                      features, discriminator, *self._optimizers("refining_", discriminator))
            )  # fmt: skip

    def _optimizers(self, prefix: str, discriminator: nn.Module) -> tuple[Optimizers, Optimizers]:
        """The optimizers of a phase. ``prefix`` begins the names of all that the training's state holds of it."""
        settings = self.settings
        rate, kernel_rate, betas = settings.learning_rate, settings.small_scale.kernel_rate, settings.betas
        generator = Optimizers.with_kernels({"network": self.network}, rate, kernel_rate, betas, spared=SPARED)
        judge = Optimizers({"discriminator": discriminator}, rate, betas)
        self.modules[f"{prefix}discriminator"] = discriminator
        self.optimizers |= {f"{prefix}network": generator, f"{prefix}discriminator": judge}
        return generator, judge

    def draw_pairs(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows for the identity, rows for the attributes, whether both are the same image: (batch,) each."""
        draw, batch = seeding.make_generator(self.seed, "batch", step), self.settings.batch
        attributes = draw.integers(len(self.images), size=batch)
        # An offset of 1 .. M - 1 never gives the same image.
        others = (attributes + draw.integers(1, len(self.images), size=batch)) % len(self.images)
        same = np.arange(batch) < round(self.settings.same_pairs * batch)
        return np.where(same, attributes, others), attributes, same

    def step(self, step: int) -> dict[str, float]:
        """One update of both networks. Returns the losses by name."""
        phase = self.phases[step >= self.settings.steps]
        identity_rows, rows, same = self.draw_pairs(step)
        images = torch.from_numpy(to_float(self.images[rows])).to(self.device)
        identity = self._add_noise(self.identities[torch.from_numpy(identity_rows)], phase.noised, step)
        share = phase.rate * compute_cooldown(step - phase.first, phase.steps, self.settings.small_scale.cooldown)
        values, generated = self._update_generator(
            phase, images, identity, torch.from_numpy(same).to(self.device), share
        )
        if phase.weights.adversarial:
            values["discriminator"] = self._update_discriminator(phase, images, generated)
        return {name: value.item() for name, value in values.items()}

    def _add_noise(self, identity: Tensor, share_noised: float, step: int) -> Tensor:
        """The identity vectors (batch, D), a share of which, the last ones, is moved towards random directions.

        Stage II gives vectors that are nobody's. A generator that saw people's alone draws stains for these. So it does
        if it is asked for a direction outside the span, which no image gives.
        """
        count = round(share_noised * len(identity))
        draw = seeding.make_generator(self.seed, "noise", step)
        normal = torch.from_numpy(draw.standard_normal((count, identity.shape[1]), dtype=np.float32)).to(identity)
        directions = self.network.project(normalize(normal))
        share = torch.from_numpy(draw.random((count, 1), dtype=np.float32)).to(identity)
        first, last = identity.tensor_split([len(identity) - count])
        return torch.cat([first, normalize(last.lerp(directions, share))])

    def _update_generator(
        self, phase: Phase, images: Tensor, identity: Tensor, same: Tensor, share: float
    ) -> tuple[dict[str, Tensor], Tensor]:
        maps = self.network.attributes(images)
        generated = self.network.fuse(identity, maps)  # X^, (N, 3, S, S)
        phase.discriminator.requires_grad_(False)
        values = {"adversarial": adversarial_loss(phase.score(generated))} if phase.weights.adversarial else {}
        values |= {
            "attributes": attribute_loss(self.network.attributes(generated), maps),
            "identity": identity_loss(self.identity(generated), identity),
            "reconstruction": reconstruction_loss(generated, images, same),
        }
        total = weigh_losses(values, phase.weights)  # Eq. 18
        phase.generator_optimizers.descend(total, share)
        phase.discriminator.requires_grad_(True)
        return values | {"total": total}, generated.detach()

    def _update_discriminator(self, phase: Phase, images: Tensor, generated: Tensor) -> Tensor:
        loss = discriminator_loss(phase.score(images), phase.score(generated))
        phase.discriminator_optimizers.descend(loss, phase.rate)
        return loss


def train(
    settings: DisentanglementSettings,
    job: TrainingJob,
    frozen: Mapping[str, Any],
    alter: Alter | None = None,
    beside: Mapping[str, nn.Module] | None = None,
) -> None:
    """Train Stage I on the people of the job and write ``job.checkpoint`` (the averaged generator).

    ``frozen``: `DisentanglementSettings.backbones`, by role. ``alter``: the method's Stage II, for one more column of
    the sample images. ``beside``: further modules for the checkpoint. If ``job.base`` is a checkpoint of the same
    training, or comes from weights/, its generator is taken and no training runs. Raises ParameterError if images and
    widths do not fit.
    """
    # without the parameters that a method has beside those of Stage I: they change no training
    stage_one = DisentanglementSettings(**settings.model_dump(include=set(DisentanglementSettings.model_fields)))
    training = Training(job, stage_one)
    identity, size = frozen["identity"], image_size(settings, frozen)
    images = read_images(training.archive, job.people, size)
    task = StageOneTask(
        settings, identity, images, apply_in_batches(identity, BATCH, images).to(device()), job.seed, frozen
    )
    network, digest = training.average(task.network), training.digest()
    if job.base is None or not _load_same_training(job.base, digest, network):
        sources = read_images(training.archive, "validation", size, SAMPLES)
        training.fit(task, settings.updates, lambda: draw_samples(network, identity, sources, alter))
    modules = {"network": network, **(beside or {})}
    training.save(modules, {"size": size, "training": digest}, settings.backbones)


def image_size(settings: DisentanglementSettings, frozen: Mapping[str, Any]) -> int:
    """Side in pixels of the images of Stage I. ``frozen``: role -> backbone."""
    return frozen["generator"].size if settings.is_latent else settings.size


def _load_same_training(base: Path, digest: str, network: nn.Module) -> bool:
    """Load the generator of ``base`` if it comes from the training ``digest`` or from weights/. Returns whether.

    The graph gives a base only if its parameters are the same. Weights of weights/ learned from other people.
    """
    saved = Saved(base)
    same = saved.metadata.get("training") == digest or pretrained.PRETRAINED in saved.metadata
    if same:
        saved.frozen("network", network)
    return same


def average_identities(job: TrainingJob, identity: nn.Module, size: int) -> Tensor:
    """The mean identity vector of each person of the training, unit (M, D), in the order of the archive."""
    archive = FaceArchive(job.faces)
    vectors = apply_in_batches(identity, BATCH, read_images(archive, job.people, size))  # r_id, (N, D) on the CPU
    codes, _ = pd.factorize(archive.select(job.people)["identity"])
    sums = torch.zeros(codes.max() + 1, vectors.shape[1]).index_add_(0, torch.from_numpy(codes), vectors)
    return normalize(sums)


def read_images(archive: FaceArchive, part: str, size: int, limit: int | None = None) -> np.ndarray:
    """The images of a part (at most ``limit``), uint8 (M, size, size, 3).

    Raises ParameterError if the archive holds another size or fewer than two faces.
    """
    rows = archive.select(part).iloc[:limit]
    if archive.metadata["size"] != size:
        raise ParameterError(
            f"{archive.path} holds images of {archive.metadata['size']} pixels, but the widths are those of a network "
            f"for {size}. Give encoder_widths log2(pixels) - 1 entries and generator_widths one more."
        )
    if len(rows) < 2:
        raise ParameterError(
            f"{archive.path} holds {len(rows)} usable faces in part {part}; two are needed. Build a larger archive."
        )
    return archive.pictures(rows)


@torch.no_grad()
def draw_samples(network: StageOne, identity: nn.Module, images: np.ndarray, alter: Alter | None) -> np.ndarray:
    """uint8 (rows, columns, 3): source | reconstruction | with the next face's identity | with its altered identity."""
    device = next(network.parameters()).device
    inputs = torch.from_numpy(to_float(images)).to(device)
    vectors = apply_in_batches(identity, BATCH, images)
    columns = [vectors, vectors.roll(1, dims=0)]
    if alter is not None:
        columns.append(torch.from_numpy(alter(vectors.numpy())).to(vectors.dtype))
    return arrange_columns([inputs, *(network(column.to(device), inputs) for column in columns)])
