"""RiDDLE: a transformer encrypts the code of a face with a password, and decrypts it with the same."""

from typing import TYPE_CHECKING

import numpy as np

from masquerade.images import Faces
from masquerade.keys import Secret
from masquerade.latent_encryption import password
from masquerade.latent_encryption.settings import EncryptorSettings
from masquerade.methods import Capabilities, Method, Resources, TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor


class Riddle(Method):
    """Inverts a face, encrypts its W+ under the mapped password, and draws it; the same network decrypts.

    Li, Wang, Zhao, Dong, Tan 2023, RiDDLE: Reversible and Diversified De-identification with Latent Encryptor, CVPR
    (arXiv:2303.05171). Recovery from the picture encodes it again; recovery from the saved code, which is the one that
    the paper measures, does not. What the paper leaves open: docs/riddle.md.
    """

    title = "RiDDLE"
    paper = "Li et al. 2023, CVPR (arXiv:2303.05171)"
    capabilities = Capabilities(trains=True, keys=Secret(), invertible=True, saves=True, latents=True)
    needs = ("generator", "inversion", "semantics", "identity")

    class Params(EncryptorSettings):
        pass

    class Variant(Settings):
        pass

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade.latent.codes import Codes
        from masquerade.latent.world import World
        from masquerade.latent_encryption import task

        super().__init__(params, variant, resources)
        self._world = World(resources.backbones)
        self._codes = Codes(self._world, resources.latents)
        self._network = task.load(params, resources.checkpoint, resources.backbones, self._world)

    @classmethod
    def train(cls, params: Settings, job: TrainingJob) -> None:
        from masquerade.latent_encryption import task

        task.train(params, job)

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """Raises PictureError where a picture is not of the generator's size, or its inversion diverged."""
        return self._drawn(self._encrypted(faces, key))

    def recover(self, images: np.ndarray, key: bytes | None) -> np.ndarray:
        """Encoded again, decrypted and drawn. Raises PictureError for pictures of another size."""
        return self._drawn(self._turned(self._world.invert(images), key))

    def save(self, faces: Faces, seed: int, key: bytes) -> np.ndarray:
        """The encrypted W+, float32 (N, layers, style)."""
        return self._encrypted(faces, key).numpy()

    def recover_saved(self, saved: np.ndarray, key: bytes) -> np.ndarray:
        import torch

        return self._drawn(self._turned(torch.from_numpy(saved), key))

    def statement(self) -> dict[str, object]:
        return {"style_layers": "-".join(map(str, self._network.sizes)), "password": "HKDF-SHA256 -> z -> W"}

    def _encrypted(self, faces: Faces, key: bytes) -> "Tensor":
        codes, _ = self._codes.of(faces)
        return self._turned(codes, key)

    def _turned(self, codes: "Tensor", key: bytes) -> "Tensor":
        """Encrypted where the codes (N, layers, style) are of faces, decrypted where they are encrypted."""
        import torch

        world = self._world
        z = torch.from_numpy(password.of(key, world.generator.style_width)).to(world.device)
        with torch.inference_mode():
            mapped = world.generator.map(z[None])
            parts = [self._network(part.to(world.device), mapped.expand(len(part), -1)) for part in codes.split(32)]
        return torch.cat(parts).cpu()

    def _drawn(self, codes: "Tensor") -> np.ndarray:
        return self._world.draw(codes).numpy()
