"""The discriminator between the style codes of an encoder and W, the codes of the mapping network."""

from torch import Tensor, nn

from masquerade.networks.equalized import SLOPE, ActivatedLinear, EqualLinear


class CodeDiscriminator(nn.Module):
    """Codes (N, style) -> logits (N, 1) of being in W: Nitzan et al. 2020, as in Tov et al. 2021, section 4.1.2.

    ``layers``: hidden ones, with leaky rectifiers of slope 0.2. ``equalized``: layers of StyleGAN2, not plain ones.
    """

    def __init__(self, style: int, layers: int, equalized: bool):
        super().__init__()

        def hidden() -> nn.Module:
            if equalized:
                return ActivatedLinear(style, style)
            return nn.Sequential(nn.Linear(style, style), nn.LeakyReLU(SLOPE))

        last = EqualLinear(style, 1) if equalized else nn.Linear(style, 1)
        self.layers = nn.Sequential(*(hidden() for _ in range(layers)), last)

    def forward(self, codes: Tensor) -> Tensor:
        return self.layers(codes)
