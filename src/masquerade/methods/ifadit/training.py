"""The training of iFADIT, from job to checkpoint."""

import logging

import numpy as np
import torch

from masquerade.core import seeding
from masquerade.core.errors import CheckpointError
from masquerade.core.images import to_float
from masquerade.methods._disentanglement.training import decoded
from masquerade.methods.ifadit.frozen import NEEDS, FrozenNetworks, TrainingPictures, tied
from masquerade.methods.ifadit.network import Disentangler, Span, Transform, secret_vectors, started
from masquerade.methods.ifadit.phases import Phase, PhaseOne, PhaseTwo
from masquerade.methods.ifadit.refinement import refine
from masquerade.methods.ifadit.rehearsal import Rehearsal
from masquerade.methods.ifadit.settings import IfaditSettings
from masquerade.training import checkpoints
from masquerade.training.checkpoints import Saved
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Phases, Training, arrange_columns, compute_digest

logger = logging.getLogger(__name__)

SAMPLES = 6  # rows of a sample picture


def train(settings: IfaditSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint``.

    Raises ParameterError if pictures, encoder or mapping do not fit the backbones.
    """
    training = Training(job, settings)
    archive = training.archive
    networks = FrozenNetworks(job.backbones, NEEDS, settings.region)
    size = networks.generator.size
    torch.manual_seed(seeding.derive_seed(job.seed, "disentangler"))
    disentangler = started(settings, networks.mean.cpu(), networks.identity, networks.inversion).to(networks.device)
    torch.manual_seed(seeding.derive_seed(job.seed, "transform"))
    transform = Transform(settings, networks.generator.style_width).to(networks.device)
    first_phase = _first_phase_digest(settings, training)
    known = TrainingPictures(networks, decoded(archive, job.people, size), masks=settings.refined)
    span = Span(settings)
    if settings.span:
        known.identity = span.fit(known.identity)
        networks.spanned(span)
    if settings.flow.aligned:
        transform.align(known.identity)
    shared = (settings, networks, known, job.seed)
    phases: list[Phase] = [PhaseTwo(*shared, disentangler, transform, joint=not settings.dual_phase)]
    if settings.dual_phase:
        phases.insert(0, Rehearsal(*shared, transform))
        if not _taken_over(disentangler, first_phase, job):
            phases.insert(0, PhaseOne(*shared, disentangler))
    task = Phases({phase.name: (phase.steps, phase) for phase in phases})
    sources = decoded(archive, "validation", size, SAMPLES)
    training.fit(
        task, task.steps, lambda: samples(networks, disentangler, transform, sources, job.seed), list(task.phases)
    )
    modules = {"disentangler": disentangler, "transform": transform} | ({"span": span} if settings.span else {})
    training.save(modules, {"first_phase": first_phase if settings.dual_phase else ""}, tied(settings))


def _first_phase_digest(settings: IfaditSettings, training: Training) -> str:
    """A digest of all that the first phase depends on: two trainings with equal digests have the same first phase."""
    knobs = settings.model_dump(mode="json", include=FIRST_PHASE, exclude_none=True)
    faces = training.archive.digest(training.job.people)
    return compute_digest(knobs, training.seed, faces, training.hash_backbones(*NEEDS))


FIRST_PHASE = {
    "encoder", "span", "mapping", "mapping_shared", "phase_one", "betas", "cooldown", "region", "refined", "arithmetic",
}  # fmt: skip


def _taken_over(disentangler: Disentangler, first_phase: str, job: TrainingJob) -> bool:
    """Take the first phase from the checkpoint ``job.base`` if its digest is the same. Returns whether it does."""
    if job.base is None:
        return False
    try:
        saved = Saved(job.base)
        if saved.facts.get("first_phase") == first_phase:
            checkpoints.load_into(disentangler, saved.tensors.get("disentangler", {}), job.base)
            return True
    except CheckpointError as error:
        logger.warning("%s The first phase is trained again.", error)
        return False
    logger.warning("%s has another first phase. The first phase is trained again.", job.base)
    return False


@torch.no_grad()
def samples(
    networks: FrozenNetworks, disentangler: Disentangler, transform: Transform, pictures: np.ndarray, seed: int
) -> np.ndarray:
    """uint8 (rows, columns, 3): source | reconstructed | anonymized | recovered | recovered with another secret."""
    disentangler.eval()
    images = torch.from_numpy(to_float(pictures)).to(networks.device)
    drawn = seeding.make_generator(seed, "samples").integers(
        0, 256, (2, 1, networks.generator.style_width), dtype=np.uint8
    )
    right, wrong = (
        secret_vectors(networks.generator, torch.from_numpy(part).to(networks.device)).expand(len(images), -1)
        for part in drawn
    )

    def draw(identity: torch.Tensor, attributes: torch.Tensor) -> torch.Tensor:
        return networks.generator.synthesize(disentangler.codes(identity, attributes)).clamp(-1, 1)

    identity, attributes = networks.identity(images), disentangler.attributes(images)
    public = refine(draw(transform(identity, right), attributes), images, networks.mask(images))
    corrected, again, mask = (
        transform.compensation(networks.identity(public)), disentangler.attributes(public), networks.mask(public)
    )  # fmt: skip
    back = [refine(draw(transform.inverse(corrected, key), again), public, mask) for key in (right, wrong)]
    columns = [images, draw(identity, attributes), public, *back]
    return arrange_columns(columns)
