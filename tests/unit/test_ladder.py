"""The error ladder of recoveries, on a method whose recovery is exact, at the size of the scale tiny."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch

from masquerade.core.images import Faces, to_float
from masquerade.core.keys import Digits
from masquerade.core.settings import NoParameters, Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.pipeline import ladder

SIDE = 64


class Negative(Method):
    """Adds its digit to the negative of an image, and takes it away again."""

    title, paper = "Negative", "this test"
    capabilities = Capabilities(keys=Digits(1), invertible=True, saves=True)

    def anonymize(self, faces, seed, keys=None):
        return self._turn(faces.images, keys)

    def recover(self, images, keys):
        return self._turn(images, keys)

    def save(self, faces, seed, keys):
        return self.anonymize(faces, seed, keys)

    def recover_saved(self, saved, keys):
        return self.recover(saved, keys)

    @staticmethod
    def _turn(images, keys):
        return np.stack([int(key) / 1000 - image for image, key in zip(images, keys, strict=True)]).astype(np.float32)


@pytest.fixture
def faces() -> Faces:
    draw = np.random.default_rng(0)
    images = to_float(draw.integers(40, 200, (3, SIDE, SIDE, 3), dtype=np.uint8))
    index = pd.DataFrame({"id": ["a", "b", "c"], "identity": ["a", "b", "c"], "status": "ok"})
    return Faces(images, index)


def test_each_rung_loses_more_of_the_image(faces):
    method = Negative(NoParameters(), Settings(), Resources())
    rungs = ladder.climb(method, faces, seed=1)
    assert list(rungs) == ["saved", "noised", "exact", "png", "jpeg", "resized"]
    errors = {rung: float(np.abs(images - faces.images).mean()) for rung, images in rungs.items()}
    assert errors["saved"] == errors["exact"] < 1e-6
    assert 0 < errors["png"] < 1 / 255
    assert errors["png"] < errors["jpeg"]
    assert errors["png"] < errors["resized"]
    assert errors["noised"] == pytest.approx(0.08 * faces.images.std(), rel=0.05)  # E|N(0, 0.1 s)| = 0.08 s


@dataclass(frozen=True)
class Saved:
    code: np.ndarray
    image: np.ndarray


def test_noise_reaches_every_array_of_floats_and_no_image():
    draw = np.random.default_rng(0)
    code, image = draw.normal(size=(100, 50)).astype(np.float32), np.zeros((2, 4, 4, 3), np.uint8)
    noised = ladder.add_noise({"a": Saved(code, image), "b": (torch.from_numpy(code), [code])}, 0.5, draw)
    assert noised["a"].image is image
    for part in (noised["a"].code, noised["b"][0].numpy(), noised["b"][1][0]):
        assert part.dtype == np.float32
        assert (part - code).std() == pytest.approx(0.5 * code.std(), rel=0.05)
