"""The parser as a network: pictures to labels, its training on known masks, and how good it is."""

import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade import seeding, training
from masquerade.backbones._dense import DenseTask, Views, device, pictures_of, resized
from masquerade.backbones.parsing import CLASSES, FACE
from masquerade.errors import ArchiveError, CheckpointError
from masquerade.images import FaceArchive
from masquerade.methods import TrainingJob
from masquerade.networks.bisenet import BiSeNet

if TYPE_CHECKING:
    from masquerade.backbones.parsing import Parsing

logger = logging.getLogger(__name__)

IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
"""Of RGB in [0, 1], as the published weights expect it."""


def mirrored_classes() -> Tensor:
    """int64 (19,): what each label is called in a mirrored picture. l_lip is the lower lip, and has no side."""
    sides = {"l_brow": "r_brow", "l_eye": "r_eye", "l_ear": "r_ear"}
    other = sides | {right: left for left, right in sides.items()}
    return torch.tensor([CLASSES.index(other.get(name, name)) for name in CLASSES])


class Parser(nn.Module):
    """(N, 3, H, W) in [-1, 1], any size -> logits (N, 19, H, W). Differentiable in the pictures."""

    def __init__(self, network: BiSeNet, input_size: int, mean: list[float], std: list[float]):
        super().__init__()
        self.network, self.input_size = network, input_size
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)

    def prepared(self, images: Tensor) -> Tensor:
        """Pictures as the network wants them: its size, and its normalisation of [0, 1]."""
        images = resized(images, (self.input_size, self.input_size))
        return ((images + 1) / 2 - self.mean) / self.std

    def forward(self, images: Tensor) -> Tensor:
        return resized(self.network.answer(self.prepared(images)), tuple(images.shape[-2:]))

    def labels(self, images: Tensor) -> Tensor:
        """uint8 (N, H, W), as the masks of an archive."""
        with torch.no_grad():
            return self(images).argmax(1).to(torch.uint8)

    def face(self, images: Tensor) -> Tensor:
        """(N, 1, H, W): the probability that a pixel belongs to the face region (`FACE`), for iFADIT's Eq. 11."""
        inside = [CLASSES.index(name) for name in FACE]
        return self(images).softmax(1)[:, inside].sum(1, keepdim=True)


def hard_cross_entropy(
    logits: Tensor, labels: Tensor, probability: float, share: float, weight: Tensor | None = None
) -> Tensor:
    """Mean cross-entropy of the hard pixels: those that give the true class less than ``probability``.

    Where fewer than ``share`` of the pixels are that hard, the hardest ``share`` of them. Online hard example mining
    as in the published training (OhemCELoss of face-parsing.PyTorch, after Shrivastava et al. 2016).
    """
    pixels = logits.permute(0, 2, 3, 1).flatten(0, 2)  # (N H W, C), as they lie in memory
    losses = functional.cross_entropy(pixels, labels.flatten(), weight=weight, reduction="none")
    hard = losses[losses > -math.log(probability)]
    least = int(share * losses.numel())
    return (hard if hard.numel() > least else losses.topk(max(least, 1)).values).mean()


class ParsingTask(DenseTask):
    """Yu et al. 2018, Eq. 2: the loss of the answer and, beside it, those of the two heads of the context path."""

    def __init__(self, parser: Parser, params: "Parsing.Params", pictures: np.ndarray, masks: np.ndarray, seed: int):
        super().__init__(parser.network, params, pictures, masks, seed)
        self.parser, self.partner = parser, mirrored_classes()
        shares = np.bincount(masks.ravel(), minlength=len(CLASSES)) / masks.size
        weight = np.maximum(shares, 1e-3) ** -params.balance
        self.weight = torch.from_numpy(weight / (weight * shares).sum()).float().to(self.device)

    def losses(self, views: Views, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        images = self.parser.prepared(views.images(pictures).to(self.device))
        masks = views.masks(targets, self.partner)
        if masks.shape[-2:] != images.shape[-2:]:
            masks = functional.interpolate(masks[:, None].float(), size=images.shape[-2:], mode="nearest")[:, 0].long()
        masks = masks.to(self.device)
        if self.params.auxiliary == 0:
            return {"loss": self._loss(self.network.answer(images), masks)}
        answer, *others = (self._loss(logits, masks) for logits in self.network(images))
        return {"loss": answer + self.params.auxiliary * sum(others), "answer": answer, "auxiliary": sum(others)}

    def _loss(self, logits: Tensor, masks: Tensor) -> Tensor:
        return hard_cross_entropy(logits, masks, self.params.ohem_probability, self.params.ohem_share, self.weight)


def train(params: "Parsing.Params", job: TrainingJob) -> None:
    """Train on the masks of the train split and write the checkpoint."""
    torch.set_num_threads(job.threads)
    archive = FaceArchive(job.faces)
    rows = archive.select("train")
    pictures, masks = pictures_of(archive, rows), known_masks(archive, rows)
    logger.info("training on %d pictures", len(pictures))
    seed = seeding.derive(job.seed, "parsing")
    torch.manual_seed(seeding.derive(seed, "weights"))
    facts = architecture(params)
    task = ParsingTask(build(facts).to(device()), params, pictures, masks, seed)
    fingerprint = json.dumps([params.model_dump(mode="json"), seed, archive.facts["checksum"]])
    training.fit(task, steps=params.steps, state=job.state, fingerprint=fingerprint, log=job.log)
    training.save_checkpoint(job.checkpoint, {"network": task.network}, facts)


def known_masks(archive: FaceArchive, rows) -> np.ndarray:
    """uint8 (N, H, W). Raises ArchiveError where a face of the archive has no mask."""
    try:
        return archive.masks(rows)
    except ArchiveError as error:
        raise ArchiveError(
            f"{archive.path}: not every face has a parsing mask, and a parser is trained and judged on known masks. "
            f"Drawn faces have them; for photographs give backbones.parsing.published. ({error})"
        ) from error


def architecture(params: "Parsing.Params") -> dict:
    """What the checkpoint says of its network and of how pictures are prepared for it."""
    return {"width": params.width, "stride": params.stride, "input_size": params.input_size, **IMAGENET}


def build(facts: Mapping) -> Parser:
    network = BiSeNet(len(CLASSES), facts["width"], facts["stride"])
    return Parser(network, facts["input_size"], facts["mean"], facts["std"])


def load(checkpoint: Path) -> Parser:
    """The parser of a checkpoint, frozen. Raises CheckpointError where it does not fit."""
    tensors, facts = training.load_checkpoint(checkpoint)
    try:
        parser, weights = build(facts), tensors["network"]
    except KeyError as error:
        raise CheckpointError(f"{checkpoint} is not a checkpoint of this backbone: it has no {error}.") from error
    training.load_into(parser.network, weights, checkpoint)
    return parser.eval().requires_grad_(False)


def quality(parser: Parser, job: TrainingJob) -> dict[str, float]:
    """`agreement` with the known masks of the validation split, at the pictures' own size."""
    torch.set_num_threads(job.threads)
    archive = FaceArchive(job.faces)
    parser = parser.to(device())
    counts = np.zeros((len(CLASSES), len(CLASSES)), np.int64)
    pictures = 0
    for faces in archive.batches(32, split="validation"):
        found = parser.labels(torch.from_numpy(faces.images).to(device())).cpu().numpy()
        counts += confusion(known_masks(archive, faces.index), found)
        pictures += len(faces)
    return agreement(counts) | {"pictures": float(pictures)}


def confusion(true: np.ndarray, found: np.ndarray) -> np.ndarray:
    """int64 (19, 19): pixels by true class (rows) and found class (columns)."""
    pairs = true.astype(np.int64).ravel() * len(CLASSES) + found.ravel()
    return np.bincount(pairs, minlength=len(CLASSES) ** 2).reshape(len(CLASSES), len(CLASSES))


def agreement(counts: np.ndarray) -> dict[str, float]:
    """Of a `confusion`: ``miou``, ``pixel_accuracy``, ``iou.face`` and ``iou.<class>`` of the classes present.

    IoU of a class: pixels where truth and answer agree on it, by pixels where either names it; ``miou`` is the mean
    over the classes that the truth shows. ``iou.face``: of the face region as a whole (`FACE`).
    """
    both = counts.diagonal()
    union = counts.sum(0) + counts.sum(1) - both
    present = counts.sum(1) > 0
    each = {f"iou.{name}": float(both[k] / union[k]) for k, name in enumerate(CLASSES) if present[k]}
    inside = np.isin(CLASSES, FACE)
    face = counts[inside][:, inside].sum() / (counts.sum() - counts[~inside][:, ~inside].sum())
    figures = {"miou": float(np.mean(list(each.values()))), "pixel_accuracy": float(both.sum() / counts.sum())}
    return figures | {"iou.face": float(face), **each}
