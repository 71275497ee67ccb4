"""Control: the face as the latent space shows it, not anonymized."""

import numpy as np

from masquerade.images import Faces
from masquerade.methods import Capabilities, Method, Resources
from masquerade.settings import Settings


class Inverted(Method):
    """The inversion's code, drawn again: what working in the latent space costs before anything is anonymized."""

    title = "Inversion"
    paper = "control: encoded by the inversion and drawn again, not anonymized"
    capabilities = Capabilities(control=True, latents=True)
    needs = ("generator", "inversion", "semantics")

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.latent.codes import Codes
        from masquerade.latent.world import World

        super().__init__(params, variant, resources)
        self._world = World(resources.backbones)
        self._codes = Codes(self._world, resources.latents)

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """Raises PictureError where a picture is not of the generator's size, or its inversion diverged."""
        codes, _ = self._codes.of(faces)
        return self._world.draw(codes).numpy()
