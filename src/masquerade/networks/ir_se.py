"""IR-SE: the improved residual network with squeeze-and-excitation of ArcFace (Deng et al. 2019; Hu et al. 2018).

The names of its tensors are those of the published ``model_ir_se50.pth`` (input_layer, body, output_layer), so that
its weights load strictly; a narrower or shallower network is the same class with other widths and units.
"""

from collections.abc import Sequence

from torch import Tensor, nn

WIDTHS_50, UNITS_50 = (64, 64, 128, 256, 512), (3, 4, 14, 3)


class SqueezeExcitation(nn.Module):
    """Channels weighted by what all of them hold on average (Hu et al. 2018, Eq. 2-4)."""

    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        hidden = max(channels // reduction, 1)
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, hidden, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.fc2 = nn.Conv2d(hidden, channels, 1, bias=False)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.sigmoid(self.fc2(self.relu(self.fc1(self.avg_pool(x)))))


class Bottleneck(nn.Module):
    """BN - conv - PReLU - conv - BN - SE beside a shortcut; the second convolution halves where ``stride`` is 2."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        if inputs == outputs:
            self.shortcut_layer = nn.MaxPool2d(1, stride)
        else:
            self.shortcut_layer = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        self.res_layer = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            SqueezeExcitation(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.res_layer(x) + self.shortcut_layer(x)


class IRSE(nn.Module):
    """(N, 3, size, size) -> (N, embedding), not normalised. Depth 50 of the paper: the defaults, at 112 pixels.

    ``widths``: channels of the stem and of the four stages, each of which halves the picture and has ``units`` blocks.
    """

    def __init__(
        self,
        size: int = 112,
        widths: Sequence[int] = WIDTHS_50,
        units: Sequence[int] = UNITS_50,
        embedding: int = 512,
        dropout: float = 0.5,
    ):
        super().__init__()
        stem, *stages = widths
        self.input_layer = nn.Sequential(nn.Conv2d(3, stem, 3, 1, 1, bias=False), nn.BatchNorm2d(stem), nn.PReLU(stem))
        blocks, inputs = [], stem
        for outputs, count in zip(stages, units, strict=True):
            for number in range(count):
                blocks.append(Bottleneck(inputs, outputs, stride=2 if number == 0 else 1))
                inputs = outputs
        self.body = nn.Sequential(*blocks)
        side = -(-size // 2 ** len(stages))  # each stage rounds up
        self.output_layer = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.Dropout(dropout),
            nn.Flatten(),
            nn.Linear(inputs * side * side, embedding),
            nn.BatchNorm1d(embedding),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.output_layer(self.body(self.input_layer(x)))
