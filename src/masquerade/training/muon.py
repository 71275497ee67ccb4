"""Muon: momentum whose update of a matrix is made orthogonal (Jordan et al. 2024)."""

import torch
from torch import Tensor, nn

from masquerade.training import precision

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic Newton-Schulz iteration: Jordan et al. 2024
ITERATIONS = 5
SMALLEST = 1e-7  # norm of a gradient


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, made orthogonal, for matrices. Its steps are as long as those of AdamW (Liu et al. 2025, 2.2).

    The same as torch.optim.Muon with ``adjust_lr_fn="match_rms_adamw"``, which always computes with bfloat16: on a
    processor without instructions for it, a step takes 23 times as long as here (AVX2, 512 x 1152, measured).
    """

    def __init__(self, params, lr: float, momentum: float = 0.9, weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):  # pyright: ignore[reportIncompatibleMethodOverride] - as PyTorch's own
        """One update of all matrices that have a gradient."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is not None:
                    self._update(matrix, matrix.grad, group["lr"], group["momentum"], group["weight_decay"])
        return loss

    def _update(self, matrix: nn.Parameter, gradient: Tensor, rate: float, momentum: float, decay: float) -> None:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        average = state["momentum_buffer"].lerp_(gradient, 1 - momentum)
        update = orthogonal(gradient.lerp(average, momentum))
        matrix.mul_(1 - rate * decay)
        matrix.add_(update, alpha=-rate * 0.2 * max(matrix.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """The nearest matrix with singular values of 1, (M, N), as near as ITERATIONS come (0.7 to 1.2)."""
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide.to(torch.bfloat16 if precision.bfloat16_pays(matrix.device) else torch.float32)
    wide = wide / wide.norm().clamp(min=SMALLEST)
    first, second, third = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=second, alpha=third), wide, beta=first)
    return (wide.T if matrix.shape[0] > matrix.shape[1] else wide).to(matrix.dtype)
