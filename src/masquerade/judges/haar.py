"""OpenCV's cascade of Haar features: the "OpenCV" detector in many tables on privacy."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade.core.errors import CheckpointError
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.networks.inputs import pixels

SIDE = 96
LEAST = 3 * SIDE // 8  # side of the smallest face: the face in an aligned crop fills more than half of it
SCALE_STEP, NEIGHBORS = 1.1, 3  # OpenCV's defaults


class Haar(Judge):
    """Detection of a frontal face: the largest box of the cascade.

    Preprocessing: 8-bit gray (ITU-R 601 luma) at 96 x 96, histogram equalized as in OpenCV's own example.
    ``box``: left, top, right, bottom in pixels of the input picture, NaN if nothing is detected.
    """

    title = "OpenCV Haar"
    source = "Viola and Jones 2001; haarcascade_frontalface_default.xml (Lienhart 2002) in opencv-python-headless 4"
    engine = "opencv"
    packages = ("opencv-python-headless",)
    quantities = {"detected": (), "box": (4,)}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import cv2.data

        path = Path(cv2.data.haarcascades, "haarcascade_frontalface_default.xml")
        if not path.is_file():
            raise CheckpointError(f"{path.name} is missing: install opencv-python-headless 4 (version 5 ships none).")
        self._cascade = cv2.CascadeClassifier(str(path))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import cv2

        boxes = np.full((len(images), 4), np.nan, dtype=np.float32)
        for row, picture in enumerate(pixels(images, SIDE)):
            gray = cv2.equalizeHist(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY))
            faces = self._cascade.detectMultiScale(gray, SCALE_STEP, NEIGHBORS, minSize=(LEAST, LEAST))
            if len(faces):
                x, y, width, height = max(faces, key=lambda box: box[2] * box[3])
                boxes[row] = np.array([x, y, x + width, y + height]) * (images.shape[-1] / SIDE)
        return {"detected": np.isfinite(boxes[:, 0]), "box": boxes}
