"""VGG without max pooling: the attribute classifier (Simonyan and Zisserman 2015; Springenberg et al. 2015)."""

from collections.abc import Sequence

from torch import Tensor, nn

WIDTHS_16, UNITS_16 = (64, 128, 256, 512, 512), (2, 2, 3, 3, 3)
"""Channels and convolutions of the five stages of VGG-16."""


class StridedVGG(nn.Module):
    """Images (N, 3, size, size) -> (N, answers). The defaults are the thirteen convolutions of VGG-16.

    The first convolution of each stage halves the picture and replaces max pooling (Springenberg et al. 2015). Batch
    normalization and ReLU follow each convolution. The last features are not averaged over space: in an aligned face
    the position of a detail, such as a smile, is known and informative.
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
