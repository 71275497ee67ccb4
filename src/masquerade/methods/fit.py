"""FIT: a face identity transformer that a password steers, there and back."""

from typing import TYPE_CHECKING

import numpy as np

from masquerade import discovery
from masquerade.errors import CheckpointError, KeyFormatError, PictureError
from masquerade.identity_transformer.passwords import BITS, of_key
from masquerade.identity_transformer.settings import TransformerSettings
from masquerade.images import Faces
from masquerade.keys import Bits
from masquerade.methods import Capabilities, Method, Resources, TrainingJob
from masquerade.settings import Settings

if TYPE_CHECKING:
    from torch import nn

PART = 32  # pictures at a time


class FIT(Method):
    """One network turns a face into another person's under a 16-bit password, and back under the inverse password.

    Gu, Luo, Ryoo, Lee 2020, Password-conditioned Anonymization and Deanonymization with Face Identity Transformers,
    ECCV (arXiv:1911.11759). The training: `masquerade.identity_transformer`. What the paper leaves open, where this
    differs, and why 16 bits keep nobody out who holds the network: docs/fit.md.
    """

    title = "FIT"
    paper = "Gu et al. 2020, Face Identity Transformers, ECCV (arXiv:1911.11759)"
    capabilities = Capabilities(trains=True, keys=Bits(BITS), invertible=True)
    needs = ("identity",)

    class Params(TransformerSettings):
        pass

    class Variant(Settings):
        pass

    def __init__(self, params: Settings, variant: Settings, resources: Resources):
        from masquerade import lineage, training
        from masquerade.identity_transformer.task import transformer

        super().__init__(params, variant, resources)
        tensors, facts = training.load_checkpoint(resources.checkpoint)
        if facts.get("identity") != lineage.md5(resources.backbones["identity"]):
            raise CheckpointError(
                f"{resources.checkpoint} was trained with another identity encoder than "
                f"{resources.backbones['identity']}: what it says of identities would not be about this one."
            )
        self._size = facts["size"]
        self._network: nn.Module = transformer(params).eval().requires_grad_(False)
        training.load_into(self._network, tensors.get("network", {}), resources.checkpoint)

    @classmethod
    def train(cls, params: Settings, job: TrainingJob) -> None:
        from masquerade.identity_transformer import task

        task.train(params, job, discovery.load("backbones", "identity").load(job.backbones["identity"]))

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        """T(I, p). Raises PictureError where the pictures are not of the size that the network was trained on."""
        return self._turned(faces.images, self._password(key))

    def recover(self, images: np.ndarray, key: bytes | None) -> np.ndarray:
        """T(I', -p): the same network, the inverse password. Raises as `anonymize`."""
        return self._turned(images, -self._password(key))

    def statement(self) -> dict[str, object]:
        return {
            "password_bits": BITS,
            "limits": f"{2**BITS} passwords: whoever holds the network and a way to tell a right face can try all.",
        }

    def _password(self, key: bytes | None) -> np.ndarray:
        if key is None or len(key) != BITS // 8:
            raise KeyFormatError(f"The key of this method is {BITS} bits ({BITS // 8} bytes).")
        return of_key(key)

    def _turned(self, images: np.ndarray, password: np.ndarray) -> np.ndarray:
        import torch

        if images.shape[-2:] != (self._size, self._size):
            height, width = images.shape[-2:]
            raise PictureError(f"is {width} x {height} pixels; this network takes {self._size} x {self._size}")
        with torch.inference_mode():
            given = torch.from_numpy(password)
            parts = [self._network(part, given.expand(len(part), -1)) for part in torch.from_numpy(images).split(PART)]
        return torch.cat(parts).numpy()
