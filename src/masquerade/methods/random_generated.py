"""Control: a face of nobody that has nothing to do with the original."""

from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade import seeding
from masquerade.images import Faces
from masquerade.methods import Capabilities, Method, Resources
from masquerade.settings import Settings


class RandomGenerated(Method):
    """A face drawn at random by the generator, truncated as the fakes are: the row "Randomly generated" of
    Barattin et al. 2023, Table 1."""

    title = "Randomly generated"
    paper = "control: a random face of the generator"
    capabilities = Capabilities(control=True, deterministic=False)
    needs = ("generator",)

    class Params(Settings):
        psi: Annotated[float, Field(gt=0, le=1)]
        """Truncation (0.7, as the fakes of Barattin et al. 2023, published code)."""

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.latent.world import World

        super().__init__(params, variant, resources)
        self._world = World(resources.backbones)

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """Raises PictureError where the pictures are not of the generator's size."""
        import torch

        generator = self._world.generator
        self._world.check_size(faces.images)
        draws = [seeding.generator(seed, "random_generated", name) for name in faces.ids]
        z = np.stack([draw.standard_normal(generator.style_width, dtype=np.float32) for draw in draws])
        with torch.no_grad():
            w = generator.truncate(generator.map(torch.from_numpy(z).to(self._world.device)), self.params.psi)
        return self._world.draw(generator.broadcast(w)).numpy()
