"""The latent encryptor of RiDDLE (Li et al. 2023, arXiv:2303.05171): a transformer between codes of W+ and a password.

One decoder layer a group of style layers; the codes of the group are the queries, the password is the memory. The same
network encrypts and decrypts.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn


def scaled(groups: Sequence[int], layers: int) -> list[int]:
    """Groups of style layers for a generator with ``layers`` of them, in the proportion of ``groups``.

    The ends of the groups are round(end * layers / sum(groups)): (4, 4, 6) is 3, 3, 4 of 10. Raises ValueError where
    a group would be empty.
    """
    ends = [round(end * layers / sum(groups)) for end in accumulate(groups, initial=0)]
    sizes = [end - start for start, end in pairwise(ends)]
    if min(sizes) < 1:
        raise ValueError(f"{layers} style layers cannot be divided as {tuple(groups)}")
    return sizes


class GroupEncryptor(nn.Module):
    """One group: codes (N, layers, style) and the password of each layer, the same shape -> codes, the same shape.

    A transformer decoder layer (Vaswani et al. 2017), normalised before each part, of ``width`` numbers; linear layers
    lead into it and out of it, and each style layer has a learnt position.
    """

    def __init__(self, layers: int, style: int, width: int, heads: int, hidden: int):
        super().__init__()
        self.enter, self.password, self.leave = (
            nn.Linear(style, width),
            nn.Linear(style, width),
            nn.Linear(width, style),
        )
        self.position = nn.Parameter(torch.zeros(layers, width))
        self.layer = nn.TransformerDecoderLayer(
            width, heads, hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )

    def forward(self, codes: Tensor, password: Tensor) -> Tensor:
        return self.leave(self.layer(self.enter(codes) + self.position, self.password(password)))


class LatentEncryptor(nn.Module):
    """W+ (N, layers, style) and passwords in W (N, style) -> W+ (N, layers, style): encrypts, and decrypts.

    ``groups``: style layers of each group, in the proportion of the published ones. Codes and passwords are centred by
    ``mean`` (style,) and divided by ``deviation`` (), those of W, before the transformer, and the result is brought
    back. Raises ValueError where a group would be empty or ``heads`` does not divide ``width``.
    """

    def __init__(
        self,
        layers: int,
        style: int = 512,
        groups: Sequence[int] = (4, 4, 6),
        width: int = 512,
        heads: int = 4,
        hidden: int = 1024,
    ):
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads cannot share {width} numbers equally")
        self.sizes = scaled(groups, layers)
        self.groups = nn.ModuleList(GroupEncryptor(size, style, width, heads, hidden) for size in self.sizes)
        self.register_buffer("mean", torch.zeros(style))
        self.register_buffer("deviation", torch.ones(()))

    def forward(self, codes: Tensor, password: Tensor) -> Tensor:
        key = self.standardised(password)[:, None].expand_as(codes)  # the same for every layer
        parts = zip(self.groups, self.standardised(codes).split(self.sizes, 1), key.split(self.sizes, 1), strict=True)
        return self.mean + self.deviation * torch.cat([group(*part) for group, *part in parts], dim=1)

    def standardised(self, codes: Tensor) -> Tensor:
        """Codes of W or W+ (..., style), centred and scaled by what is usual in W."""
        return (codes - self.mean) / self.deviation
