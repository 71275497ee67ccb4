"""Keywords in the text-image model: the conditions of the network, and the sub-categories of pictures."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.semantics.network import SemanticEncoder
from masquerade.methods.lreorg.settings import Keyword


class Vocabulary:
    """``conditions``: keyword -> the condition (D,) of the network. ``contents``: keyword -> features (C, D) of t_ij.

    A condition has length sqrt(D), so that its numbers are about 1, as those of standardized codes. The features of
    contents have length 1. Both are on the encoder's device. Raises CheckpointError if the text-image model has no text
    encoder.
    """

    @torch.no_grad()
    def __init__(self, encoder: SemanticEncoder, keywords: Mapping[str, Keyword]):
        self.conditions = {name: _spread(encoder.text([keyword.condition])[0]) for name, keyword in keywords.items()}
        self.contents = {
            name: encoder.text(keyword.sentences) for name, keyword in keywords.items() if keyword.contents
        }
        self._scale = encoder.network.logit_scale.exp()

    def condition(self, keyword: str, count: int) -> Tensor:
        """(count, D): the condition of the keyword, once for each picture."""
        return self.conditions[keyword].expand(count, -1)

    def log_shares(self, keyword: str, features: Tensor) -> Tensor:
        """log D(I, t_ij) of Eq. 10: features (N, D) of pictures -> log probabilities of the contents, (N, C).

        The softmax over contents of the cosines, at the temperature of the model, as CLIP classifies.
        """
        cosines = functional.normalize(features, dim=-1) @ self.contents[keyword].T
        return (self._scale * cosines).log_softmax(-1)


def _spread(feature: Tensor) -> Tensor:
    """A unit vector (D,), scaled to length sqrt(D)."""
    return feature * len(feature) ** 0.5
