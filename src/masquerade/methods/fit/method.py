"""FIT: a face identity transformer with a password."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core.errors import KeyFormatError
from masquerade.core.images import Faces, check_size
from masquerade.core.keys import Bits, stack_per_key
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods.fit import (
    BITS,
    FitSettings,
    read_key,
)
from masquerade.networks.inputs import apply_in_batches, place
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 32  # images at a time


class FIT(Method):
    """Transforms a face into another person's under a 16-bit password, and back under the inverse password.

    Gu, Luo, Ryoo, Lee 2020, Password-conditioned Anonymization and Deanonymization with Face Identity Transformers,
    ECCV (arXiv:1911.11759). One network does both. docs/fit_and_riddle.md lists what the paper leaves open and what
    differs, and gives the reason why 16 bits do not protect against an attacker with the network.
    """

    title = "FIT"
    paper = "Gu et al. 2020, Face Identity Transformers, ECCV (arXiv:1911.11759)"
    capabilities = Capabilities(trains=True, keys=Bits(BITS), invertible=True)
    needs = ("identity",)
    architecture = ("size", "width", "halvings", "blocks", "small_scale.reach")

    Params = FitSettings
    params: FitSettings

    def __init__(self, params: FitSettings, variant: Settings, resources: Resources):
        from masquerade.methods.fit.training import TIED, build_transformer
        from masquerade.training.checkpoints import Saved

        super().__init__(params, variant, resources)
        saved = Saved(self.checkpoint, resources.backbones, TIED)
        self._size: int = saved.metadata["size"]
        self._network = place(saved.frozen("network", build_transformer(params)))

    @classmethod
    def train(cls, params: FitSettings, job: TrainingJob) -> None:
        from masquerade.methods.fit import training

        training.train(params, job)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """T(I, p). Raises PictureError if the images do not have the size of the training images."""
        return self._transform(faces.images, self._passwords(keys))

    def recover(self, images: np.ndarray, keys: Sequence[bytes] | None) -> np.ndarray:
        """T(I', -p): the same network, the inverse password. Raises as `anonymize`."""
        return self._transform(images, -self._passwords(keys))

    def statement(self) -> dict[str, object]:
        return {
            "password_bits": BITS,
            "limits": f"{2**BITS} passwords: whoever holds the network and a way to tell a right face can try all.",
        }

    def _passwords(self, keys: Sequence[bytes] | None) -> np.ndarray:
        if any(len(key) != BITS // 8 for key in keys or [b""]):
            raise KeyFormatError(f"The key of fit is {BITS} bits. Give {BITS // 8} bytes.")
        return stack_per_key(keys, read_key)

    def _transform(self, images: np.ndarray, passwords: np.ndarray) -> np.ndarray:
        check_size(images, self._size)
        return apply_in_batches(self._draw, BATCH, images, passwords).numpy()

    def _draw(self, images: "Tensor", passwords: "Tensor") -> "Tensor":
        from masquerade.methods.fit.training import enlarge, reduce

        return enlarge(self._network(reduce(images, self.params.size), passwords), self._size)
