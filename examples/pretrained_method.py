"""A generator with PyTorch weights: an example of a method that loads a trained network (CONTRIBUTING.md)."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from masquerade.core.errors import CheckpointError
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources

if TYPE_CHECKING:
    from torch import nn


class Pretrained(Method):
    """Reconstructs a face with an autoencoder that was trained elsewhere, whose state dict a file holds.

    An example: replace `build_network` by the architecture of your own weights.
    """

    title = "Pretrained autoencoder"
    paper = "Hinton and Salakhutdinov 2006, Science 313(5786), for autoencoders"
    capabilities = Capabilities()

    class Params(Settings):
        weights: str
        """A file of `torch.save(network.state_dict(), path)`, such as ``assets/mine/autoencoder.pt``."""
        sha256: str
        """SHA-256 of that file (`sha256sum FILE`). Another file with the same name is refused, and with a new hash
        here everything that depends on the weights is computed again."""

    params: Params

    def __init__(self, params: Params, variant: Settings, resources: Resources):
        super().__init__(params, variant, resources)
        # torch is imported here and not above, because the graph of jobs is planned without it.
        from masquerade.networks import inputs
        from masquerade.training import weight_files

        path = Path(params.weights)
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != params.sha256:
            raise CheckpointError(f"{path} is not the file of `sha256`. Set the hash that `sha256sum {path}` prints.")
        # Loads strictly: a missing tensor, one too many or one of another shape is an error that names it.
        self.network = inputs.place(weight_files.load_file(build_network(), path))

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """float32 (N, 3, H, W) in [-1, 1], as the images of ``faces``. The result is the same for every seed."""
        from masquerade.networks import inputs

        # The network gets tensors (8, 3, H, W) in [-1, 1] on the GPU, if there is one.
        return inputs.apply_in_batches(self.network, 8, faces.images).numpy()


def build_network() -> "nn.Module":
    """The architecture: its state dict must have the names and shapes of the file."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),  # (N, 3, H, W) -> (N, 16, H / 2, W / 2)
        nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1),  # -> (N, 3, H, W)
        nn.Tanh(),
    )
