"""The training of iFADIT, from job to checkpoint."""

import hashlib
import json
import logging

import numpy as np
import torch

from masquerade.core import fingerprints, seeding
from masquerade.core.errors import CheckpointError
from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.methods._disentanglement.training import decoded
from masquerade.methods.ifadit.frozen import NEEDS, TIED, FrozenNetworks, TrainingPictures
from masquerade.methods.ifadit.network import Disentangler, Span, Transform, drawn_secrets, secret_vectors, started
from masquerade.methods.ifadit.phases import Phase, PhaseOne, PhaseTwo, Training
from masquerade.methods.ifadit.refinement import refine
from masquerade.methods.ifadit.rehearsal import Rehearsal
from masquerade.methods.ifadit.settings import IfaditSettings
from masquerade.training import checkpoints, loop
from masquerade.training.job import TrainingJob

logger = logging.getLogger(__name__)

SAMPLES = 6  # rows of a sample picture


def train(settings: IfaditSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint``.

    Raises ParameterError if pictures, encoder or mapping do not fit the backbones.
    """
    torch.set_num_threads(job.threads)
    archive = FaceArchive(job.faces)
    networks = FrozenNetworks(job.backbones, NEEDS, settings.region)
    size = networks.generator.size
    torch.manual_seed(seeding.derive(job.seed, "disentangler"))
    disentangler = started(settings, networks.mean.cpu(), networks.identity, networks.inversion).to(networks.device)
    torch.manual_seed(seeding.derive(job.seed, "transform"))
    transform = Transform(settings, networks.generator.style_width).to(networks.device)
    first_phase = _first_phase_digest(settings, job, archive)
    known = TrainingPictures(networks, decoded(archive, job.people, size), masks=settings.refined)
    span = Span(settings)
    if settings.span:
        known.identity = span.fit(known.identity)
        networks.spanned(span)
    if settings.flow.aligned:
        transform.align(known.identity)
    if settings.compensation and settings.compensation_form == "scaling":
        vectors = known.identity[: len(known) // 2 * 2].to(networks.device)
        draw = seeding.generator(job.seed, "compensation")
        transform.start_scaling(vectors, drawn_secrets(networks.generator, draw, len(vectors))[0])
    shared = (settings, networks, known, job.seed)
    phases: list[Phase] = [PhaseTwo(*shared, disentangler, transform, joint=not settings.dual_phase)]
    if settings.dual_phase:
        phases.insert(0, Rehearsal(*shared, transform))
        if not _taken_over(disentangler, first_phase, job):
            phases.insert(0, PhaseOne(*shared, disentangler))
    task = Training(phases)
    sources = decoded(archive, "validation", size, SAMPLES)

    def sample(step: int) -> None:
        if (step + 1) % settings.samples_every == 0 or step + 1 == task.steps:
            job.picture(f"samples_{step + 1:06d}", samples(networks, disentangler, transform, sources, job.seed))

    loop.fit(
        task,
        steps=task.steps,
        state=job.state,
        fingerprint=_digest([settings.model_dump(mode="json"), first_phase, len(phases)]),
        log=job.log,
        after=sample,
    )
    facts = {name: fingerprints.md5(job.backbones[name]) for name in TIED}
    facts["first_phase"] = first_phase if settings.dual_phase else ""
    modules = {"disentangler": disentangler, "transform": transform} | ({"span": span} if settings.span else {})
    checkpoints.save_checkpoint(job.checkpoint, modules, facts)


def _first_phase_digest(settings: IfaditSettings, job: TrainingJob, archive: FaceArchive) -> str:
    """A digest of all that the first phase depends on: two trainings with equal digests have the same first phase."""
    knobs = settings.model_dump(mode="json", include=FIRST_PHASE)
    return _digest(
        [knobs, job.seed, archive.digest(job.people), *(fingerprints.md5(job.backbones[name]) for name in NEEDS)]
    )


FIRST_PHASE = {"encoder", "span", "mapping", "mapping_shared", "phase_one", "betas", "cooldown", "region", "refined"}


def _taken_over(disentangler: Disentangler, first_phase: str, job: TrainingJob) -> bool:
    """Take the first phase from the checkpoint ``job.base`` if its digest is the same. Returns whether it does."""
    if job.base is None:
        return False
    try:
        tensors, facts = checkpoints.load_checkpoint(job.base)
        if facts.get("first_phase") == first_phase:
            checkpoints.load_into(disentangler, tensors.get("disentangler", {}), job.base)
            return True
    except CheckpointError as error:
        logger.warning("%s The first phase is trained again.", error)
        return False
    logger.warning("%s has another first phase. The first phase is trained again.", job.base)
    return False


def _digest(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@torch.no_grad()
def samples(
    networks: FrozenNetworks, disentangler: Disentangler, transform: Transform, pictures: np.ndarray, seed: int
) -> np.ndarray:
    """uint8 (rows, columns, 3): source | reconstructed | anonymized | recovered | recovered with another secret."""
    disentangler.eval()
    images = torch.from_numpy(to_float(pictures)).to(networks.device)
    drawn = seeding.generator(seed, "samples").integers(0, 256, (2, 1, networks.generator.style_width), dtype=np.uint8)
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
    return np.concatenate([np.concatenate(list(to_uint8(column.cpu().numpy()))) for column in columns], axis=1)
