"""Control: the face region is black. A useful method keeps more of the face."""

from collections.abc import Sequence

import numpy as np

from masquerade.core.images import Faces
from masquerade.methods import Capabilities, Method, _region


class Blackout(Method):
    """Fills the face region with black: the "trivial solution" of Newton, Sweeney, Malin 2005 (abstract).

    Control method: the floor of face detection, and the ceiling of the privacy that hiding the region can give.
    """

    title = "Blackout"
    paper = "Newton, Sweeney, Malin 2005, Preserving Privacy by De-identifying Face Images, IEEE TKDE 17(2)"
    capabilities = Capabilities(control=True, landmarks=True, sees_face=False)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        return _region.edit(faces, lambda region, name: np.full_like(region, -1.0))
