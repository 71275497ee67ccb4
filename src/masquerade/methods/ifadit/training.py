"""The training of iFADIT, from job to checkpoint: both phases (section 3.5), and the rehearsal between them (ours).

The rehearsal trains the flow on identity vectors alone. An update on images costs seven times as much. The flow can
learn most of its task (other identities under other secrets, and the way back) from vectors. In place of the vector of
an anonymized face, the rehearsal takes the vector of the flow, reduced to the directions in which faces vary, plus a
share of another person's vector. A further loss keeps the vectors of the flow among those that faces can have.
"""

import copy
import logging
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from masquerade.backbones.generator.reconstruction import compute_energy_distance
from masquerade.backbones.inversion.inverter import Inverter, start_from
from masquerade.backbones.recognition.training import Recognizer
from masquerade.core import seeding
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import to_float
from masquerade.methods._disentanglement.training import read_images
from masquerade.methods.ifadit import IfaditSettings, ImageWeights, losses
from masquerade.methods.ifadit.frozen import NEEDS, Batch, FrozenNetworks, TrainingImages, list_tied_backbones
from masquerade.methods.ifadit.losses import refine
from masquerade.methods.ifadit.network import Disentangler, Span, Transform, draw_secrets, map_secrets
from masquerade.networks.inputs import round_to_8_bits
from masquerade.training import checkpoints
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Optimizers, compute_cooldown
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Phases, Training, arrange_columns, compute_digest

REHEARSAL_NOISE = 0.5
"""Length of another person's vector that the rehearsal adds to a vector of length 1."""
REHEARSAL_FLOOR = 0.01
"""Share of the largest variance of identity vectors; a face shows half of a direction with this variance."""


class Phase:
    """The base class of the phases. The batch of a step depends only on the seed and its number in the phase."""

    name: str
    steps: int
    modules: dict[str, nn.Module]
    optimizers: dict[str, Optimizers]

    def __init__(self, settings: IfaditSettings, networks: FrozenNetworks, data: TrainingImages, seed: int):
        self.settings, self.networks, self.data, self.seed = settings, networks, data, seed

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        raise NotImplementedError

    def update(self, values: dict[str, Tensor], weights: dict[str, float], step: int) -> dict[str, float]:
        """Take one step on the sum of the losses, times their ``weights`` (1 for the others). Returns them by name."""
        total = cast("Tensor", sum(weights.get(name, 1.0) * value for name, value in values.items()))
        rate = compute_cooldown(step, self.steps, self.settings.small_scale.cooldown)
        self.optimizers["all"].descend(total, rate)
        return {f"{self.name}/{name}": value.item() for name, value in (values | {"total": total}).items()}


class ImagePhase(Phase):
    """A phase that draws images with a disentangler."""

    def __init__(self, settings: IfaditSettings, networks: FrozenNetworks, data: TrainingImages, seed: int,
                 disentangler: Disentangler):  # fmt: skip
        super().__init__(settings, networks, data, seed)
        self.disentangler = disentangler

    def draw(self, identity: Tensor, attributes: Tensor) -> Tensor:
        """R of Eq. 1: the image of an identity and attributes."""
        return self.networks.generator.synthesize(self.disentangler.codes(identity, attributes))

    def refine(self, generated: Tensor, background: Tensor, mask: Tensor | None) -> Tensor:
        """A changed face for the losses: with the background refined and rounded to 8 bits, if there is a mask."""
        return generated if mask is None else round_to_8_bits(refine(generated, background, mask))

    def reconstruction_loss(self, generated: Tensor, batch: Batch) -> Tensor:
        """L_P1, Eq. 14, of reconstructions X~."""
        weights = self.settings.phase_one
        quality = losses.visual_quality_loss(generated, batch.images, weights.structure, weights.pixels)  # Eq. 12
        return weights.quality * quality + self.semantic_loss(generated, batch.identity, batch.points)

    def semantic_loss(self, generated: Tensor, identity: Tensor, points: Tensor) -> Tensor:
        """L_Sem, Eq. 13."""
        return losses.semantic_loss(self.networks.identity(generated), identity) + losses.semantic_loss(
            self.networks.points(generated), points
        )

    def set_training(self, learns: bool) -> None:
        """Train E_Attr and M, or freeze them. An encoder that starts from the inversion keeps its statistics."""
        self.disentangler.requires_grad_(learns)
        self.disentangler.train(learns and self.settings.small_scale.encoder_start == "identity")


class PhaseOne(ImagePhase):
    """E_Attr and M learn to reconstruct: section 3.5.1."""

    name = "phase_one"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        phase_one = self.settings.phase_one
        self.steps = phase_one.steps
        self.modules = {"disentangler": self.disentangler}
        kernels = (4,) if self.settings.small_scale.muon else ()
        self.optimizers = {"all": Optimizers(self.modules, phase_one.learning_rate, self.settings.betas, kernels)}

    def step(self, step: int) -> dict[str, float]:
        self.set_training(True)
        phase_one, small = self.settings.phase_one, self.settings.small_scale
        draw = seeding.make_generator(self.seed, "phase one", step)
        batch = self.data.batch(draw.integers(0, len(self.data), phase_one.batch))
        count = round(small.swapped * phase_one.batch)  # the first images of the batch take another identity
        identity = batch.identity.clone()
        others = torch.from_numpy(draw.integers(0, len(self.data), count))
        identity[:count] = self.data.identity[others].to(identity)
        attributes = self.disentangler.attributes(batch.images)
        generated = self.draw(identity, attributes)  # (batch, 3, S, S)
        values = {}
        if count < phase_one.batch:
            values["reconstruction"] = self.reconstruction_loss(generated[count:], batch.select(slice(count, None)))
        if count:
            part = batch.select(slice(0, count))
            swapped = self.refine(generated[:count], part.images, part.mask)
            values["swapped"] = self.semantic_loss(swapped, identity[:count], part.points)
            if small.cycle:
                # Without the gradient of the image, or the network could hide the original in it.
                again = self.draw(part.identity, self.disentangler.attributes(swapped.detach()))
                values["cycle"] = self.reconstruction_loss(again, part)
        share = count / phase_one.batch
        weights = {"reconstruction": 1 - share, "swapped": share, "cycle": small.cycle * count / phase_one.batch}
        return self.update(values, weights, step)


class PhaseTwo(ImagePhase):
    """T and C learn to change an identity and to recover it: section 3.5.2. All other networks are frozen.

    With ``joint`` E_Attr and M learn too, by L_P1 + L_P2: Table 5, w/o DPT.
    """

    name = "phase_two"

    def __init__(self, settings: IfaditSettings, networks: FrozenNetworks, data: TrainingImages, seed: int,
                 disentangler: Disentangler, transform: Transform, joint: bool):  # fmt: skip
        super().__init__(settings, networks, data, seed, disentangler)
        phase_two = settings.phase_two
        self.transform, self.joint = transform, joint
        self.steps = phase_two.alone if joint else phase_two.steps
        self.modules = {"transform": transform}
        learning = self.modules | ({"disentangler": disentangler} if joint else {})
        kernels = (4,) if joint and settings.small_scale.muon else ()
        self.optimizers = {"all": Optimizers(learning, phase_two.learning_rate, settings.betas, kernels)}
        self.lpips = None
        if settings.lpips:
            from masquerade.networks.lpips import load_loss

            self.lpips = load_loss(networks.device, "methods.ifadit.params.phase_two.recovered.lpips and altered.lpips")

    def step(self, step: int) -> dict[str, float]:
        self.set_training(self.joint)
        draw = seeding.make_generator(self.seed, "phase two", step)
        count = self.settings.phase_two.batch
        batch = self.data.batch(draw_pairs(draw, len(self.data), count))
        secrets = draw_secrets(self.networks.generator, draw, count)
        attributes = self.disentangler.attributes(batch.images)
        values = self.compute_losses(batch, *secrets, attributes)
        if self.joint:
            values["reconstruction"] = self.reconstruction_loss(self.draw(batch.identity, attributes), batch)
        weights = {"compensation_distance": self.settings.small_scale.compensation_weight}
        return self.update(values, weights, step)  # Eq. 22

    def compute_losses(self, batch: Batch, first: Tensor, second: Tensor, attributes: Tensor) -> dict[str, Tensor]:
        """The terms of L_P2, Eq. 22, of a batch under two secrets."""
        settings, networks, transform = self.settings, self.networks, self.transform
        twice = batch.join(batch)
        changed = torch.cat([transform(batch.identity, first), transform(batch.identity, second)])  # z", (2 N, D)
        anonymized = self.draw(changed, torch.cat([attributes, attributes]))  # Eq. 9, (2 N, 3, S, S)
        anonymized = self.refine(anonymized, twice.images, twice.mask)
        vectors = networks.identity(anonymized)
        by_secret = vectors.chunk(2)
        values = {"anonymity": losses.anonymity_loss(vectors, twice.identity)}
        if settings.diversity_loss:
            values["diversity"] = losses.diversity_loss(*by_secret)
        # Eq. 10: from the image under the first secret, with that secret and with the other one
        corrected = transform.compensation(vectors)
        under_first = corrected[: len(first)]
        back = torch.cat([transform.inverse(under_first, first), transform.inverse(under_first, second)])
        public = anonymized[: len(first)]
        public_attributes = self.disentangler.attributes(public)
        recovered = self.draw(back, torch.cat([public_attributes, public_attributes]))
        recovered = self.refine(recovered, torch.cat([public, public]), twice.mask)
        right_again, wrong_again = networks.identity(recovered).chunk(2)
        values["recovery"] = losses.recovery_loss(right_again, wrong_again, batch.identity)
        if settings.compensation and settings.small_scale.compensation_weight:
            values["compensation_distance"] = losses.compensation_loss(corrected, changed)
        if settings.image_loss:
            right, wrong = recovered.chunk(2)
            values["image"] = self.sum_image_losses(anonymized, right, wrong, batch)
        return values

    def sum_image_losses(self, anonymized: Tensor, right: Tensor, wrong: Tensor, batch: Batch) -> Tensor:
        """L_Img, Eq. 20, of faces anonymized (2 N, ...), recovered with the right secret, and with a wrong one."""
        phase_settings, twice = self.settings.phase_two, batch.join(batch)
        value = self.image_loss(right, batch, phase_settings.recovered)
        if self.settings.small_scale.pooled_image_terms:
            return value + self.image_loss(torch.cat([anonymized, wrong]), twice.join(batch), phase_settings.altered)
        value = value + self.image_loss(anonymized, twice, phase_settings.altered)
        return value + self.image_loss(wrong, batch, phase_settings.altered)

    def image_loss(self, generated: Tensor, batch: Batch, weights: ImageWeights) -> Tensor:
        """L_Img, Eq. 20, of drawn images, with the weights of Eq. 21."""
        value = weights.pixels * (generated - batch.images).abs().mean()
        if weights.lpips:
            assert self.lpips is not None
            value = value + weights.lpips * self.lpips(generated, batch.images).mean()
        if weights.landmarks:
            value = value + weights.landmarks * losses.semantic_loss(self.networks.points(generated), batch.points)
        if weights.parsing:
            with torch.no_grad():
                target = self.networks.parsing(batch.images)
            squared = self.settings.small_scale.squared_parsing
            value = value + weights.parsing * losses.parsing_loss(self.networks.parsing(generated), target, squared)
        return value


class Rehearsal(Phase):
    """T and C on identity vectors (M, D) of the training images, by the terms of Eq. 22 except L_Img."""

    name = "rehearsal"

    def __init__(self, settings: IfaditSettings, networks: FrozenNetworks, data: TrainingImages, seed: int,
                 transform: Transform):  # fmt: skip
        super().__init__(settings, networks, data, seed)
        rehearsal = settings.small_scale.rehearsal
        self.steps, self.transform = rehearsal.steps, transform
        self.modules = {"transform": transform}
        self.optimizers = {"all": Optimizers(self.modules, rehearsal.learning_rate, settings.betas)}
        self.visible = project_to_visible(data.identity, REHEARSAL_FLOOR).to(networks.device)

    def step(self, step: int) -> dict[str, float]:
        rehearsal, transform = self.settings.small_scale.rehearsal, self.transform
        draw = seeding.make_generator(self.seed, "rehearsal", step)
        identity = self.read_identities(draw_pairs(draw, len(self.data), rehearsal.batch))
        first, second = draw_secrets(self.networks.generator, draw, rehearsal.batch)
        hidden = torch.cat([transform(identity, first), transform(identity, second)])
        shown = normalize(hidden @ self.visible)
        others = self.read_identities(draw.integers(0, len(self.data), len(shown)))
        corrected = transform.compensation(normalize(shown + REHEARSAL_NOISE * others))
        under_first = corrected[: len(first)]
        back = transform.inverse(under_first, first), transform.inverse(under_first, second)
        values = {
            "anonymity": losses.anonymity_loss(shown, torch.cat([identity, identity])),
            "recovery": losses.recovery_loss(*back, identity),
            "spread": compute_energy_distance(hidden, others),
        }
        if self.settings.compensation:
            values["compensation"] = losses.compensation_loss(corrected, hidden)
        if self.settings.diversity_loss:
            values["diversity"] = losses.diversity_loss(*shown.chunk(2))
        return self.update(values, {"spread": rehearsal.spread}, step)

    def read_identities(self, rows: np.ndarray) -> Tensor:
        """Identity vectors (N, D) of training images."""
        return self.data.identity[torch.from_numpy(rows)].to(self.networks.device)


def draw_pairs(draw: np.random.Generator, faces: int, count: int) -> np.ndarray:
    """Rows of a batch, int (count,): 2 p and 2 p + 1 are two images, X_i and X_j of Eq. 17, with the same secrets."""
    first = draw.integers(0, faces, count // 2)
    second = (first + draw.integers(1, faces, len(first))) % faces  # never the same image
    return np.stack([first, second], axis=1).reshape(-1)


def project_to_visible(identity: Tensor, floor: float) -> Tensor:
    """The map (D, D) from an identity vector to the part that faces show.

    It scales each principal direction of ``identity`` (M, D) by v / (v + f). v: the mean square in that direction;
    f: ``floor`` of the largest v. Faces cannot show a direction in which they do not vary.
    """
    moments = identity.double().cpu().T @ identity.double().cpu() / len(identity)
    values, directions = torch.linalg.eigh(moments)
    values = values.clamp(min=0)
    return (directions * (values / (values + floor * values.max())) @ directions.T).float()


logger = logging.getLogger(__name__)

SAMPLES = 6  # rows of a sample image


def train(settings: IfaditSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint``.

    Raises ParameterError if images, encoder or mapping do not fit the backbones.
    """
    training, small = Training(job, settings), settings.small_scale
    archive = training.archive
    networks = FrozenNetworks(job.backbones, NEEDS, settings.region)
    size, identity_width = networks.generator.size, networks.identity.width
    torch.manual_seed(seeding.derive_seed(job.seed, "disentangler"))
    disentangler = build_disentangler(settings, networks.mean.cpu(), networks.identity, networks.inversion)
    disentangler = disentangler.to(networks.device)
    torch.manual_seed(seeding.derive_seed(job.seed, "transform"))
    transform = Transform(settings, networks.generator.style_width, identity_width).to(networks.device)
    first_phase = _first_phase_digest(settings, training)
    data = TrainingImages(networks, read_images(archive, job.people, size), masks=small.refined)
    span = Span(settings, identity_width)
    if small.span:
        data.identity = span.fit(data.identity)
        networks.use_span(span)
    if small.flow_aligned:
        transform.align(data.identity)
    shared = (settings, networks, data, job.seed)
    phases: list[Phase] = [PhaseTwo(*shared, disentangler, transform, joint=not settings.dual_phase)]
    if settings.dual_phase:
        phases.insert(0, Rehearsal(*shared, transform))
        if not _load_first_phase(disentangler, first_phase, job):
            phases.insert(0, PhaseOne(*shared, disentangler))
    task = Phases({phase.name: (phase.steps, phase) for phase in phases})
    sources = read_images(archive, "validation", size, SAMPLES)
    training.fit(
        task, task.steps, lambda: draw_samples(networks, disentangler, transform, sources, job.seed), list(task.phases)
    )
    modules = {"disentangler": disentangler, "transform": transform} | ({"span": span} if small.span else {})
    facts = {"first_phase": first_phase if settings.dual_phase else ""}
    training.save(modules, facts, list_tied_backbones(settings))


def build_disentangler(
    settings: IfaditSettings, mean: Tensor, identity: Recognizer, inverter: Inverter
) -> Disentangler:
    """A disentangler, started as ``small_scale.encoder_start`` says.

    Raises ParameterError if the encoder that it starts from has another architecture.
    """
    disentangler, small = Disentangler(settings, mean, inverter, identity.width), settings.small_scale
    if settings.encoder.kind == "inversion":
        _start_at_attributes(disentangler)
        return disentangler
    if small.linear != (inverter.linear is not None and small.encoder_start == "inversion"):
        raise ParameterError(
            "params.yaml: methods.ifadit.params.small_scale.linear must be backbones.inversion.small_scale.linear if "
            "encoder_start is 'inversion', and false if it is 'identity'."
        )
    if small.encoder_start == "identity":
        start_from(identity, disentangler.encoder)
        return disentangler
    source, target = inverter.encoder.state_dict(), disentangler.encoder.state_dict()
    shapes, needed = ({key: value.shape for key, value in state.items()} for state in (source, target))
    if type(inverter.encoder) is not type(disentangler.encoder) or shapes != needed:
        raise ParameterError(
            "params.yaml: methods.ifadit.params.small_scale.encoder_start is 'inversion', but kind, input_size, widths "
            "and units are not those of backbones.inversion. Copy them from there, or set it to 'identity'."
        )
    disentangler.encoder.load_state_dict(copy.deepcopy(source))
    if disentangler.linear is not None and inverter.linear is not None:
        disentangler.linear.load_state_dict(inverter.linear.state_dict())
    _start_at_attributes(disentangler)
    return disentangler


def _start_at_attributes(disentangler: Disentangler) -> None:
    try:
        disentangler.mapping.start_at_attributes()
    except ValueError as error:
        raise ParameterError(f"params.yaml: methods.ifadit.params.mapping: {error}.") from error


def _first_phase_digest(settings: IfaditSettings, training: Training) -> str:
    """A digest of all that the first phase depends on: two trainings with equal digests have the same first phase."""
    values = settings.model_dump(mode="json", include=FIRST_PHASE, exclude_none=True)
    faces = training.archive.digest(training.job.people)
    return compute_digest(values, training.seed, faces, training.hash_backbones(*NEEDS))


FIRST_PHASE = {
    **dict.fromkeys(("encoder", "mapping", "phase_one", "betas", "region", "arithmetic"), True),
    "small_scale": {
        "encoder_start", "linear", "span", "mapping_per_layer", "muon", "cooldown", "swapped", "cycle", "refined",
    },
}  # fmt: skip
"""The parameters that the first phase depends on."""


def _load_first_phase(disentangler: Disentangler, first_phase: str, job: TrainingJob) -> bool:
    """Load the first phase from the checkpoint ``job.base`` if its digest is the same. Returns whether it did."""
    if job.base is None:
        return False
    try:
        saved = Saved(job.base)
        if saved.metadata.get("first_phase") == first_phase:
            checkpoints.load_into(disentangler, saved.tensors.get("disentangler", {}), job.base)
            return True
    except CheckpointError as error:
        logger.warning("%s The first phase is trained again.", error)
        return False
    logger.warning("%s has another first phase. The first phase is trained again.", job.base)
    return False


@torch.no_grad()
def draw_samples(
    networks: FrozenNetworks, disentangler: Disentangler, transform: Transform, images: np.ndarray, seed: int
) -> np.ndarray:
    """uint8 (rows, columns, 3): source | reconstructed | anonymized | recovered | recovered with another secret."""
    disentangler.eval()
    originals = torch.from_numpy(to_float(images)).to(networks.device)
    draw = seeding.make_generator(seed, "samples")
    pseudorandom = draw.integers(0, 256, (2, 1, networks.generator.style_width), dtype=np.uint8)
    right, wrong = (
        map_secrets(networks.generator, torch.from_numpy(part).to(networks.device)).expand(len(originals), -1)
        for part in pseudorandom
    )

    def generate(identity: Tensor, attributes: Tensor) -> Tensor:
        return networks.generator.synthesize(disentangler.codes(identity, attributes)).clamp(-1, 1)

    identity, attributes = networks.identity(originals), disentangler.attributes(originals)
    anonymized = refine(generate(transform(identity, right), attributes), originals, networks.mask(originals))
    corrected = transform.compensation(networks.identity(anonymized))
    again, mask = disentangler.attributes(anonymized), networks.mask(anonymized)
    recovered = [refine(generate(transform.inverse(corrected, key), again), anonymized, mask) for key in (right, wrong)]
    return arrange_columns([originals, generate(identity, attributes), anonymized, *recovered])
