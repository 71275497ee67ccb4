"""The training of iFADIT, from job to checkpoint."""

import copy
import logging

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.backbones.inversion.inverter import Inverter, start_from
from masquerade.core import seeding
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import to_float
from masquerade.methods._disentanglement.training import read_images
from masquerade.methods.ifadit import IfaditSettings
from masquerade.methods.ifadit.frozen import NEEDS, FrozenNetworks, TrainingImages, list_tied_backbones
from masquerade.methods.ifadit.losses import refine
from masquerade.methods.ifadit.network import Disentangler, Span, Transform, map_secrets
from masquerade.methods.ifadit.phases import Phase, PhaseOne, PhaseTwo, Rehearsal
from masquerade.training import checkpoints
from masquerade.training.checkpoints import Saved
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Phases, Training, arrange_columns, compute_digest

logger = logging.getLogger(__name__)

SAMPLES = 6  # rows of a sample image


def train(settings: IfaditSettings, job: TrainingJob) -> None:
    """Train on the people of the job and write ``job.checkpoint``.

    Raises ParameterError if images, encoder or mapping do not fit the backbones.
    """
    training, small = Training(job, settings), settings.small_scale
    archive = training.archive
    networks = FrozenNetworks(job.backbones, NEEDS, settings.region)
    size = networks.generator.size
    torch.manual_seed(seeding.derive_seed(job.seed, "disentangler"))
    disentangler = build_disentangler(settings, networks.mean.cpu(), networks.identity, networks.inversion)
    disentangler = disentangler.to(networks.device)
    torch.manual_seed(seeding.derive_seed(job.seed, "transform"))
    transform = Transform(settings, networks.generator.style_width).to(networks.device)
    first_phase = _first_phase_digest(settings, training)
    data = TrainingImages(networks, read_images(archive, job.people, size), masks=small.refined)
    span = Span(settings)
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
    metadata = {"first_phase": first_phase if settings.dual_phase else ""}
    training.save(modules, metadata, list_tied_backbones(settings))


def build_disentangler(settings: IfaditSettings, mean: Tensor, identity: nn.Module, inverter: Inverter) -> Disentangler:
    """A disentangler, started as ``small_scale.encoder_start`` says.

    Raises ParameterError if the encoder that it starts from has another architecture.
    """
    disentangler, small = Disentangler(settings, mean, inverter), settings.small_scale
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
