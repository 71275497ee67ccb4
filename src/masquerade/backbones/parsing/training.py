"""The face parser: from images to labels, its training, and its quality."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones._views import Views
from masquerade.backbones.parsing import ParsingSettings
from masquerade.core.annotations import CLASSES, FACE
from masquerade.core.errors import ArchiveError
from masquerade.core.images import FaceArchive
from masquerade.networks import deterministic
from masquerade.networks.bisenet import BiSeNet
from masquerade.networks.inputs import IMAGENET_MEAN, IMAGENET_STD, apply_in_batches, place
from masquerade.training import checkpoints, weight_files
from masquerade.training.batches import BatchTask
from masquerade.training.checkpoints import Saved
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

logger = logging.getLogger(__name__)


def map_mirrored_classes() -> Tensor:
    """int64 (19,): label -> its label in a mirrored image. l_lip is the lower lip and has no side."""
    sides = {"l_brow": "r_brow", "l_eye": "r_eye", "l_ear": "r_ear"}
    other = sides | {right: left for left, right in sides.items()}
    return torch.tensor([CLASSES.index(other.get(name, name)) for name in CLASSES])


class Parser(nn.Module):
    """(N, 3, H, W) in [-1, 1], any size -> logits (N, 19, H, W). Differentiable in the images."""

    mean: Tensor
    std: Tensor

    def __init__(self, network: BiSeNet, input_size: int, mean: list[float], std: list[float]):
        super().__init__()
        self.network, self.input_size = network, input_size
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)

    def prepared(self, images: Tensor) -> Tensor:
        """The network's input: images at its size, in [0, 1] and normalized."""
        images = deterministic.resize(images, (self.input_size, self.input_size))
        return ((images + 1) / 2 - self.mean) / self.std

    def forward(self, images: Tensor) -> Tensor:
        return deterministic.resize(self.network.answer(self.prepared(images)), tuple(images.shape[-2:]))

    def labels(self, images: Tensor) -> Tensor:
        """The most probable labels, uint8 (N, H, W), as in the masks of an archive."""
        with torch.no_grad():
            return self(images).argmax(1).to(torch.uint8)

    def face(self, images: Tensor) -> Tensor:
        """(N, 1, H, W): the probability that a pixel belongs to the face region (`FACE`), for iFADIT's Eq. 11."""
        inside = [CLASSES.index(name) for name in FACE]
        return self(images).softmax(1)[:, inside].sum(1, keepdim=True)


def compute_hard_cross_entropy(
    logits: Tensor, labels: Tensor, probability: float, share: float, weight: Tensor | None = None
) -> Tensor:
    """Mean cross-entropy of the hard pixels, whose true class has a lower probability than ``probability``.

    If fewer than ``share`` of the pixels are hard, it takes the hardest ``share`` of the pixels. This is online hard
    example mining, as in the published training (OhemCELoss of face-parsing.PyTorch, after Shrivastava et al. 2016).
    """
    pixels = logits.permute(0, 2, 3, 1).flatten(0, 2)  # (N H W, C), in the order of the memory
    losses = functional.cross_entropy(pixels, labels.flatten(), weight=weight, reduction="none")
    hard = losses[losses > -math.log(probability)]
    least = int(share * losses.numel())
    return (hard if hard.numel() > least else losses.topk(max(least, 1)).values).mean()


class ParsingTask(BatchTask):
    """Yu et al. 2018, Eq. 2: the loss of the output plus the losses of the two heads of the context path."""

    stream = "views"

    def __init__(self, parser: Parser, params: ParsingSettings, pictures: np.ndarray, masks: np.ndarray, seed: int):
        super().__init__({"network": parser.network}, params, pictures, masks, seed)
        self.parser, self.partner = parser, map_mirrored_classes()
        shares = np.bincount(masks.ravel(), minlength=len(CLASSES)) / masks.size
        weight = np.maximum(shares, 1e-3) ** -params.small_scale.balance
        self.weight = torch.from_numpy(weight / (weight * shares).sum()).float().to(self.device)

    def losses(self, draw: np.random.Generator, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        views = Views.sampled(draw, len(pictures))
        images = self.parser.prepared(views.images(pictures).to(self.device))
        masks = views.masks(targets, self.partner)
        if masks.shape[-2:] != images.shape[-2:]:
            masks = functional.interpolate(masks[:, None].float(), size=images.shape[-2:], mode="nearest")[:, 0].long()
        masks = masks.to(self.device)
        if self.params.auxiliary == 0:
            return {"loss": self._loss(self.parser.network.answer(images), masks)}
        answer, *auxiliary = (self._loss(logits, masks) for logits in self.parser.network(images))
        loss = answer + self.params.auxiliary * sum(auxiliary)
        return {"loss": loss, "answer": answer, "auxiliary": cast("Tensor", sum(auxiliary))}

    def _loss(self, logits: Tensor, masks: Tensor) -> Tensor:
        return compute_hard_cross_entropy(
            logits, masks, self.params.ohem_probability, self.params.ohem_share, self.weight
        )


def train(params: ParsingSettings, job: TrainingJob) -> None:
    """Train on the masks of the job's people and write the checkpoint."""
    training = Training(job, params, "parsing")
    archive = training.archive
    rows = archive.select(job.people)
    pictures, masks = archive.pictures(rows), read_masks(archive, rows)
    logger.info("training on %d images", len(pictures))
    training.start()
    metadata = describe_architecture(params)
    task = ParsingTask(place(build(metadata)), params, pictures, masks, training.seed)
    training.fit(task, params.steps)
    training.save(task.modules, metadata)


def convert_official(params: ParsingSettings, published: Path, job: TrainingJob) -> None:
    """Write the checkpoint of the job from a file with the layout of 79999_iter.pth and the sizes of ``params``.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    parser = build(describe_architecture(params))
    weight_files.load_file(parser.network, published)
    checkpoints.save_checkpoint(job.checkpoint, {"network": parser.network}, describe_architecture(params))


def read_masks(archive: FaceArchive, rows) -> np.ndarray:
    """The masks, uint8 (N, H, W). Raises ArchiveError if a face of the archive has none."""
    try:
        return archive.masks(rows)
    except ArchiveError as error:
        raise ArchiveError(
            f"{archive.path}: not every face has a parsing mask, which the parser needs for its training and its "
            f"quality. Rendered faces have masks; for photographs give backbones.parsing.published. ({error})"
        ) from error


def describe_architecture(params: ParsingSettings) -> dict:
    """The metadata of a checkpoint: the size of the network and the normalization of its input."""
    metadata = {"width": params.width, "stride": params.stride, "input_size": params.input_size}
    return {**metadata, "mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD)}  # as the published weights expect


def build(metadata: Mapping) -> Parser:
    """The parser of the metadata of a checkpoint, with random weights."""
    network = BiSeNet(len(CLASSES), metadata["width"], metadata["stride"])
    return Parser(network, metadata["input_size"], metadata["mean"], metadata["std"])


def load(checkpoint: Path) -> Parser:
    """The parser of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    saved = Saved(checkpoint)
    module = build(saved.metadata)
    saved.frozen("network", module.network)
    return module.eval().requires_grad_(False)


def quality(parser: Parser, job: TrainingJob) -> dict[str, float]:
    """`measure_agreement` with the masks of the validation split, at the size of the images."""
    archive = FaceArchive(job.faces)
    counts = np.zeros((len(CLASSES), len(CLASSES)), np.int64)
    pictures = 0
    for faces in archive.batches(32, part="validation"):
        predicted = apply_in_batches(parser.labels, len(faces), faces.images).numpy()
        counts += count_confusion(read_masks(archive, faces.index), predicted)
        pictures += len(faces)
    return measure_agreement(counts) | {"pictures": float(pictures)}


def count_confusion(true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """int64 (19, 19): number of pixels by true class (rows) and predicted class (columns)."""
    pairs = true.astype(np.int64).ravel() * len(CLASSES) + predicted.ravel()
    return np.bincount(pairs, minlength=len(CLASSES) ** 2).reshape(len(CLASSES), len(CLASSES))


def measure_agreement(counts: np.ndarray) -> dict[str, float]:
    """Of a `count_confusion`: ``miou``, ``pixel_accuracy``, ``iou.face`` and ``iou.<class>`` of the classes that occur.

    IoU of a class: number of pixels with that class in truth and prediction, over the number with it in either one.
    ``miou`` is the mean over the classes that occur in the truth. ``iou.face``: of the face region as a whole (`FACE`).
    """
    correct = counts.diagonal()
    union = counts.sum(0) + counts.sum(1) - correct
    present = counts.sum(1) > 0
    each = {f"iou.{name}": float(correct[k] / union[k]) for k, name in enumerate(CLASSES) if present[k]}
    in_face = np.isin(CLASSES, FACE)
    face = counts[in_face][:, in_face].sum() / (counts.sum() - counts[~in_face][:, ~in_face].sum())
    figures = {"miou": float(np.mean(list(each.values()))), "pixel_accuracy": float(correct.sum() / counts.sum())}
    return figures | {"iou.face": float(face), **each}
