"""The base class of the judges with a face recognizer that was trained here."""

import numpy as np

from masquerade.judges._trained import TrainedJudge
from masquerade.networks.inputs import device

EMBEDDING = 512


class EmbeddingJudge(TrainedJudge):
    """``embedding``: unit vectors (512,) of the backbone in ``needs``; compare them by their angle."""

    quantities = {"embedding": (EMBEDDING,)}

    def _measure(self, images: np.ndarray) -> dict[str, np.ndarray]:
        import torch

        return {"embedding": self._network(torch.from_numpy(images).to(device())).cpu().numpy()}
