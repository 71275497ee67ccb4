"""Control: the face after inversion and drawing, not anonymized."""

from collections.abc import Sequence

import numpy as np

from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources


class Inverted(Method):
    """Inverts a face and draws its code again. Control method: the cost of the latent space without anonymization."""

    title = "Inversion"
    paper = "control: encoded by the inversion and drawn again, not anonymized"
    capabilities = Capabilities(control=True, latents=True)
    needs = ("generator", "inversion", "semantics")

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.methods.latent.codes import Codes
        from masquerade.methods.latent.space import LatentSpace

        super().__init__(params, variant, resources)
        self._space = LatentSpace(resources.backbones)
        self._codes = Codes(self._space, resources.latents)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if a picture does not have the generator's size, or if its inversion diverged."""
        codes, _ = self._codes.of(faces)
        return self._space.draw(codes, faces.ids).numpy()
