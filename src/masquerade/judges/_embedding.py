"""What the judges share that are recognisers trained here."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from masquerade import discovery
from masquerade.errors import CheckpointError
from masquerade.judges import Judge
from masquerade.settings import Settings


class EmbeddingJudge(Judge):
    """The unit embedding of the backbone of the same name; preprocessing belongs to the backbone."""

    quantities = {"embedding": (512,)}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        super().__init__(params, backbones)
        (name,) = self.needs
        if name not in backbones:
            raise CheckpointError(f"the judge {name} needs the backbone {name}: run `snakemake backbones` first.")
        self._network = discovery.load("backbones", name).load(backbones[name])

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        import torch

        with torch.inference_mode():
            return {"embedding": self._network(torch.from_numpy(images)).numpy()}
