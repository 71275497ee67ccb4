"""The network of Stage I: attribute encoder and fusion generator. The frozen identity encoder is not part of it."""

from collections.abc import Sequence

from torch import Tensor, nn

from masquerade.methods._disentanglement.settings import DisentanglementSettings
from masquerade.networks.aad import FusionGenerator
from masquerade.networks.patchgan import MultiScaleDiscriminator
from masquerade.networks.unet import AttributeEncoder


class Disentanglement(nn.Module):
    """g (Eq. 8) and h (Eq. 9) of IdentityDP, with the widths of ``settings``.

    Pictures (N, 3, S, S) in [-1, 1] with S = ``settings.size``; identity vectors (N, ``identity_width``), unit.
    """

    def __init__(self, settings: DisentanglementSettings, identity_width: int = 512):
        super().__init__()
        self.size, self.identity_width = settings.size, identity_width
        self.attributes = AttributeEncoder(settings.encoder_widths)
        self.fusion = FusionGenerator(settings.generator_widths, self.attributes.channels, identity_width)

    def forward(self, identity: Tensor, images: Tensor) -> Tensor:
        """The picture with the attributes of ``images`` and an ``identity``: X^ = h(r_id, g(X)) (Eq. 13)."""
        return self.fuse(identity, self.attributes(images))

    def fuse(self, identity: Tensor, maps: Sequence[Tensor]) -> Tensor:
        """X^ = h(r_id, r_att), Eq. 9."""
        return self.fusion(identity, maps)


def discriminator(settings: DisentanglementSettings) -> MultiScaleDiscriminator:
    """The multi-scale discriminator of Stage I."""
    return MultiScaleDiscriminator(**settings.discriminator.model_dump())
