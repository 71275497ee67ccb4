"""The mapping of iFADIT into W+ (Eq. 2), which the latent stand-in of IdentityDP and Cao et al. uses, too."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

SLOPE = 0.2  # of the mapping's leaky rectifier: the published code


class LayerwiseLinear(nn.Module):
    """A linear layer for each style layer: (N, layers, inputs) -> (N, layers, outputs). ``layers`` 1: one for all."""

    def __init__(self, layers: int, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(layers, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(layers, outputs))
        nn.init.normal_(self.weight, std=1 / math.sqrt(inputs))

    def forward(self, x: Tensor) -> Tensor:
        if len(self.weight) == 1:
            return x @ self.weight[0] + self.bias[0]
        return torch.baddbmm(self.bias[:, None], x.transpose(0, 1), self.weight).transpose(0, 1)


class IdentityMapping(nn.Module):
    """M of Eq. 2: identity (N, D) and attributes (N, layers, style) -> W+ (N, layers, style) without its mean.

    Each style layer has an MLP of two layers, whose input is the identity and the attributes of that layer. ``shared``:
    all style layers have the same MLP. The identity, a unit vector, is scaled by sqrt(D), so that its coordinates are
    about 1, like those of the attributes.
    """

    def __init__(self, layers: int, identity: int = 512, style: int = 512, hidden: int = 512, shared: bool = False):
        super().__init__()
        layers = 1 if shared else layers
        self.identity_width, self.style_width = identity, style
        self.first = LayerwiseLinear(layers, identity + style, hidden)
        self.second = LayerwiseLinear(layers, hidden, style)

    def forward(self, identity: Tensor, attributes: Tensor) -> Tensor:
        scaled = identity * math.sqrt(self.identity_width)
        replicated = scaled[:, None].expand(-1, attributes.shape[1], -1)  # R(z): (N, layers, D)
        x = self.first(torch.cat([replicated, attributes], dim=2))  # [R(z), a]
        return self.second(functional.leaky_relu(x, SLOPE))

    @torch.no_grad()
    def start_at_attributes(self) -> None:
        """Initialize M(z, a) = a, which ignores z. Raises ValueError if there are too few hidden units.

        leaky(x) - leaky(-x) = (1 + SLOPE) x, so two hidden units pass on one number. The other units get the identity
        and start with the weight 0 in the second layer.
        """
        style, hidden = self.style_width, self.first.bias.shape[1]
        if hidden < 2 * style:
            raise ValueError(f"{hidden} hidden units cannot pass on {style} numbers: {2 * style} are needed")
        unit = torch.eye(style)
        self.first.weight[:, :, : 2 * style] = 0.0
        self.first.weight[:, self.identity_width :, :style] = unit
        self.first.weight[:, self.identity_width :, style : 2 * style] = -unit
        self.second.weight.zero_()
        self.second.weight[:, :style] = unit / (1 + SLOPE)
        self.second.weight[:, style : 2 * style] = -unit / (1 + SLOPE)
