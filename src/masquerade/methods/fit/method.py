"""FIT: a face identity transformer with a password."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core import discovery
from masquerade.core.errors import CheckpointError, KeyFormatError, PictureError
from masquerade.core.images import Faces
from masquerade.core.keys import Bits, stacked
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods.fit.passwords import BITS, of_key
from masquerade.methods.fit.settings import FitSettings
from masquerade.networks.inputs import device, place
from masquerade.training.job import TrainingJob

if TYPE_CHECKING:
    from torch import nn

BATCH = 32  # pictures at a time


class FIT(Method):
    """Transforms a face into another person's under a 16-bit password, and back under the inverse password.

    Gu, Luo, Ryoo, Lee 2020, Password-conditioned Anonymization and Deanonymization with Face Identity Transformers,
    ECCV (arXiv:1911.11759). One network does both. docs/fit.md lists what the paper leaves open and what differs, and
    gives the reason why 16 bits do not protect against an attacker with the network.
    """

    title = "FIT"
    paper = "Gu et al. 2020, Face Identity Transformers, ECCV (arXiv:1911.11759)"
    capabilities = Capabilities(trains=True, keys=Bits(BITS), invertible=True)
    needs = ("identity",)
    architecture = ("width", "halvings", "blocks", "reach")

    class Params(FitSettings):
        pass

    class Variant(Settings):
        pass

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        from masquerade.core import fingerprints
        from masquerade.methods.fit.training import transformer
        from masquerade.training import checkpoints

        super().__init__(params, variant, resources)
        assert resources.checkpoint is not None
        tensors, facts = checkpoints.load_checkpoint(resources.checkpoint)
        if facts.get("identity") != fingerprints.md5(resources.backbones["identity"]):
            raise CheckpointError(
                f"{resources.checkpoint} was trained with another identity encoder than "
                f"{resources.backbones['identity']}. Use that encoder, or train again."
            )
        self._size = facts["size"]
        network = transformer(params).eval().requires_grad_(False)
        checkpoints.load_into(network, tensors.get("network", {}), resources.checkpoint)
        self._network: nn.Module = place(network)

    @classmethod
    def train(cls, params: Params, job: TrainingJob) -> None:
        from masquerade.methods.fit import training

        training.train(params, job, discovery.load("backbones", "identity").load(job.backbones["identity"]))

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """T(I, p). Raises PictureError if the pictures do not have the size of the training pictures."""
        return self._transformed(faces.images, self._passwords(keys))

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """T(I', -p): the same network, the inverse password. Raises as `anonymize`."""
        return self._transformed(images, -self._passwords(keys))

    def statement(self) -> dict[str, object]:
        return {
            "password_bits": BITS,
            "limits": f"{2**BITS} passwords: whoever holds the network and a way to tell a right face can try all.",
        }

    def _passwords(self, keys: Sequence[bytes] | None) -> np.ndarray:
        if any(len(key) != BITS // 8 for key in keys or [b""]):
            raise KeyFormatError(f"The key of fit is {BITS} bits. Give {BITS // 8} bytes.")
        return stacked(keys, of_key)

    def _transformed(self, images: np.ndarray, passwords: np.ndarray) -> np.ndarray:
        import torch

        if images.shape[-2:] != (self._size, self._size):
            height, width = images.shape[-2:]
            raise PictureError(f"is {width} x {height} pixels; this network takes {self._size} x {self._size}")
        with torch.inference_mode():
            batches = (torch.from_numpy(array).split(BATCH) for array in (images, passwords))
            pairs = ([part.to(device()) for part in pair] for pair in zip(*batches, strict=True))
            parts = [self._network(*pair).cpu() for pair in pairs]
        return torch.cat(parts).numpy()
