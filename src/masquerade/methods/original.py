"""Control: nothing is done. The ceiling of every utility metric and the floor of every privacy metric."""

import numpy as np

from masquerade.images import Faces
from masquerade.methods import Capabilities, Method


class Original(Method):
    """The identity map, the ``Original`` row of IdentityDP's Table III.

    Control method after openproblems.bio. It alone may hand back the original, BECAUSE it is a control.
    """

    title = "Original"
    paper = "Wen et al. 2022, IdentityDP (doi:10.1016/j.neucom.2022.06.039), Table III"
    capabilities = Capabilities(control=True)

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        return faces.images.copy()
