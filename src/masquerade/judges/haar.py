"""The OpenCV detector of the papers' tables: a cascade of Haar features."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._pictures import resized
from masquerade.settings import Settings


class Haar(Judge):
    """Viola and Jones 2001, OpenCV's frontal face cascade; scale factor 1.1, as its documentation uses it."""

    title = "OpenCV Haar cascade"
    source = "haarcascade_frontalface_default.xml of opencv-python-headless 4"
    quantities = {"detected": (), "box": (4,)}

    class Params(Settings):
        size: Annotated[int, Field(ge=24)]
        """Side in pixels at which a picture is looked at."""
        neighbours: Annotated[int, Field(ge=0)]
        """How many overlapping detections make a face."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import cv2

        self._cascade = cv2.CascadeClassifier(f"{cv2.data.haarcascades}haarcascade_frontalface_default.xml")

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import cv2

        scale = images.shape[-1] / self.params.size
        boxes = np.full((len(images), 4), np.nan, np.float32)
        for row, picture in enumerate(resized(images, self.params.size)):
            grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
            found = self._cascade.detectMultiScale(grey, 1.1, self.params.neighbours, minSize=(self.params.size // 4,) * 2)
            if len(found):
                x, y, width, height = max(found, key=lambda item: item[2] * item[3])
                boxes[row] = np.array([x, y, x + width, y + height]) * scale
        return {"detected": ~np.isnan(boxes[:, 0]), "box": boxes}
