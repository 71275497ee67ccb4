"""The low-pass filter of StyleGAN2 (Karras et al. 2020, arXiv:1912.04958), as in its published code."""

import torch
from torch import Tensor, nn
from torch.nn import functional

TAPS = (1.0, 3.0, 3.0, 1.0)


class LowPass(nn.Module):
    """The separable filter [1, 3, 3, 1], with ``up`` - 1 zeros inserted between the pixels; keeps the brightness."""

    kernel: Tensor
    enlarging: Tensor | None

    def __init__(self, up: int, padding: tuple[int, int]):
        super().__init__()
        taps = torch.tensor(TAPS)
        kernel = taps[:, None] * taps[None, :]
        self.register_buffer("kernel", kernel / kernel.sum() * 4)
        self.up, self.padding = up, padding
        self.register_buffer("enlarging", None, persistent=False)

    def quicken(self, size: int) -> None:
        """From now on, enlarge pictures (N, C, size, size) by two products of matrices. Only for ``up`` = 2."""
        taps, inside = torch.tensor(TAPS, device=self.kernel.device), slice(3 - self.padding[0], self.padding[1] - 2)
        ones = torch.eye(size, device=taps.device)[:, None]
        columns = functional.conv_transpose1d(ones, taps[None, None] / taps.sum() * 2, stride=2)
        self.enlarging = columns[:, 0, inside].T.contiguous()

    def forward(self, x: Tensor) -> Tensor:
        if self.enlarging is not None:
            return self.enlarging @ x @ self.enlarging.T
        channels = x.shape[1]
        kernel = self.kernel.flip(0, 1).expand(channels, 1, 4, 4)
        if self.up == 2:  # a cropped transposed convolution inserts the zeros and filters in one step
            first, last = 3 - self.padding[0], 2 - self.padding[1]
            x = functional.conv_transpose2d(x, self.kernel.expand(channels, 1, 4, 4), stride=2, groups=channels)
            return x[..., first : x.shape[-2] - last, first : x.shape[-1] - last]
        first, last = self.padding
        return functional.conv2d(functional.pad(x, (first, last, first, last)), kernel, groups=channels)
