"""The improved residual network without squeeze-and-excitation, as AdaFace uses it (Kim et al. 2022, arXiv:2204.00964).

The names of its tensors are those of ``adaface_ir50_ms1mv2.ckpt`` without the prefix ``model.``, so that its weights
load strictly.
"""

from torch import Tensor, nn

from masquerade.networks.ir_se import UNITS_50, WIDTHS_50, ResidualUnit, stages, stem


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

    The length grows with the quality of the picture. Depth 50 (IR-50).
    """

    def __init__(self):
        super().__init__()
        self.input_layer = stem(WIDTHS_50[0])
        self.body = stages(Block, WIDTHS_50, UNITS_50)
        self.output_layer = nn.Sequential(
            nn.BatchNorm2d(WIDTHS_50[-1]),
            nn.Dropout(0.4),
            nn.Flatten(),
            nn.Linear(WIDTHS_50[-1] * 7 * 7, 512),
            nn.BatchNorm1d(512, affine=False),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.output_layer(self.body(self.input_layer(x)))
        length = x.norm(dim=1, keepdim=True)
        return x / length, length
