"""The classifier of attributes: its training on annotated faces, and its quality."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.attribute_classifier import AttributeClassifierSettings
from masquerade.backbones.recognition.training import augment
from masquerade.core.annotations import ANNOTATION, ATTRIBUTES
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive
from masquerade.networks import deterministic
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.training.batches import BatchTask
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Optimizers, compute_cooldown
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

logger = logging.getLogger(__name__)

ARCHITECTURE = ("input_size", "widths", "units", "dropout")
"""The parameters of the network that a checkpoint states, beside its `CROP`."""
CROP = (0.125, 0.1875, 0.875, 0.9375)
"""The crop of an aligned image that the network sees: left, top, right, bottom as shares of the side (ours)."""
COOLDOWN = 0.5
"""Last share of the steps, over which the learning rate falls to a fiftieth (ours)."""
BALANCE = 1.0
"""Weight of a label = (share of the images with that label) ** -BALANCE, mean 1 over the images. With 1, the
images with an attribute weigh as much as those without it, so that 0.5 is a fair threshold (ours)."""
BETAS = (0.9, 0.99)
ADAM_RATE = 0.3
"""Learning rate of Adam for norms and biases, as a share of that of Muon."""


WIDTHS_16, UNITS_16 = (64, 128, 256, 512, 512), (2, 2, 3, 3, 3)
"""Channels and convolutions of the five stages of VGG-16."""


class StridedVGG(nn.Module):
    """Images (N, 3, size, size) -> (N, answers). The defaults are the thirteen convolutions of VGG-16.

    The first convolution of each stage halves the image and replaces max pooling (Springenberg et al. 2015). Batch
    normalization and ReLU follow each convolution. The last features are not averaged over space: in an aligned face
    the position of a detail, such as a smile, is known and informative.
    """

    def __init__(
        self,
        answers: int,
        size: int,
        widths: Sequence[int] = WIDTHS_16,
        units: Sequence[int] = UNITS_16,
        dropout: float = 0.5,
    ):
        super().__init__()
        side = size // 2 ** len(widths)
        layers = []
        for inputs, outputs, count in zip((3, *widths[:-1]), widths, units, strict=True):
            layers += _build_layer(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False))
            for _ in range(count - 1):
                layers += _build_layer(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(widths[-1] * side * side, answers))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images))


def _build_layer(convolution: nn.Conv2d) -> list[nn.Module]:
    return [convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU()]


class Classifier(nn.Module):
    """(N, 3, H, W) in [-1, 1], any size -> logits (N, A) of ``attributes``. Differentiable in the images."""

    def __init__(
        self, crop: Sequence[float], input_size: int, widths: Sequence[int], units: Sequence[int], dropout: float,
        attributes: Sequence[str] = ATTRIBUTES,
    ):  # fmt: skip
        super().__init__()
        self.attributes, self.crop, self.input_size = tuple(attributes), tuple(crop), input_size
        self.network = StridedVGG(len(attributes), input_size, widths, units, dropout)

    def prepared(self, images: Tensor) -> Tensor:
        """The network's input: the crop of each image, resized, in channels-last order (a sixth faster on a CPU)."""
        height, width = images.shape[-2:]
        left, top, right, bottom = self.crop
        images = images[..., round(top * height) : round(bottom * height), round(left * width) : round(right * width)]
        return deterministic.resize(images, (self.input_size,) * 2).contiguous(memory_format=torch.channels_last)

    def forward(self, images: Tensor) -> Tensor:
        return self.network(self.prepared(images))


class AttributeTask(BatchTask):
    """Binary cross-entropy of every attribute, with weights that balance its two classes (`BALANCE`)."""

    stream = "attributes"

    def __init__(
        self,
        classifier: Classifier,
        params: AttributeClassifierSettings,
        pictures: np.ndarray,
        labels: np.ndarray,
        seed: int,
    ):
        targets = np.stack([labels.astype(np.float32), weigh_classes(labels, BALANCE).numpy()], axis=1)  # (M, 2, A)
        super().__init__({"classifier": classifier}, params, pictures, targets, seed)

    def build_optimizers(self) -> Optimizers:
        muon, adam_share = ((2, 4), ADAM_RATE) if self.params.small_scale.optimizer == "muon" else ((), 1.0)
        return Optimizers(self.modules, self.params.learning_rate, BETAS, muon, adam_share)

    def compute_share(self, step: int) -> float:
        return compute_cooldown(step, self.params.steps, COOLDOWN)

    def losses(self, draw: np.random.Generator, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        labels, weights = targets.to(self.device).unbind(1)  # (N, A) each
        logits = self.modules["classifier"](augment(pictures, draw).to(self.device))
        loss = functional.binary_cross_entropy_with_logits(logits, labels, weights)
        return {"loss": loss, "accuracy": ((logits > 0) == (labels > 0.5)).float().mean()}


def weigh_classes(labels: np.ndarray, balance: float) -> Tensor:
    """Labels, bool (N, A) -> weights, float32 (N, A): (share of its class) ** -balance, mean 1 over the images."""
    present = labels.mean(axis=0)
    weights = np.where(labels, present, 1 - present) ** -balance
    return torch.from_numpy(weights / weights.mean(axis=0)).float()


def train(params: AttributeClassifierSettings, job: TrainingJob) -> None:
    """Train on the annotations of the job's people and write the checkpoint."""
    training = Training(job, params, "attribute_classifier")
    rows = training.archive.select(job.people)
    attributes = list_annotated(rows, job.faces)
    labels = read_annotations(rows, attributes)
    pictures = training.pictures()
    logger.info("training on %d images", len(pictures))
    training.start()
    metadata: dict[str, Any] = {name: getattr(params, name) for name in ARCHITECTURE} | {"crop": CROP}
    classifier = place(Classifier(**metadata, attributes=attributes))
    task = AttributeTask(classifier, params, pictures, labels, training.seed)
    training.fit(task, params.steps)
    training.save({"classifier": classifier}, {**metadata, "attributes": attributes})


def list_annotated(rows: pd.DataFrame, archive: Path) -> list[str]:
    """Those of `ATTRIBUTES` with which every face is annotated. Raises ParameterError if there is none."""
    columns = {name: f"{ANNOTATION}{name}" for name in ATTRIBUTES}
    names = [name for name, column in columns.items() if column in rows and rows[column].dtype == bool]
    if not names:
        raise ParameterError(
            f"{archive}: not every face is annotated (true or false) with one of {', '.join(columns.values())}, from "
            "which the classifier of attributes learns. Set matrix.train_on to a dataset with annotations, such as "
            "rendered faces."
        )
    return names


def read_annotations(rows: pd.DataFrame, attributes: Sequence[str]) -> np.ndarray:
    """The annotations, bool (N, A)."""
    return rows[[f"{ANNOTATION}{name}" for name in attributes]].to_numpy(dtype=bool, copy=True)


def load(checkpoint: Path) -> Classifier:
    """The classifier of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    saved = Saved(checkpoint)
    attributes = saved.metadata["attributes"]
    if not set(attributes) <= set(ATTRIBUTES):
        raise CheckpointError(
            f"{checkpoint} is of the attributes {', '.join(attributes)}, and allowed are {', '.join(ATTRIBUTES)}. "
            "Train it again."
        )
    classifier = Classifier(**{name: saved.metadata[name] for name in ("crop", *ARCHITECTURE)}, attributes=attributes)
    return saved.frozen("classifier", classifier).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def quality(classifier: Classifier, job: TrainingJob) -> dict[str, float]:
    """`measure_agreement` with the annotations of the validation split."""
    predicted, true = [], []
    for faces in FaceArchive(job.faces).batches(32, part="validation"):
        predicted.append((apply_in_batches(classifier, len(faces), faces.images) > 0).numpy())
        true.append(read_annotations(faces.index, classifier.attributes))
    return measure_agreement(classifier.attributes, np.concatenate(true), np.concatenate(predicted), job.faces)


def measure_agreement(
    attributes: Sequence[str], true: np.ndarray, predicted: np.ndarray, archive: Path
) -> dict[str, float]:
    """Of labels and predictions, bool (N, A): balanced accuracy (mean, smallest value, each) and accuracy (mean, each).

    Balanced accuracy of an attribute: (true positive rate + true negative rate) / 2; a constant prediction has 0.5. It
    is not defined for an attribute that all images have or none has. ``attributes`` is the number of attributes for
    which it is defined. Raises ParameterError if there is no such attribute.
    """
    balanced = {}
    for name, truth, prediction in zip(attributes, true.T, predicted.T, strict=True):
        if 0 < truth.sum() < len(truth):
            balanced[name] = float((prediction[truth].mean() + (~prediction[~truth]).mean()) / 2)
    if not balanced:
        raise ParameterError(
            f"{archive}: in the validation split, every attribute is true of all images or of none, so no accuracy "
            "can be measured. To measure it, give it more people."
        )
    return {
        "balanced_accuracy": float(np.mean(list(balanced.values()))),
        "worst_balanced_accuracy": min(balanced.values()),
        "accuracy": float((true == predicted).mean()),
        "attributes": float(len(balanced)),
        "pictures": float(len(true)),
        **{f"balanced_accuracy.{name}": value for name, value in balanced.items()},
        **{f"accuracy.{name}": float((true == predicted)[:, k].mean()) for k, name in enumerate(attributes)},
    }
