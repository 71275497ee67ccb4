"""The improved residual networks of face recognition: IR-SE of ArcFace (Deng et al. 2019), IR of AdaFace, the margin.

The names of the tensors are those of the published ``model_ir_se50.pth`` (input_layer, body, output_layer) and
``adaface_ir50_ms1mv2.ckpt`` (without the prefix ``model.``), so that their weights load strictly. Other widths and
units give a smaller network of the same class. The encoders of pSp and e4e use the same trunk.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

EMBEDDING = 512
WIDTHS_50, UNITS_50 = (64, 64, 128, 256, 512), (3, 4, 14, 3)


class SqueezeExcitation(nn.Module):
    """Scales each channel by a weight computed from the means of all channels (Hu et al. 2018, Eq. 2-4)."""

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


class Subsampling(nn.Module):
    """Each ``stride``-th pixel: the published code's ``MaxPool2d(1, stride)``, which would also look for a maximum."""

    def __init__(self, stride: int):
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return x if self.stride == 1 else x[..., :: self.stride, :: self.stride]


class ResidualUnit(nn.Module, ABC):
    """Residual layers added to a shortcut; (N, inputs, H, W) -> (N, outputs, H / stride, W / stride)."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        if inputs == outputs:
            self.shortcut_layer = Subsampling(stride)
        else:
            self.shortcut_layer = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        self.res_layer = nn.Sequential(*self.layers(inputs, outputs, stride))

    @staticmethod
    @abstractmethod
    def layers(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        """The residual layers."""

    def forward(self, x: Tensor) -> Tensor:
        return self.res_layer(x) + self.shortcut_layer(x)


class Bottleneck(ResidualUnit):
    """BN - conv - PReLU - conv - BN - SE; the second convolution has the ``stride``."""

    @staticmethod
    def layers(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        return [
            nn.BatchNorm2d(inputs),
            nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            SqueezeExcitation(outputs),
        ]


def build_stem(width: int) -> nn.Sequential:
    """The first layers: (N, 3, H, W) -> (N, width, H, W)."""
    return nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.PReLU(width))


def build_stages(unit: type[ResidualUnit], widths: Sequence[int], units: Sequence[int]) -> nn.Sequential:
    """The residual units of all stages, one after the other; the first unit of a stage halves the image.

    ``widths``: channels of the stem and of each stage. ``units``: units of each stage.
    """
    inputs, body = widths[0], []
    for outputs, count in zip(widths[1:], units, strict=True):
        for number in range(count):
            body.append(unit(inputs, outputs, stride=2 if number == 0 else 1))
            inputs = outputs
    return nn.Sequential(*body)


def build_embedding_layers(width: int, side: int, dropout: float, last: nn.Module) -> nn.Sequential:
    """The last layers: (N, width, side, side) -> (N, 512)."""
    linear = nn.Linear(width * side * side, EMBEDDING)
    return nn.Sequential(nn.BatchNorm2d(width), nn.Dropout(dropout), nn.Flatten(), linear, last)


class IRSE(nn.Module):
    """(N, 3, size, size) -> (N, 512), not normalized. The defaults are the paper's depth 50, at 112 pixels.

    ``widths``: channels of the stem and of the four stages. ``units``: residual units of each stage.
    """

    def __init__(
        self,
        size: int = 112,
        widths: Sequence[int] = WIDTHS_50,
        units: Sequence[int] = UNITS_50,
    ):
        super().__init__()
        self.input_layer = build_stem(widths[0])
        self.body = build_stages(Bottleneck, widths, units)
        side = -(-size // 2 ** len(units))  # each stage rounds up
        self.output_layer = build_embedding_layers(widths[-1], side, 0.5, nn.BatchNorm1d(EMBEDDING))

    def forward(self, x: Tensor) -> Tensor:
        return self.output_layer(self.body(self.input_layer(x)))


class Block(ResidualUnit):
    """BN - conv - BN - PReLU - conv - BN; the second convolution has the ``stride``."""

    @staticmethod
    def layers(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        return [
            nn.BatchNorm2d(inputs),
            nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]


class AdaFaceIR(nn.Module):
    """Faces (N, 3, 112, 112), BGR in [-1, 1] -> (unit embedding (N, 512), its length before normalization (N, 1)).

    The length grows with the quality of the image. Depth 50 (IR-50).
    """

    def __init__(self):
        super().__init__()
        self.input_layer = build_stem(WIDTHS_50[0])
        self.body = build_stages(Block, WIDTHS_50, UNITS_50)
        self.output_layer = build_embedding_layers(WIDTHS_50[-1], 7, 0.4, nn.BatchNorm1d(EMBEDDING, affine=False))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.output_layer(self.body(self.input_layer(x)))
        length = x.norm(dim=1, keepdim=True)
        return x / length, length


class ArcMargin(nn.Module):
    """Logits s * cos(theta_j), and s * cos(theta_y + m) for the true class y; theta_j is the angle to class center j.

    Beyond theta_y = pi - m the cosine would rise again. There the logit is cos(theta_y) - m sin(m), as in the authors'
    code, and falls further.
    """

    def __init__(self, embedding: int, classes: int, scale: float, margin: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, embedding))
        nn.init.xavier_uniform_(self.weight)
        self.scale, self.margin = scale, margin

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """(N, embedding), (N,) -> logits (N, classes)."""
        cosine = functional.linear(functional.normalize(embeddings), functional.normalize(self.weight))
        return compute_margin_logits(cosine, labels, self.scale, self.margin)


def compute_margin_logits(cosine: Tensor, labels: Tensor, scale: float, margin: float) -> Tensor:
    """Cosines of embeddings and class centers (N, classes), labels (N,) -> ArcFace's logits (N, classes)."""
    true = cosine.gather(1, labels[:, None]).clamp(-1 + 1e-7, 1 - 1e-7)
    angle, added = true.acos(), torch.tensor(margin)
    shifted = torch.where(angle < torch.pi - added, (angle + added).cos(), true - added * added.sin())
    return scale * cosine.scatter(1, labels[:, None], shifted)


class FixedPReLU(nn.Module):
    """w x + (1 - w) max(x, 0), with the slopes w of a PReLU: the same except for rounding (He et al. 2015).

    PyTorch's own gradient also computes that of the slopes, which on a CPU takes eight times as long.
    """

    slope: Tensor
    rest: Tensor

    def __init__(self, layer: nn.PReLU):
        super().__init__()
        slope = layer.weight.detach().view(1, -1, 1, 1)
        self.register_buffer("slope", slope)
        self.register_buffer("rest", 1.0 - slope)

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcmul(x * self.slope, torch.relu(x), self.rest)
