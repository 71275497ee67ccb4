"""Control: the original picture. The ceiling of every utility metric and the floor of every privacy metric."""

from collections.abc import Sequence

import numpy as np

from masquerade.core.images import Faces
from masquerade.methods import Capabilities, Method


class Original(Method):
    """Returns the original: the row ``Original`` of IdentityDP's Table III.

    Control method, as in openproblems.bio. No other method may return the original.
    """

    title = "Original"
    paper = "Wen et al. 2022, IdentityDP (doi:10.1016/j.neucom.2022.06.039), Table III"
    capabilities = Capabilities(control=True)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        return faces.images.copy()
