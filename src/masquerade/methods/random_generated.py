"""Control: a random generated face, independent of the original."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources


class RandomGenerated(Method):
    """Returns a random face of the generator, truncated as the fakes are.

    Control method: the row "Randomly generated" of Barattin et al. 2023, Table 1.
    """

    title = "Randomly generated"
    paper = "control: a random face of the generator"
    capabilities = Capabilities(control=True, deterministic=False)
    needs = ("generator",)

    class Params(Settings):
        psi: Annotated[float, Field(gt=0, le=1)]
        """Truncation (0.7, as the fakes of Barattin et al. 2023, published code)."""

    params: Params

    def __init__(self, params: Params, variant: Settings, resources: Resources):
        from masquerade.methods.latent.space import LatentSpace

        super().__init__(params, variant, resources)
        self._space = LatentSpace(resources.backbones)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """Raises PictureError if the pictures do not have the generator's size."""
        import torch

        generator = self._space.generator
        self._space.check_size(faces.images)
        draws = [seeding.make_generator(seed, "random_generated", name) for name in faces.ids]
        z = np.stack([draw.standard_normal(generator.style_width, dtype=np.float32) for draw in draws])
        with torch.no_grad():
            w = generator.truncate(generator.map(torch.from_numpy(z).to(self._space.device)), self.params.psi)
        return self._space.draw(generator.broadcast(w), faces.ids).numpy()
