"""MTCNN: three small cascaded networks that find a face and five points of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._pictures import resized
from masquerade.settings import Settings


class Mtcnn(Judge):
    """Zhang et al. 2016, with the weights of facenet-pytorch; the most probable face counts."""

    title = "MTCNN"
    source = "P-, R- and O-Net of facenet-pytorch 2.5.3"
    quantities = {"detected": (), "box": (4,), "points": (10,), "probability": ()}

    class Params(Settings):
        size: Annotated[int, Field(ge=40)]
        """Side in pixels at which a picture is looked at."""
        thresholds: Annotated[list[float], Field(min_length=3, max_length=3)]
        """Probabilities that the three networks ask for (0.6, 0.7, 0.7: facenet-pytorch)."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        from masquerade._torchvision import ensure

        ensure()
        from facenet_pytorch import MTCNN

        # its class reads its three files itself, and torch reads them with weights_only=True
        self._network = MTCNN(
            thresholds=list(params.thresholds), min_face_size=params.size // 5, select_largest=False, keep_all=False
        )

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        scale = images.shape[-1] / self.params.size
        count = len(images)
        box = np.full((count, 4), np.nan, np.float32)
        points = np.full((count, 10), np.nan, np.float32)
        probability = np.zeros(count, np.float32)
        found = self._network.detect(resized(images, self.params.size), landmarks=True)
        for row, (boxes, chances, marks) in enumerate(zip(*found, strict=True)):
            if boxes is not None and len(boxes):
                box[row], points[row] = boxes[0] * scale, marks[0].ravel() * scale
                probability[row] = chances[0]
        return {"detected": ~np.isnan(box[:, 0]), "box": box, "points": points, "probability": probability}
