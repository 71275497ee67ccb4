"""Downstream utility: two networks learn from anonymized images and are tested on unprotected ones.

They show what anonymized images are still good for (Klomp et al. 2021, arXiv:2104.11721). One network finds
landmarks, the other one finds the box of a face. Both learn from the anonymized images of the attackers' people, with
the landmarks of the clear originals.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from masquerade.backbones.landmarks import LandmarksSettings
from masquerade.backbones.landmarks import training as landmarks_training
from masquerade.backbones.landmarks.training import Landmarker, LandmarksTask, compute_normalized_error, to_shares
from masquerade.core import seeding
from masquerade.core.annotations import compute_boxes
from masquerade.core.errors import ProtocolError
from masquerade.core.images import FaceArchive, Faces, to_float
from masquerade.core.people import sort_by_hash
from masquerade.networks.grid_detector import (
    GridDetector,
    build_targets,
    compute_detection_loss,
    draw_views,
    evaluate_detections,
)
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.params.protocols import UtilitySettings
from masquerade.training import loop
from masquerade.training.optimizers import Optimizers, compute_cooldown
from masquerade.training.training import Phases, compute_digest

FEWEST = 2
"""The fewest images from which the networks learn."""
AT_ONCE = 64
"""Test images in a batch."""
BETAS, COOLDOWN = (0.9, 0.999), 0.5
"""Of Adam, and the share of the steps in which the rate falls: as for the detectors of DartBlur."""


class Annotated(NamedTuple):
    """Images, uint8 (N, S, S, 3), their landmarks in pixels, float32 (N, 68, 2), and their boxes, int (N, 4)."""

    pictures: np.ndarray
    landmarks: np.ndarray
    corners: np.ndarray


class DetectorTask:
    """The training of the face detector on shifted, scaled and mirrored images."""

    def __init__(self, detector: GridDetector, settings: UtilitySettings, learned: Annotated, seed: int):
        self.detector, self.settings, self.learned, self.seed = detector.train(), settings, learned, seed
        self.modules = {"detector": detector}
        self.optimizers = {"all": Optimizers(self.modules, settings.detector_rate, BETAS)}

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the loss."""
        draw = seeding.make_generator(self.seed, "views", step)
        rows = draw.integers(len(self.learned.pictures), size=self.settings.detector_batch)
        images, corners = draw_views(draw, to_float(self.learned.pictures[rows]), self.learned.corners[rows])
        answers = self.detector(images)
        truth = build_targets(torch.from_numpy(corners).float().to(images), images.shape[-1], answers.shape[-1])
        loss = compute_detection_loss(answers, truth)
        self.optimizers["all"].descend(loss, compute_cooldown(step, self.settings.detector_steps, COOLDOWN))
        return {"detection": loss.item()}


def learn_and_test(
    originals: FaceArchive,
    anonymized: FaceArchive,
    landmarks: LandmarksSettings,
    settings: UtilitySettings,
    state: Path,
    seed: int,
    log: loop.Log,
) -> pd.DataFrame:
    """Train both networks on the train split of ``anonymized``, and test them on the test split of ``originals``.

    ``landmarks``: the training of the landmark network, except for the values of ``settings``. ``state``: the file from
    which an interrupted training resumes; the caller removes it. One row for each usable unprotected test image:

    - id, identity,
    - ``landmark_error``: percent of the distance of the outer eye corners (`compute_normalized_error`), less is better,
    - ``found``: whether the largest score of the detector is in the cell with the center of the face,
    - ``overlap``: intersection over union of the true box and that of the largest score, from 0 to 1.

    The detector sees one shifted and scaled view of each test image, the same for every seed and method. A test
    image without landmarks has a row without numbers. Raises ProtocolError if there are too few images to learn
    from, or no test image with landmarks.
    """
    learned = _select_training(originals, anonymized, settings.pictures)
    rows = originals.select("test")
    points, corners = _read_annotations(rows, originals)
    usable = _find_usable(points, corners)
    if not usable.any():
        raise ProtocolError(
            f"{originals.path}: {len(rows)} usable test images, and 0 of them have the 68 landmarks on which the "
            "networks are tested. Rendered faces have them: take this dataset out of informed.cells."
        )
    landmarks = _adapt_settings(landmarks, settings)
    seed = seeding.derive_seed(seed, "twins")
    finder, detector = _build_tasks(landmarks, settings, learned, seed)
    task = Phases({"landmarks": (settings.landmark_steps, finder), "detector": (settings.detector_steps, detector)})
    knobs = [of.model_dump(mode="json") for of in (landmarks, settings)]
    digest = compute_digest(*knobs, seed, originals.metadata["checksum"], anonymized.digest("train"))
    loop.fit(task, task.steps, loop.Unfinished(state, digest), log)
    test = Annotated(originals.pictures(rows[usable]), points[usable], corners[usable])
    return _test_networks(finder.landmarker, detector.detector, test, rows, usable)


def _adapt_settings(landmarks: LandmarksSettings, settings: UtilitySettings) -> LandmarksSettings:
    """The settings of the backbone with the values of this protocol."""
    rate = {"kernel_rate": settings.small_scale.landmark_kernel_rate}
    values = {
        "input_size": settings.landmark_size, "widths": settings.landmark_widths,
        "small_scale": landmarks.small_scale.model_copy(update=rate),
        "steps": settings.landmark_steps,
    }  # fmt: skip
    return landmarks.model_copy(update=values)


def _select_training(originals: FaceArchive, anonymized: FaceArchive, most: int) -> Annotated:
    """The first ``most`` anonymized images (0: all) whose originals have landmarks.

    Raises ProtocolError if there are too few.
    """
    rows = anonymized.select("train")
    order = {name: place for place, name in enumerate(sort_by_hash(rows["identity"]))}
    # the people whom `select_people` chooses come first
    rows = rows.sort_values("identity", key=lambda names: names.map(order), kind="stable")
    points, corners = _read_annotations(originals.index.set_index("id").loc[rows["source_id"]], originals)
    usable = _find_usable(points, corners)
    if usable.sum() < FEWEST:
        raise ProtocolError(
            f"{anonymized.path} has {len(rows)} usable images of the attackers' people; {usable.sum()} of them have "
            f"an original with 68 landmarks. The networks need at least {FEWEST}: see the reasons of the refusals, or "
            "raise informed.people or informed.pictures."
        )
    selected = rows[usable].head(most or None)
    return Annotated(anonymized.pictures(selected), points[usable][: most or None], corners[usable][: most or None])


def _read_annotations(rows: pd.DataFrame, archive: FaceArchive) -> tuple[np.ndarray, np.ndarray]:
    """Landmarks (N, 68, 2) and boxes (N, 4) of unprotected images; zeros where a landmark is not known."""
    points = Faces(np.empty(0), rows).landmarks
    points = np.where(np.isfinite(points).all(axis=(1, 2), keepdims=True), points, 0.0)
    size = archive.metadata["size"]
    return points, compute_boxes(points, (size, size))


def _find_usable(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Whether the landmarks are known and the box is in the image: bool (N,)."""
    return np.logical_and(points.any(axis=(1, 2)), (corners[:, 2:] > corners[:, :2]).all(axis=1))


def _build_tasks(
    landmarks: LandmarksSettings, settings: UtilitySettings, learned: Annotated, seed: int
) -> tuple[LandmarksTask, DetectorTask]:
    torch.manual_seed(seeding.derive_seed(seed, "weights"))
    metadata = {"input_size": landmarks.input_size, "widths": landmarks.widths, "hidden": landmarks.hidden}
    landmarker = landmarks_training.build(metadata)
    landmarker.network.start_at(to_shares(torch.from_numpy(learned.landmarks.mean(0)), learned.pictures.shape[1:3]))
    detector = place(GridDetector(settings.detector_widths))
    return (
        LandmarksTask(place(landmarker), landmarks, learned.pictures, learned.landmarks, seed),
        DetectorTask(detector, settings, learned, seeding.derive_seed(seed, "detector")),
    )


def _test_networks(
    landmarker: Landmarker, detector: GridDetector, test: Annotated, rows: pd.DataFrame, usable: np.ndarray
) -> pd.DataFrame:
    images, size = to_float(test.pictures), test.pictures.shape[1]
    points = apply_in_batches(landmarker.eval(), AT_ONCE, images)
    views, corners = draw_views(seeding.make_generator(0, "twins", "test"), images, test.corners)
    answers = apply_in_batches(detector.eval(), AT_ONCE, views)
    right, overlap = evaluate_detections(answers, torch.from_numpy(corners), size)
    columns: dict[str, np.ndarray | Tensor] = {
        "landmark_error": compute_normalized_error(points.numpy(), test.landmarks),
        "found": right,
        "overlap": overlap,
    }
    measured = pd.DataFrame({name: np.asarray(values) for name, values in columns.items()}, index=rows.index[usable])
    measured = measured.reindex(rows.index).astype({"found": "boolean", "landmark_error": float, "overlap": float})
    return pd.concat([rows[["id", "identity"]], measured], axis=1).reset_index(drop=True)
