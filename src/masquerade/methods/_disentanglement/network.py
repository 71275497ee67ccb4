"""The network of Stage I: attribute encoder and fusion generator. The frozen identity encoder is not part of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from masquerade.core.errors import ParameterError
from masquerade.methods._disentanglement.settings import DisentanglementSettings, LatentSettings
from masquerade.networks.aad import FusionGenerator
from masquerade.networks.identity_mapping import IdentityMapping
from masquerade.networks.unet import AttributeEncoder


class StageOne(nn.Module):
    """g (Eq. 8) and h (Eq. 9) of IdentityDP: ``attributes`` and `fuse`, which the classes below define.

    Pictures (N, 3, ``size``, ``size``) in [-1, 1]; identity vectors (N, ``identity_width``), unit. ``basis`` (span,
    ``identity_width``): orthonormal rows, which `spanned` sets (docs/identitydp.md).
    """

    basis: Tensor
    attributes: Callable[[Tensor], list[Tensor]]

    def __init__(self, settings: DisentanglementSettings, size: int, identity_width: int):
        super().__init__()
        self.size, self.identity_width = size, identity_width
        self.register_buffer("basis", torch.eye(settings.span or identity_width, identity_width), settings.span > 0)

    def forward(self, identity: Tensor, images: Tensor) -> Tensor:
        """The picture with the attributes of ``images`` and an ``identity``: X^ = h(r_id, g(X)) (Eq. 13)."""
        return self.fuse(identity, self.attributes(images))

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """X^ = h(r_id, r_att), Eq. 9."""
        raise NotImplementedError

    def projected(self, identity: Tensor) -> Tensor:
        """Identity vectors (N, D) -> their parts in the span of ``basis``, scaled to length 1."""
        return normalize(identity @ self.basis.mT @ self.basis) if len(self.basis) < self.identity_width else identity

    @torch.no_grad()
    def spanned(self, identities: Tensor) -> None:
        """Sets ``basis``: the directions with the most energy in ``identities`` (M, D), unit vectors of people."""
        _, directions = torch.linalg.eigh(identities.mT @ identities)  # ascending
        self.basis.copy_(directions[:, -len(self.basis) :].mT)


class Disentanglement(StageOne):
    """The networks of the paper, with the widths of ``settings``."""

    def __init__(self, settings: DisentanglementSettings, identity_width: int = 512):
        super().__init__(settings, settings.size, identity_width)
        self.attributes = AttributeEncoder(settings.encoder_widths)
        self.fusion = FusionGenerator(settings.generator_widths, self.attributes.channels, identity_width)

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        return self.fusion(self.projected(identity), maps)


class LatentDisentanglement(StageOne):
    """Frozen ``inverter`` and ``generator`` with a mapping M between them, which alone learns (ours).

    r_att is the W+ that the encoder of the inversion gives, one map (N, layers, style) without the mean of W. h draws
    M(r_id, r_att), and M starts at r_att. Raises ParameterError if it has too few hidden units for that.
    """

    def __init__(self, settings: DisentanglementSettings, generator: Any, inverter: Any, identity_width: int = 512):
        super().__init__(settings, generator.size, identity_width)
        assert isinstance(settings.latent, LatentSettings)
        self._frozen = (generator, inverter)  # a tuple, so that PyTorch does not count them among what learns
        hidden = settings.latent.hidden
        self.mapping = IdentityMapping(generator.layers, len(self.basis), generator.style_width, hidden, shared=True)
        try:
            self.mapping.start_at_attributes()
        except ValueError as error:
            raise ParameterError(f"params.yaml: latent.hidden of identitydp and cao21: {error}.") from error

    def attributes(self, images: Tensor) -> list[Tensor]:
        generator, inverter = self._frozen
        return [inverter(images) - generator.latent_avg]

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        generator, _ = self._frozen
        return generator.synthesize(self.code(identity, maps))

    def code(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """The W+ (N, layers, style) that `fuse` draws."""
        generator, _ = self._frozen
        return generator.latent_avg + self.mapping(normalize(identity @ self.basis.mT), maps[0])


def size_of(settings: DisentanglementSettings, frozen: Mapping[str, Any]) -> int:
    """Side in pixels of the pictures of the network of ``settings``."""
    return settings.size if settings.latent is None else frozen["generator"].size


def built(settings: DisentanglementSettings, frozen: Mapping[str, Any], identity_width: int = 512) -> StageOne:
    """The network of ``settings``. ``frozen``: role -> network; a latent one takes generator and inversion."""
    if settings.latent is None:
        return Disentanglement(settings, identity_width)
    return LatentDisentanglement(settings, frozen["generator"], frozen["inversion"], identity_width)
