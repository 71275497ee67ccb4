"""Low frequencies: an example of a method in one file (CONTRIBUTING.md, "Add a method")."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method


class LowFrequencies(Method):
    """Keeps the lowest frequencies of the cosine transform (Ahmed et al. 1974) of an image, and drops the others.

    An example: no paper proposes it as an anonymizer.
    """

    title = "Low frequencies"
    paper = "Ahmed et al. 1974, IEEE Transactions on Computers C-23(1), for the transform"
    capabilities = Capabilities()

    class Variant(Settings):
        kept: Annotated[int, Field(ge=1)]
        """Frequencies that are kept along each side, in half waves a side (6: ours)."""

    variant: Variant

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """float32 (N, 3, H, W) in [-1, 1], as the images of ``faces``. The result is the same for every seed."""
        from scipy.fft import dctn, idctn

        spectrum = dctn(faces.images, axes=(2, 3))
        spectrum[:, :, self.variant.kept :] = 0
        spectrum[:, :, :, self.variant.kept :] = 0
        return idctn(spectrum, axes=(2, 3)).clip(-1, 1).astype(np.float32)
