"""The network of Stage I: attribute encoder and fusion generator. The frozen identity encoder is not part of it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from masquerade.methods._disentanglement.settings import DisentanglementSettings
from masquerade.networks.aad import FusionGenerator
from masquerade.networks.unet import AttributeEncoder


class Disentanglement(nn.Module):
    """g (Eq. 8) and h (Eq. 9) of IdentityDP, with the widths of ``settings``.

    Pictures (N, 3, S, S) in [-1, 1] with S = ``settings.size``; identity vectors (N, ``identity_width``), unit.
    ``basis`` (span, ``identity_width``): orthonormal rows, which `spanned` sets (docs/identitydp.md).
    """

    basis: Tensor

    def __init__(self, settings: DisentanglementSettings, identity_width: int = 512):
        super().__init__()
        self.size, self.identity_width = settings.size, identity_width
        self.attributes = AttributeEncoder(settings.encoder_widths)
        self.fusion = FusionGenerator(settings.generator_widths, self.attributes.channels, identity_width)
        self.register_buffer("basis", torch.eye(settings.span or identity_width, identity_width), settings.span > 0)

    def forward(self, identity: Tensor, images: Tensor) -> Tensor:
        """The picture with the attributes of ``images`` and an ``identity``: X^ = h(r_id, g(X)) (Eq. 13)."""
        return self.fuse(identity, self.attributes(images))

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """X^ = h(r_id, r_att), Eq. 9."""
        return self.fusion(self.projected(identity), maps)

    def projected(self, identity: Tensor) -> Tensor:
        """Identity vectors (N, D) -> their parts in the span of ``basis``, scaled to length 1."""
        return normalize(identity @ self.basis.mT @ self.basis) if len(self.basis) < self.identity_width else identity

    @torch.no_grad()
    def spanned(self, identities: Tensor) -> None:
        """Sets ``basis``: the directions with the most energy in ``identities`` (M, D), unit vectors of people."""
        _, directions = torch.linalg.eigh(identities.mT @ identities)  # ascending
        self.basis.copy_(directions[:, -len(self.basis) :].mT)
