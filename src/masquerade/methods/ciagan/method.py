"""CIAGAN: a face is drawn anew as another person of the training, from its surroundings and lines along landmarks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.keys import Secret, expand, stack_per_key
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.method import InpaintingMethod
from masquerade.methods.ciagan import CiaganSettings
from masquerade.training.settings import TrainingJob

NUMBER = 8  # bytes of the number that a key becomes


class CIAGAN(InpaintingMethod):
    """Hides the face between brows and jaw and draws one of the people of the training in its place.

    Maximov, Elezi, Leal-Taixé 2020, CIAGAN: Conditional Identity Anonymization Generative Adversarial Networks, CVPR
    (arXiv:2005.09544). The face itself never reaches the network; lines keep the pose and the opening of the mouth.
    The key chooses the person. docs/inpainting.md lists what differs from the paper and its code.
    """

    title = "CIAGAN"
    paper = "Maximov et al. 2020, CIAGAN, CVPR (arXiv:2005.09544)"
    capabilities = Capabilities(trains=True, landmarks=True, keys=Secret(), sees_face=False)
    needs = ("identity",)
    official = ("ciagan",)
    architecture = ("down", "up", "blocks", "labels", "identity")

    Params = CiaganSettings

    class Variant(Settings):
        label: Literal["key", "one"]
        """How the person is chosen whose identity a face gets: key lets the key of each image choose, and one gives the
        same person to all faces."""

    params: CiaganSettings
    variant: Variant

    def build_network(self):
        from masquerade.methods.ciagan.training import build_generator

        return build_generator(self.params)

    @classmethod
    def train(cls, params: CiaganSettings, job: TrainingJob) -> None:
        from masquerade.methods.ciagan import training

        training.train(params, job)

    @classmethod
    def load_official(cls, params: CiaganSettings, path: Path):
        from masquerade.methods.ciagan.training import load_official

        return load_official(params, path)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the region of a face is empty or the whole image, or its landmarks are unknown."""
        labels = self._labels(faces, seed, keys)
        of_labels = np.eye(self.params.labels, dtype=np.float32)[labels]
        return self._drawing.draw(faces, region.draw_polygon_masks, region.draw_outlines, of_labels)

    def _labels(self, faces: Faces, seed: int, keys: Sequence[bytes] | None) -> np.ndarray:
        """The label of the person to draw, int (N,)."""
        labels = self.params.labels
        if self.variant.label == "one":
            return np.full(len(faces), seeding.derive_seed(seed, "ciagan") % labels)
        return stack_per_key(keys, lambda key: np.array(int.from_bytes(expand(key, NUMBER, "ciagan"), "big") % labels))
