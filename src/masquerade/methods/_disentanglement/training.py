"""Training Stage I: IdentityDP (Wen et al. 2022), section IV.D and Eq. 18."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, to_float
from masquerade.methods._disentanglement import losses
from masquerade.methods._disentanglement.network import StageOne, built, size_of
from masquerade.methods._disentanglement.settings import DisentanglementSettings, RefinementSettings, needed
from masquerade.networks.discriminators import Heads, Projection
from masquerade.networks.inputs import apply_in_batches, device
from masquerade.networks.patchgan import MultiScaleDiscriminator
from masquerade.training import adoption
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Optimizers, cooldown_share, weigh_losses
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training, arrange_columns

KNOBS = DisentanglementSettings.model_fields  # of Stage I: those of a method beside them change no training
SAMPLES = 6  # rows of a sample picture
SPARED = ("start",)  # the layer from r_id to 2 x 2: its kernel is so large that Muon is not worth its cost

Alter = Callable[[np.ndarray], np.ndarray]
"""Identity vectors (N, D) -> (N, D)."""


@dataclass(frozen=True)
class Phase:
    """Consecutive steps with one discriminator, one set of weights of the losses, and optimizers of their own.

    ``rate``: the learning rates at its start, as a share of those of the training. ``seen``: frozen, from pictures to
    what the discriminator judges. The discriminator gives a map of scores for each scale.
    """

    first: int
    rate: float
    settings: DisentanglementSettings | RefinementSettings
    seen: nn.Module
    discriminator: nn.Module
    generating: Optimizers
    discriminating: Optimizers

    def scores(self, images: Tensor) -> list[Tensor]:
        return self.discriminator(self.seen(images))


class StageOneTask:
    """One update of the generator and one of the discriminator, on a batch of pairs of training faces.

    First the updates of the paper, with a discriminator of pixels; then those of ``settings.refinement``.
    ``pictures`` uint8 (M, S, S, 3); ``identities`` their unit vectors (M, D). A pair takes its identity from one
    picture and its attributes from another, or both from one (a *same* pair). The batch depends only on the seed and
    the number of the step.
    """

    def __init__(
        self,
        settings: DisentanglementSettings,
        identity: nn.Module,
        pictures: np.ndarray,
        identities: Tensor,
        seed: int,
        frozen: Mapping[str, nn.Module] | None = None,
    ):
        torch.manual_seed(seeding.derive_seed(seed, "weights"))
        self.settings, self.identity, self.pictures, self.identities = settings, identity, pictures, identities
        self.seed, self.device = seed, identities.device
        self.network = built(settings, frozen or {}, identities.shape[1]).to(self.device)
        if settings.span:
            self.network.spanned(identities)
        self.modules: dict[str, nn.Module] = {"network": self.network}
        self.optimizers: dict[str, Optimizers] = {}
        pixels, refinement = settings.discriminator, settings.refinement
        scored = MultiScaleDiscriminator(pixels.width, pixels.depth, pixels.scales)
        self.phases = [self._phase("", 0, 1.0, settings, nn.Identity(), scored)]
        if refinement.steps:
            seen = Projection(refinement.projected)
            self.phases.append(self._phase("refining_", settings.steps, refinement.rate, refinement, seen, Heads()))

    def _phase(
        self,
        prefix: str,
        first: int,
        rate: float,
        settings: DisentanglementSettings | RefinementSettings,
        seen: nn.Module,
        discriminator: nn.Module,
    ) -> Phase:
        """A phase. The names of what the training's state keeps of it begin with ``prefix``."""
        knobs = self.settings
        seen, discriminator = seen.to(self.device), discriminator.to(self.device)
        generating = Optimizers.with_kernels(
            {"network": self.network}, knobs.learning_rate, knobs.kernel_rate, knobs.betas, spared=SPARED
        )
        discriminating = Optimizers({"discriminator": discriminator}, knobs.learning_rate, knobs.betas)
        self.modules[f"{prefix}discriminator"] = discriminator
        self.optimizers |= {f"{prefix}network": generating, f"{prefix}discriminator": discriminating}
        return Phase(first, rate, settings, seen, discriminator, generating, discriminating)

    def kind(self, step: int) -> int:
        """The number of the step's phase."""
        return int(step >= self.settings.steps)

    def pairs(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows for the identity, rows for the attributes, whether both are the same picture: (batch,) each."""
        draw, batch = seeding.make_generator(self.seed, "batch", step), self.settings.batch
        attributes = draw.integers(len(self.pictures), size=batch)
        # An offset of 1 .. M - 1 never gives the same picture.
        others = (attributes + draw.integers(1, len(self.pictures), size=batch)) % len(self.pictures)
        same = np.arange(batch) < round(self.settings.same_pairs * batch)
        return np.where(same, attributes, others), attributes, same

    def step(self, step: int) -> dict[str, float]:
        phase = self.phases[self.kind(step)]
        giver, rows, same = self.pairs(step)
        images = torch.from_numpy(to_float(self.pictures[rows])).to(self.device)
        identity = self._noised(self.identities[torch.from_numpy(giver)], phase.settings.noised, step)
        share = phase.rate * cooldown_share(step - phase.first, phase.settings.steps, self.settings.cooldown)
        values, drawn = self._update_generator(phase, images, identity, torch.from_numpy(same).to(self.device), share)
        if phase.settings.losses.adversarial:
            values["discriminator"] = self._update_discriminator(phase, images, drawn)
        return {name: value.item() for name, value in values.items()}

    def _noised(self, identity: Tensor, noised: float, step: int) -> Tensor:
        """The identity vectors (batch, D); the last ones, a share ``noised``, are moved towards random directions.

        Stage II gives vectors that are nobody's. A generator that saw people's alone draws stains for these. So it does
        if it is asked for a direction outside the span, which no picture gives.
        """
        count = round(noised * len(identity))
        draw = seeding.make_generator(self.seed, "noise", step)
        drawn = torch.from_numpy(draw.standard_normal((count, identity.shape[1]), dtype=np.float32)).to(identity)
        directions = self.network.projected(normalize(drawn))
        share = torch.from_numpy(draw.random((count, 1), dtype=np.float32)).to(identity)
        kept, moved = identity.tensor_split([len(identity) - count])
        return torch.cat([kept, normalize(moved.lerp(directions, share))])

    def _update_generator(
        self, phase: Phase, images: Tensor, identity: Tensor, same: Tensor, share: float
    ) -> tuple[dict[str, Tensor], Tensor]:
        maps = self.network.attributes(images)
        drawn = self.network.fuse(identity, maps)
        phase.discriminator.requires_grad_(False)
        weights = phase.settings.losses
        judged = {"adversarial": losses.adversarial(phase.scores(drawn))} if weights.adversarial else {}
        values = judged | {
            "attributes": losses.attributes(self.network.attributes(drawn), maps),
            "identity": losses.identity(self.identity(drawn), identity),
            "reconstruction": losses.reconstruction(drawn, images, same),
        }
        total = weigh_losses(values, weights)  # Eq. 18
        phase.generating.descend(total, share)
        phase.discriminator.requires_grad_(True)
        return values | {"total": total}, drawn.detach()

    def _update_discriminator(self, phase: Phase, images: Tensor, drawn: Tensor) -> Tensor:
        loss = losses.discrimination(phase.scores(images), phase.scores(drawn))
        phase.discriminating.descend(loss, phase.rate)
        return loss


def train(
    settings: DisentanglementSettings,
    job: TrainingJob,
    frozen: Mapping[str, nn.Module],
    alter: Alter | None = None,
    beside: Mapping[str, nn.Module] | None = None,
) -> None:
    """Train Stage I on the people of the job and write ``job.checkpoint`` (the averaged generator).

    ``frozen``: the backbones `needed`, by role. ``alter``: the method's Stage II, for one more column of the sample
    pictures. ``beside``: further modules for the checkpoint. If ``job.base`` is a checkpoint of the same training, or
    was adopted from weights/, its generator is taken and no training runs. Raises ParameterError if pictures and widths
    do not fit.
    """
    training = Training(job, DisentanglementSettings(**settings.model_dump(include=set(KNOBS))))
    identity, size = frozen["identity"], size_of(settings, frozen)
    pictures = decoded(training.archive, job.people, size)
    task = StageOneTask(settings, identity, pictures, encode(identity, pictures).to(device()), job.seed, frozen)
    network, digest = training.average(task.network), training.digest()
    if job.base is None or not _taken_over(job.base, digest, network):
        sources = decoded(training.archive, "validation", size, SAMPLES)
        training.fit(task, settings.updates, lambda: samples(network, identity, sources, alter))
    modules = {"network": network, **(beside or {})}
    training.save(modules, {"size": size, "training": digest}, needed(settings))


def _taken_over(base: Path, digest: str, network: nn.Module) -> bool:
    """Whether ``base`` comes from the training ``digest``, or from weights/. If so, its generator is loaded.

    The graph gives a base only if its parameters are the same. Weights of weights/ learned from other people.
    """
    saved = Saved(base)
    same = saved.facts.get("training") == digest or adoption.ADOPTED in saved.facts
    if same:
        saved.frozen("network", network)
    return same


def people(job: TrainingJob, identity: nn.Module, size: int) -> Tensor:
    """The mean identity vector of each person of the training, unit (M, D), in the order of the archive."""
    archive = FaceArchive(job.faces)
    vectors = encode(identity, decoded(archive, job.people, size))
    codes, _ = pd.factorize(archive.select(job.people)["identity"])
    sums = torch.zeros(codes.max() + 1, vectors.shape[1]).index_add_(0, torch.from_numpy(codes), vectors)
    return normalize(sums)


def decoded(archive: FaceArchive, part: str, size: int, limit: int | None = None) -> np.ndarray:
    """The pictures of a part (at most ``limit``), uint8 (M, size, size, 3).

    Raises ParameterError if the archive holds another size or fewer than two faces.
    """
    rows = archive.select(part).iloc[:limit]
    if archive.facts["size"] != size:
        raise ParameterError(
            f"{archive.path} holds pictures of {archive.facts['size']} pixels, but the widths are those of a network "
            f"for {size}. Give encoder_widths log2(pixels) - 1 entries and generator_widths one more."
        )
    if len(rows) < 2:
        raise ParameterError(
            f"{archive.path} holds {len(rows)} usable faces in part {part}; two are needed. Build a larger archive."
        )
    return archive.pictures(rows)


def encode(identity: nn.Module, pictures: np.ndarray) -> Tensor:
    """r_id of pictures, uint8 (M, S, S, 3) -> float32 (M, D) unit vectors on the CPU (Eq. 7)."""
    return apply_in_batches(identity, 256, pictures)


@torch.no_grad()
def samples(network: StageOne, identity: nn.Module, pictures: np.ndarray, alter: Alter | None) -> np.ndarray:
    """uint8 (rows, columns, 3): source | reconstruction | with the next face's identity | with its altered identity."""
    where = next(network.parameters()).device
    images = torch.from_numpy(to_float(pictures)).to(where)
    own = encode(identity, pictures)
    vectors = [own, own.roll(1, dims=0)]
    if alter is not None:
        vectors.append(torch.from_numpy(alter(own.numpy())).to(own.dtype))
    columns = [images, *(network(vector.to(where), images) for vector in vectors)]
    return arrange_columns(columns)
