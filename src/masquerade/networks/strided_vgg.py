"""VGG without maxima: the classifier of attributes (Simonyan and Zisserman 2015; Springenberg et al. 2015)."""

from collections.abc import Sequence

from torch import Tensor, nn

WIDTHS_16, UNITS_16 = (64, 128, 256, 512, 512), (2, 2, 3, 3, 3)
"""Channels and convolutions of the five stages of VGG-16."""


class StridedVGG(nn.Module):
    """Images (N, 3, size, size) -> (N, answers). Thirteen convolutions, as in VGG-16: the defaults.

    The first convolution of each stage halves the picture, in the place of a maximum (Springenberg et al. 2015); each
    is followed by batch normalisation and ReLU. The last features are not averaged over space: where something is seen
    says what it is in an aligned face, and a smile is a small thing in a known place.
    """

    def __init__(
        self,
        answers: int,
        size: int,
        widths: Sequence[int] = WIDTHS_16,
        units: Sequence[int] = UNITS_16,
        dropout: float = 0.5,
    ):
        super().__init__()
        side = size // 2 ** len(widths)
        if side < 1:
            raise ValueError(f"size is {size}; {len(widths)} halvings need at least {2 ** len(widths)} pixels.")
        layers = []
        for inputs, outputs, count in zip((3, *widths[:-1]), widths, units, strict=True):
            layers += _layer(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False))
            for _ in range(count - 1):
                layers += _layer(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(widths[-1] * side * side, answers))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images))


def _layer(convolution: nn.Conv2d) -> list[nn.Module]:
    return [convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU()]
