"""Fawkes: pictures that are enrolled in a recognizer, so that it fails on later photographs of the person."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.backbones import loaded
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._batches import fill_batches


class Fawkes(Method):
    """Changes a picture invisibly, so that its features are far from those of the original ("cloak").

    Shan, Wenger, Zhang, Li, Zheng, Zhao 2020, Fawkes: Protecting Privacy against Unauthorized Deep Learning Models,
    USENIX Security (arXiv:2002.08327), as in version 1.0.2 of the published code, untargeted. It is made for pictures
    that a recognizer learns from. A changed picture that is compared with a clear one measures evasion, for which it
    was not made. docs/fawkes.md lists what differs from the code.
    """

    title = "Fawkes"
    paper = "Shan et al. 2020, Fawkes, USENIX Security (arXiv:2002.08327)"
    capabilities = Capabilities(poisons=True, deterministic=False)
    needs = ("identity",)

    class Params(Settings):
        size: Annotated[int, Field(ge=16)]
        """Side in pixels at which the change is searched; the change is enlarged to the picture (112: published)."""
        batch: Annotated[int, Field(ge=1)]
        """Pictures whose changes are searched side by side. A smaller batch is filled up with its last picture, because
        the search magnifies rounding, which depends on the size of the batch."""

    class Variant(Settings):
        threshold: Annotated[float, Field(gt=0, lt=1)]
        """Largest structural dissimilarity, (1 - SSIM) / 2 (0.004, 0.012, 0.017: modes low, mid, high)."""
        steps: Annotated[int, Field(ge=1)]
        """Updates of the change (40, 75, 150)."""
        rate: Annotated[float, Field(gt=0)]
        """Learning rate of Adadelta (25, 20, 15)."""

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        from masquerade.networks.inputs import prepare_gradients

        super().__init__(params, variant, resources)
        self._identity = prepare_gradients(loaded("identity", resources.backbones))

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """The pictures with their changes. ``seed`` draws the first, tiny change of each picture."""
        from masquerade.methods.fawkes.cloak import cloak

        parts = []
        for rows in fill_batches(len(faces), self.params.batch):
            names = [faces.ids[row] for row in rows]
            parts.append(cloak(self._identity, faces.images[rows], names, seed, self.params.size, self.variant))
        return np.concatenate(parts)[: len(faces)]
