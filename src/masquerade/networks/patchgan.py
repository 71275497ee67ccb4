"""The multi-scale patch discriminator of pix2pixHD and SPADE.

IdentityDP (Wen et al. 2022) cites SPADE (Park et al. 2019, arXiv:1903.07291, appendix A) for it.
"""

from collections.abc import Iterable

from torch import Tensor, nn
from torch.nn.functional import avg_pool2d
from torch.nn.utils.parametrizations import spectral_norm

SLOPE = 0.2  # of every LeakyReLU: SPADE, appendix A


class PatchDiscriminator(nn.Module):
    """One scale: ``depth`` convolutions 4 x 4, the last with stride 1, then one to a map of scores (N, 1, h, w)."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 2), nn.LeakyReLU(SLOPE)]
        out = width
        for level in range(1, depth):
            into, out = (min(width * 2**step, 8 * width) for step in (level - 1, level))
            convolution = nn.Conv2d(into, out, 4, 1 if level == depth - 1 else 2, 2, bias=False)
            layers += [spectral_norm(convolution), nn.InstanceNorm2d(out), nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(out, 1, 4, 1, 2))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


class MultiScale(nn.Module):
    """One discriminator for each scale: the first gets the images, each further one images half the size.

    Input (N, 3, S, S). Output: one map of scores for each scale, finest first.
    """

    def __init__(self, discriminators: Iterable[nn.Module]):
        super().__init__()
        self.scales = nn.ModuleList(discriminators)

    def forward(self, images: Tensor) -> list[Tensor]:
        scores = []
        for level, discriminator in enumerate(self.scales):
            if level:
                images = avg_pool2d(images, 3, 2, 1, count_include_pad=False)
            scores.append(discriminator(images))
        return scores


class MultiScaleDiscriminator(MultiScale):
    """The same network, with other weights, on images halved 0, 1, ..., ``scales`` - 1 times.

    Input (N, 3, S, S) in [-1, 1]. Output: ``scales`` maps of scores, finest first; larger means more real.
    """

    def __init__(self, width: int, depth: int, scales: int):
        super().__init__(PatchDiscriminator(width, depth) for _ in range(scales))
