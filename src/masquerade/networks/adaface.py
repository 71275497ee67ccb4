"""The improved residual network without squeeze-and-excitation, as AdaFace uses it (Kim et al. 2022, arXiv:2204.00964).

The names of its tensors are those of ``adaface_ir50_ms1mv2.ckpt`` behind the prefix ``model.``, so that its weights
load strictly.
"""

from torch import Tensor, nn

from masquerade.networks.ir_se import UNITS_50, WIDTHS_50


class Block(nn.Module):
    """BN - conv - BN - PReLU - conv - BN beside a shortcut; the second convolution halves where ``stride`` is 2."""

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
            nn.BatchNorm2d(outputs),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.res_layer(x) + self.shortcut_layer(x)


class AdaFaceIR(nn.Module):
    """Faces (N, 3, 112, 112), BGR in [-1, 1] -> (unit embedding (N, 512), its length before, (N, 1)).

    The length grows with the quality of the picture. Depth 50 (IR-50).
    """

    def __init__(self):
        super().__init__()
        stem, *stages = WIDTHS_50
        self.input_layer = nn.Sequential(nn.Conv2d(3, stem, 3, 1, 1, bias=False), nn.BatchNorm2d(stem), nn.PReLU(stem))
        blocks, inputs = [], stem
        for outputs, count in zip(stages, UNITS_50, strict=True):
            for number in range(count):
                blocks.append(Block(inputs, outputs, stride=2 if number == 0 else 1))
                inputs = outputs
        self.body = nn.Sequential(*blocks)
        self.output_layer = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.Dropout(0.4),
            nn.Flatten(),
            nn.Linear(inputs * 7 * 7, 512),
            nn.BatchNorm1d(512, affine=False),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.output_layer(self.body(self.input_layer(x)))
        length = x.norm(dim=1, keepdim=True)
        return x / length, length
