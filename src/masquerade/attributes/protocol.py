"""Which faces a classifier learns from, which it is tested on, and by whose labels."""

from pathlib import Path

import numpy as np
import pandas as pd

from masquerade import seeding
from masquerade.anonymization import chosen
from masquerade.attributes.classifier import Classifier
from masquerade.errors import ArchiveError
from masquerade.images import FaceArchive, to_uint8
from masquerade.params import AttributeSettings

FEW = ("Bangs", "Eyeglasses", "No_Beard", "Smiling", "Young")
"""The attributes of Talk-to-Edit's predictor (Jiang et al. 2021): Barattin et al. 2023, section 4.2.2."""
PREFIX = "attribute."


def names(index: pd.DataFrame) -> list[str]:
    """The attributes that are true or false of every face of an index."""
    columns = [name for name in index if name.startswith(PREFIX) and index[name].dtype == bool]
    return sorted(name.removeprefix(PREFIX) for name in columns)


def shuffled_split(rows: pd.DataFrame, test_share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(train, test) of a dataset without a split of its own: shuffled, 80-20 (Barattin et al. 2023, section 4.1)."""
    order = seeding.generator(seed, "attributes", "split").permutation(len(rows))
    test = round(test_share * len(rows))
    return rows.iloc[np.sort(order[test:])], rows.iloc[np.sort(order[:test])]


def pseudo_labels(
    train: FaceArchive, datasets: dict[str, FaceArchive], settings: AttributeSettings, seed: int
) -> tuple[pd.DataFrame, dict]:
    """What two classifiers, trained on real annotated faces, say of every real face; and how good they are, where the
    faces have annotations to tell it by (LFW has none).

    ``pseudo_a``: all attributes, MobileNetV2 (in the place of Lin et al. 2021, AnycostGAN). ``pseudo_b``: `FEW`,
    EfficientNet-Lite0 (in the place of Jiang et al. 2021, Talk-to-Edit).
    Columns: dataset, id, labels, attribute, label.
    """
    rows = chosen(train.select("train"), settings.labeller_pictures)
    frames, quality = [], {}
    for labels, architecture in (("pseudo_a", "mobilenet_v2"), ("pseudo_b", "efficientnet_lite0")):
        known = [name for name in names(train.index) if labels == "pseudo_a" or name in FEW]
        classifier = Classifier(architecture, known, settings, seeding.derive(seed, labels))
        pictures = pixels(train, rows)
        classifier.fit(classifier.features(pictures), classifier.features(pictures[:, :, ::-1]), _truth(rows, known))
        for dataset, archive in datasets.items():
            faces = _labelled(archive, rows if archive.path == train.path else None)
            found = classifier.predict(classifier.features(pixels(archive, faces))) > 0.5
            frames.append(_long(faces, known, {"dataset": dataset, "labels": labels}, label=found))
            if set(known) <= set(names(archive.index)):
                held = (faces["split"] != "train").to_numpy()
                right = (found == _truth(faces, known))[held]
                quality[f"{labels}.{dataset}"] = {"accuracy": float(right.mean()), "faces": int(held.sum())}
    return pd.concat(frames, ignore_index=True), quality


def _labelled(archive: FaceArchive, train_rows: pd.DataFrame | None) -> pd.DataFrame:
    """The faces that need a pseudo-label: the test split, and of the training dataset those that are trained on."""
    parts = [archive.select("test")] if train_rows is None else [train_rows, archive.select("test")]
    return pd.concat(parts)


def evaluate(
    anonymized: FaceArchive,
    originals: FaceArchive,
    own_train: bool,
    pseudo: pd.DataFrame,
    settings: AttributeSettings,
    seed: int,
) -> pd.DataFrame:
    """Train on ``anonymized`` faces and predict real ones, once for each kind of labels.

    ``own_train``: ``anonymized`` is the train split, and the whole test split of ``originals`` is the test; else it is
    the test split, which is shuffled and split 80-20. Faces that were refused train nobody. Columns: labels (annotated,
    pseudo_a, pseudo_b), learnt_from (faces), id, attribute, label, probability: one row a real test face and attribute.
    """
    usable = anonymized.select()
    if own_train:
        train, test = usable, originals.select("test")
    else:
        train, test = shuffled_split(originals.select("test"), settings.test_share, seed)
        train = usable[usable["source_id"].isin(train["id"])]
    if train.empty or test.empty:
        raise ArchiveError(f"{anonymized.path}: {len(train)} faces to learn attributes from, {len(test)} to test on.")
    shared = Classifier("mobilenet_v2", ["any"], settings, seed)
    pictures, real = pixels(anonymized, train), pixels(originals, test)
    seen = [shared.features(part) for part in (pictures, pictures[:, :, ::-1], real)]
    frames = []
    # Table 6 of the paper: both labellers where a dataset has no annotations, the first alone where it has its own.
    for labels in ("annotated", "pseudo_a", *(() if own_train else ("pseudo_b",))):
        truth = _annotated(originals) if labels == "annotated" else _wide(pseudo, labels)
        if truth is None or not set(train["source_id"]) <= set(truth.index):
            continue
        classifier = Classifier("mobilenet_v2", list(truth.columns), settings, seeding.derive(seed, labels))
        classifier.fit(seen[0], seen[1], truth.loc[train["source_id"]].to_numpy())
        found = classifier.predict(seen[2])
        known = truth.loc[test["id"]].to_numpy()
        about = {"labels": labels, "learnt_from": len(train)}
        frames.append(_long(test, list(truth.columns), about, label=known, probability=found))
    return pd.concat(frames, ignore_index=True)


def pixels(archive: FaceArchive, rows: pd.DataFrame) -> np.ndarray:
    """uint8 (N, S, S, 3)."""
    return np.concatenate([to_uint8(part.images) for part in archive.batches(256, rows=rows)])


def _truth(rows: pd.DataFrame, attributes: list[str]) -> np.ndarray:
    return rows[[PREFIX + name for name in attributes]].to_numpy(dtype=bool)


def _annotated(originals: FaceArchive) -> pd.DataFrame | None:
    """What is known of each original, by id; None for a dataset without annotations."""
    known = names(originals.index)
    if not known:
        return None
    return pd.DataFrame(_truth(originals.index, known), index=originals.index["id"], columns=known)


def _wide(pseudo: pd.DataFrame, labels: str) -> pd.DataFrame:
    return pseudo[pseudo["labels"] == labels].pivot(index="id", columns="attribute", values="label")


def _long(rows: pd.DataFrame, attributes: list[str], about: dict[str, object], **values: np.ndarray) -> pd.DataFrame:
    """One row a face and attribute."""
    count = len(attributes)
    frame = pd.DataFrame({"id": np.repeat(rows["id"].to_numpy(), count), "attribute": attributes * len(rows)})
    return frame.assign(**about, **{name: array.reshape(-1) for name, array in values.items()})


def write(frame: pd.DataFrame, output: Path) -> None:
    """Parquet, under a temporary name and renamed."""
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.part")
    frame.to_parquet(temporary, index=False)
    temporary.replace(output)
