"""The training of iFADIT from job to checkpoint."""

import hashlib
import json
import logging

import numpy as np
import torch

from masquerade import lineage, seeding, training
from masquerade.disentanglement.task import decoded
from masquerade.errors import CheckpointError
from masquerade.identity_flow.network import Disentangler, Transform, secret_vectors, started
from masquerade.identity_flow.phases import Phase, PhaseOne, PhaseTwo, Training
from masquerade.identity_flow.refinement import refine
from masquerade.identity_flow.rehearsal import Rehearsal
from masquerade.identity_flow.settings import IdentityFlowSettings
from masquerade.identity_flow.world import NEEDS, TIED, Known, World
from masquerade.images import FaceArchive, to_float, to_uint8
from masquerade.methods import TrainingJob

logger = logging.getLogger(__name__)

SAMPLES = 6  # rows of a sample picture


def train(settings: IdentityFlowSettings, job: TrainingJob) -> None:
    """Train on the train split of ``job.faces`` and write ``job.checkpoint``.

    Raises ParameterError where pictures, encoder or mapping do not fit the backbones.
    """
    torch.set_num_threads(job.threads)
    archive = FaceArchive(job.faces)
    world = World(job.backbones, NEEDS, settings.region)
    size = world.generator.size
    torch.manual_seed(seeding.derive(job.seed, "disentangler"))
    disentangler = started(settings, world.mean.cpu(), world.identity, world.inversion).to(world.device)
    torch.manual_seed(seeding.derive(job.seed, "transform"))
    transform = Transform(settings, world.generator.style_width).to(world.device)
    learnt = _first_phase(settings, job, archive)
    known = Known(world, decoded(archive, "train", size), masks=settings.refined)
    if settings.flow.aligned:
        transform.align(known.identity)
    given = (settings, world, known, job.seed)
    phases: list[Phase] = [PhaseTwo(*given, disentangler, transform, joint=not settings.dual_phase)]
    if settings.dual_phase:
        phases.insert(0, Rehearsal(*given, transform))
        if not _taken_over(disentangler, learnt, job):
            phases.insert(0, PhaseOne(*given, disentangler))
    task = Training(phases)
    seen = decoded(archive, "validation", size, SAMPLES)

    def sample(step: int) -> None:
        if (step + 1) % settings.samples_every == 0 or step + 1 == task.steps:
            job.picture(f"samples_{step + 1:06d}", samples(world, disentangler, transform, seen, job.seed))

    training.fit(
        task,
        steps=task.steps,
        state=job.state,
        fingerprint=_digest([settings.model_dump(mode="json"), learnt, len(phases)]),
        log=job.log,
        after=sample,
    )
    facts = {name: lineage.md5(job.backbones[name]) for name in TIED}
    facts["first_phase"] = learnt if settings.dual_phase else ""
    training.save_checkpoint(job.checkpoint, {"disentangler": disentangler, "transform": transform}, facts)


def _first_phase(settings: IdentityFlowSettings, job: TrainingJob, archive: FaceArchive) -> str:
    """A digest of all that the first phase depends on: two trainings with the same one learn the same in it."""
    knobs = settings.model_dump(mode="json", include=FIRST_PHASE)
    return _digest([knobs, job.seed, archive.facts["checksum"], *(lineage.md5(job.backbones[name]) for name in NEEDS)])


FIRST_PHASE = {"encoder", "mapping", "phase_one", "betas", "cooldown", "region", "refined"}


def _taken_over(disentangler: Disentangler, learnt: str, job: TrainingJob) -> bool:
    """Take the first phase from the checkpoint of the full training, where it is the same one; whether it was."""
    if job.base is None:
        return False
    try:
        tensors, facts = training.load_checkpoint(job.base)
        if facts.get("first_phase") == learnt:
            training.load_into(disentangler, tensors.get("disentangler", {}), job.base)
            return True
    except CheckpointError as error:
        logger.warning("%s: the first phase is learnt again", error)
        return False
    logger.warning("%s learnt its first phase otherwise: it is learnt again", job.base)
    return False


def _digest(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@torch.no_grad()
def samples(
    world: World, disentangler: Disentangler, transform: Transform, pictures: np.ndarray, seed: int
) -> np.ndarray:
    """uint8 (rows, columns, 3): source | reconstructed | anonymized | recovered | recovered with another secret."""
    disentangler.eval()
    images = torch.from_numpy(to_float(pictures)).to(world.device)
    drawn = seeding.generator(seed, "samples").integers(0, 256, (2, 1, world.generator.style_width), dtype=np.uint8)
    right, wrong = (
        secret_vectors(world.generator, torch.from_numpy(part).to(world.device)).expand(len(images), -1)
        for part in drawn
    )

    def draw(identity: torch.Tensor, attributes: torch.Tensor) -> torch.Tensor:
        return world.generator.synthesize(disentangler.codes(identity, attributes)).clamp(-1, 1)

    identity, attributes = world.identity(images), disentangler.attributes(images)
    public = refine(draw(transform(identity, right), attributes), images, world.mask(images))
    corrected, again, mask = (
        transform.compensation(world.identity(public)), disentangler.attributes(public), world.mask(public)
    )  # fmt: skip
    back = [refine(draw(transform.inverse(corrected, key), again), public, mask) for key in (right, wrong)]
    columns = [images, draw(identity, attributes), public, *back]
    return np.concatenate([np.concatenate(list(to_uint8(column.cpu().numpy()))) for column in columns], axis=1)
