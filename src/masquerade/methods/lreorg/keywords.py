"""Keywords as the text-image model understands them: conditions, and the sub-categories of pictures."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.semantics.network import SemanticEncoder
from masquerade.methods.lreorg.settings import Keyword


class Vocabulary:
    """``conditions``: keyword -> the feature (D,) that the network is told; ``contents``: -> features (C, D) of t_ij.

    The first of length sqrt(D), so that its numbers are about 1 as those of standardised codes are; the others of
    length 1. On the encoder's device. Raises CheckpointError where the text-image model reads no sentences.
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
        """log D(I, t_ij) of Eq. 10: features (N, D) of pictures -> (N, C), how likely each content of the keyword is.

        The softmax over the contents of the cosines at the model's own temperature, as CLIP classifies.
        """
        cosines = functional.normalize(features, dim=-1) @ self.contents[keyword].T
        return (self._scale * cosines).log_softmax(-1)


def _spread(feature: Tensor) -> Tensor:
    """A unit vector (D,) at the length sqrt(D)."""
    return feature * len(feature) ** 0.5
