"""FALCO's attribute protocol: a classifier learns attributes from anonymized faces and is tested on real faces.

Its accuracy shows which attributes the anonymized faces have kept (Barattin et al. 2023, section 4.1). The metrics of
these predictions are in `metrics`, the parameters in `params`. The classifier has several labels, weights of ImageNet
and one logit for each attribute, and learns with a focal loss. Its first blocks may stay frozen: their output for an
image is then computed once. See docs/metrics.md. The predictions are one row for each image, attribute and kind of
labels (`evaluation.read_predictions`):

    labels     learned_from  id          attribute  label  probability
    annotated  240           p003_1.png  Smiling    True   0.83
    pseudo_a   240           p003_1.png  Smiling    True   0.79
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from masquerade.core import files, seeding
from masquerade.core.annotations import ANNOTATED, ANNOTATION, list_annotation_columns
from masquerade.core.errors import ArchiveError
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.methods import Method
from masquerade.networks import efficientnet_lite_internals, mobilenet_v2, torchvision_internals
from masquerade.networks.inputs import device, place, to_tensor
from masquerade.params.protocols import AttributeSettings
from masquerade.pipeline.anonymization import select_subset

Architecture = Literal["mobilenet_v2", "efficientnet_lite0"]
GAMMA = 2.0  # of the focal loss: Lin et al. 2017, section 4.1 (its best)
FROZEN_BATCH = 16  # images in a batch of the frozen blocks


class Classifier:
    """Images uint8 (N, S, S, 3) -> probabilities (N, A) of ``attributes``.

    The first ``settings.small_scale.frozen_blocks`` blocks of the network are not trained. If these are all blocks,
    only the last layer is trained.
    """

    def __init__(self, architecture: Architecture, attributes: Sequence[str], settings: AttributeSettings, seed: int):
        self.attributes, self.settings, self.seed = list(attributes), settings, seed
        torch.manual_seed(seeding.derive_seed(seed, "classifier"))
        blocks, (self._mean, self._std), width = ARCHITECTURES[architecture]()
        frozen_blocks = min(settings.small_scale.frozen_blocks, len(blocks))
        self._frozen = place(nn.Sequential(*blocks[:frozen_blocks])).eval()
        head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, len(attributes))
        self._trained = place(nn.Sequential(*blocks[frozen_blocks:], *head)).requires_grad_(True)

    def features(self, pictures: np.ndarray) -> Tensor:
        """The output of the frozen blocks, (N, C, H, W), on the CPU, because that of a whole dataset fills a GPU.

        It is the same for all classifiers with the same architecture and settings.
        """
        starts = range(0, len(pictures), FROZEN_BATCH)
        with torch.inference_mode():
            parts = [self._frozen_output(pictures[start : start + FROZEN_BATCH]) for start in starts]
        return torch.cat(parts).clone()

    def _frozen_output(self, pictures: np.ndarray) -> Tensor:
        images = pictures.transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1.0
        return self._frozen(to_tensor(images, self.settings.size, self._mean, self._std).to(device())).cpu()

    def fit(self, features: Tensor, mirrored: Tensor, labels: np.ndarray) -> list[float]:
        """Train on the `features` of images and of their mirror images, with labels bool (N, A).

        Returns the mean loss of each epoch.
        """
        settings, truth = self.settings, torch.from_numpy(labels.astype(np.float32))
        optimizer = torch.optim.Adam(self._trained.parameters(), lr=settings.learning_rate)
        steps = settings.epochs * -(-len(features) // settings.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        self._trained.train()
        curve = []
        for epoch in range(settings.epochs):
            draw = seeding.make_generator(self.seed, "epoch", epoch)
            order, is_mirrored = draw.permutation(len(features)), draw.random(len(features)) < 0.5
            losses = []
            for rows in np.array_split(order, -(-len(order) // settings.batch)):
                indices = torch.from_numpy(rows)
                pick = torch.from_numpy(is_mirrored[rows])[:, None, None, None]
                batch = torch.where(pick, mirrored[indices], features[indices])
                loss = focal_loss(self._trained(batch.to(device())), truth[indices].to(device()))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
            curve.append(float(np.mean(losses)))
        return curve

    def predict(self, features: Tensor) -> np.ndarray:
        """Probabilities float32 (N, A)."""
        self._trained.eval()
        with torch.inference_mode():
            parts = [self._trained(part.to(device())).sigmoid().cpu() for part in features.split(64)]
        return torch.cat(parts).numpy()


def focal_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """FL(p) = -(1 - p_t)^gamma log p_t (Lin et al. 2017, Eq. 4), the mean over images and attributes."""
    torchvision_internals.ensure()
    from torchvision.ops import sigmoid_focal_loss

    return sigmoid_focal_loss(logits, labels, alpha=-1, gamma=GAMMA, reduction="mean")  # alpha -1: no class weights


def _mobilenet_v2():
    """Sandler et al. 2018: 19 blocks."""
    net: Any = mobilenet_v2.load_network()
    return list(net.features), (mobilenet_v2.MEAN, mobilenet_v2.STD), 1280


def _efficientnet_lite0():
    """Tan and Le 2019: the stem, 16 blocks and the head."""
    blocks = efficientnet_lite_internals.list_blocks(efficientnet_lite_internals.load_network(0))
    return blocks, (efficientnet_lite_internals.MEAN, efficientnet_lite_internals.STD), 1280


ARCHITECTURES = {"mobilenet_v2": _mobilenet_v2, "efficientnet_lite0": _efficientnet_lite0}


PSEUDO_B_ATTRIBUTES = ("Bangs", "Eyeglasses", "No_Beard", "Smiling", "Young")
"""The attributes of Talk-to-Edit's predictor (Jiang et al. 2021): Barattin et al. 2023, section 4.2.2."""


def list_attributes(index: pd.DataFrame) -> list[str]:
    """The attributes that are true or false for every face of an index."""
    return sorted(name.removeprefix(ANNOTATION) for name in list_annotation_columns(index))


def split_shuffled(rows: pd.DataFrame, test_share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(train, test) of a dataset without a split: shuffled, 80-20 (Barattin et al. 2023, section 4.1)."""
    order = seeding.make_generator(seed, "attributes", "split").permutation(len(rows))
    test = round(test_share * len(rows))
    return rows.iloc[np.sort(order[test:])], rows.iloc[np.sort(order[:test])]


def draw_pseudo_labels(
    train: FaceArchive, datasets: dict[str, FaceArchive], settings: AttributeSettings, seed: int
) -> tuple[pd.DataFrame, dict]:
    """(labels of every real face by two classifiers, the accuracy of each classifier on each dataset).

    Both classifiers are trained on real annotated faces of the methods' people in ``train``. ``pseudo_a``: all
    attributes, MobileNetV2 (in the place of Lin et al. 2021, AnycostGAN). ``pseudo_b``: PSEUDO_B_ATTRIBUTES,
    EfficientNet-Lite0 (in the place of Jiang et al. 2021, Talk-to-Edit). Columns of the labels: dataset, id, labels,
    attribute, label. A dataset without annotations (LFW) has no accuracy.
    """
    rows = select_subset(train.select(Method.people), settings.labeler_pictures)
    frames, quality = [], {}
    architectures: dict[str, Architecture] = {"pseudo_a": "mobilenet_v2", "pseudo_b": "efficientnet_lite0"}
    for labels, architecture in architectures.items():
        attributes = [
            name for name in list_attributes(train.index) if labels == "pseudo_a" or name in PSEUDO_B_ATTRIBUTES
        ]
        classifier = Classifier(architecture, attributes, settings, seeding.derive_seed(seed, labels))
        pictures = load_pixels(train, rows)
        classifier.fit(
            classifier.features(pictures), classifier.features(pictures[:, :, ::-1]), _read_truth(rows, attributes)
        )
        for dataset, archive in datasets.items():
            faces = _select_labeled(archive, rows if archive.path == train.path else None)
            predicted = classifier.predict(classifier.features(load_pixels(archive, faces))) > 0.5
            frames.append(_list_labels(faces, attributes, {"dataset": dataset, "labels": labels}, label=predicted))
            if set(attributes) <= set(list_attributes(archive.index)):
                held_out = (faces["split"] != "train").to_numpy()
                right = (predicted == _read_truth(faces, attributes))[held_out]
                quality[f"{labels}.{dataset}"] = {"accuracy": float(right.mean()), "faces": int(held_out.sum())}
    return pd.concat(frames, ignore_index=True), quality


def _select_labeled(archive: FaceArchive, train_rows: pd.DataFrame | None) -> pd.DataFrame:
    """The faces that need a pseudo-label: the test split, and ``train_rows`` in the training dataset."""
    parts = [archive.select("test")] if train_rows is None else [train_rows, archive.select("test")]
    return pd.concat(parts)


def evaluate_attributes(
    anonymized: FaceArchive,
    originals: FaceArchive,
    own_train: bool,
    pseudo: pd.DataFrame,
    settings: AttributeSettings,
    seed: int,
) -> pd.DataFrame:
    """Train on ``anonymized`` faces and predict real faces, once for each kind of labels.

    ``own_train``: ``anonymized`` is the train split, and the test set is the whole test split of ``originals``.
    Otherwise ``anonymized`` is the test split, which is shuffled and split 80-20. Refused faces are left out of the
    training set. Columns: labels (annotated, pseudo_a, pseudo_b), learned_from (number of faces), id, attribute, label,
    probability. One row for each real test face and attribute. Raises ArchiveError if a set is empty.
    """
    usable = anonymized.select()
    if own_train:
        train, test = usable, originals.select("test")
    else:
        train, test = split_shuffled(originals.select("test"), settings.test_share, seed)
        train = usable[usable["source_id"].isin(train["id"])]
    if train.empty or test.empty:
        raise ArchiveError(
            f"{anonymized.path} has {len(train)} faces to learn attributes from, and {originals.path} has {len(test)} "
            "to test on. Both must have at least one: see the reasons of their refusals."
        )
    frozen = Classifier("mobilenet_v2", ["any"], settings, seed)
    pictures, real = load_pixels(anonymized, train), load_pixels(originals, test)
    features, mirrored, real_features = (frozen.features(part) for part in (pictures, pictures[:, :, ::-1], real))
    frames = []
    # Table 6 of the paper: both labelers for a dataset without annotations, else the first one alone.
    for labels in (ANNOTATED, "pseudo_a", *(() if own_train else ("pseudo_b",))):
        truth = _read_annotations(originals) if labels == ANNOTATED else _pivot_labels(pseudo, labels)
        if truth is None or not set(train["source_id"]) <= set(truth.index):
            continue
        classifier = Classifier("mobilenet_v2", list(truth.columns), settings, seeding.derive_seed(seed, labels))
        classifier.fit(features, mirrored, truth.loc[train["source_id"]].to_numpy())
        predicted = classifier.predict(real_features)
        labels_of_test = truth.loc[test["id"]].to_numpy()
        about = {"labels": labels, "learned_from": len(train)}
        frames.append(_list_labels(test, list(truth.columns), about, label=labels_of_test, probability=predicted))
    return pd.concat(frames, ignore_index=True)


def load_pixels(archive: FaceArchive, rows: pd.DataFrame) -> np.ndarray:
    """The images of ``rows``: uint8 (N, S, S, 3)."""
    return np.concatenate([to_uint8(part.images) for part in archive.batches(256, rows=rows)])


def _read_truth(rows: pd.DataFrame, attributes: list[str]) -> np.ndarray:
    return rows[[ANNOTATION + name for name in attributes]].to_numpy(dtype=bool)


def _read_annotations(originals: FaceArchive) -> pd.DataFrame | None:
    """The annotations of each original, by id. Returns None for a dataset without annotations."""
    attributes = list_attributes(originals.index)
    if not attributes:
        return None
    return pd.DataFrame(_read_truth(originals.index, attributes), index=originals.index["id"], columns=attributes)


def _pivot_labels(pseudo: pd.DataFrame, labels: str) -> pd.DataFrame:
    return pseudo[pseudo["labels"] == labels].pivot(index="id", columns="attribute", values="label")


def _list_labels(
    rows: pd.DataFrame, attributes: list[str], about: dict[str, object], **values: np.ndarray
) -> pd.DataFrame:
    """One row for each face and attribute."""
    count = len(attributes)
    frame = pd.DataFrame({"id": np.repeat(rows["id"].to_numpy(), count), "attribute": attributes * len(rows)})
    return frame.assign(**about, **{name: array.reshape(-1) for name, array in values.items()})


def write_predictions(frame: pd.DataFrame, output: Path) -> None:
    """Write the predictions as Parquet."""
    with files.write_atomically(output) as temporary:
        frame.to_parquet(temporary, index=False)
