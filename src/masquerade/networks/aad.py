"""The fusion generator: a face from an identity vector and multi-level attribute maps.

Adaptive Attentional Denormalization (AAD) of FaceShifter (Li et al. 2019, arXiv:1912.13457, section 3.1), as
IdentityDP (Wen et al. 2022, Eq. 9 and Figure 3) and Cao et al. 2021 use it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate


class AAD(nn.Module):
    """One AAD layer: at each position an attention mask chooses between identity and attributes.

        h' = InstanceNorm(h)
        A  = gamma_att(z_att) * h' + beta_att(z_att)      per position
        I  = gamma_id(z_id)  * h' + beta_id(z_id)         per channel
        M  = sigmoid(conv(h'))                            (N, 1, H, W)
        out = (1 - M) * A + M * I

    Input h (N, C, H, W), z_att (N, C_att, H, W), z_id (N, D). Output (N, C, H, W).
    """

    def __init__(self, width: int, attribute_width: int, identity_width: int):
        super().__init__()
        self.norm = nn.InstanceNorm2d(width, affine=False)
        self.attribute = nn.Conv2d(attribute_width, 2 * width, 1)  # gamma_att, beta_att
        self.identity = nn.Linear(identity_width, 2 * width)  # gamma_id, beta_id
        self.mask = nn.Conv2d(width, 1, 1)

    def forward(self, features: Tensor, attributes: Tensor, identity: Tensor) -> Tensor:
        normed = self.norm(features)
        scale_a, shift_a = self.attribute(attributes).chunk(2, dim=1)
        scale_i, shift_i = self.identity(identity)[:, :, None, None].chunk(2, dim=1)
        mask = torch.sigmoid(self.mask(normed))
        # (1 - M) A + M I, combined so that the normed features are multiplied once
        scale = torch.lerp(scale_a, scale_i.expand_as(scale_a), mask)
        shift = torch.lerp(shift_a, shift_i.expand_as(shift_a), mask)
        return torch.addcmul(shift, scale, normed)


class AADBlock(nn.Module):
    """AAD ResBlk (c_in, c_out), Figure 3: twice (AAD, ReLU, 3 x 3 convolution); a third time if channels change."""

    def __init__(self, into: int, out: int, attribute_width: int, identity_width: int):
        super().__init__()

        def unit(width: int) -> nn.ModuleDict:
            convolution = nn.Conv2d(into, width, 3, 1, 1, bias=False)
            return nn.ModuleDict({"aad": AAD(into, attribute_width, identity_width), "convolution": convolution})

        self.main = nn.ModuleList([unit(into), unit(out)])
        self.skip = unit(out) if into != out else None

    def forward(self, features: Tensor, attributes: Tensor, identity: Tensor) -> Tensor:
        def apply(unit: nn.Module, inner: Tensor) -> Tensor:
            assert isinstance(unit, nn.ModuleDict)
            return unit["convolution"](torch.relu(unit["aad"](inner, attributes, identity)))

        main = apply(self.main[1], apply(self.main[0], features))
        return main + (features if self.skip is None else apply(self.skip, features))


class FusionGenerator(nn.Module):
    """X = h(r_id, r_att), Eq. 9: n AAD residual blocks, one for each attribute map; the size doubles between blocks.

    ``widths``: input channels of the n blocks; the published network has (1024, 1024, 1024, 1024, 512, 256, 128, 64).
    The first features, 2 x 2, are computed from the identity vector alone. The enlargement between blocks aligns the
    corners, as both public re-implementations of FaceShifter do (docs/identitydp.md).

    Input: identity (N, D) unit vectors; n maps, coarsest first, (N, attribute_widths[k], s, s) with s = 2 ** (k + 1).
    Output (N, 3, 2 ** n, 2 ** n) in (-1, 1).
    """

    def __init__(self, widths: Sequence[int], attribute_widths: Sequence[int], identity_width: int):
        super().__init__()
        self.start = nn.ConvTranspose2d(identity_width, widths[0], 2)
        self.blocks = nn.ModuleList(
            AADBlock(into, out, attribute_width, identity_width)
            for into, out, attribute_width in zip(widths, [*widths[1:], 3], attribute_widths, strict=True)
        )

    def forward(self, identity: Tensor, attributes: Sequence[Tensor]) -> Tensor:
        features = self.start(identity[:, :, None, None])  # (N, widths[0], 2, 2)
        for level, (block, maps) in enumerate(zip(self.blocks, attributes, strict=True)):
            if level:
                features = interpolate(features, scale_factor=2, mode="bilinear", align_corners=True)
            features = block(features, maps, identity)
        return torch.tanh(features)
