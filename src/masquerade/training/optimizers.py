"""Adam for all weights, as in the papers, or Muon for the matrices of a network and Adam for the rest."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from masquerade.training import distributed, precision


@dataclass(frozen=True)
class AdamOptions:
    """What few trainings change. ``decay``: decoupled weight decay (AdamW) of all weights except gains and biases."""

    decay: float = 0.0
    epsilon: float = 1e-8


class Optimizers:
    """Optimizes all weights of some modules. ``named``: the optimizers by name. A training keeps the state of all.

    ``muon``: the numbers of dimensions of the weights that Muon optimizes: 2 for matrices, 4 for the kernels of
    convolutions, which Muon gets as matrices in the same memory. Weights whose name contains a word of ``spared`` stay
    with Adam. ``others``: the learning rate of Adam as a share of ``rate``.
    """

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        rate: float,
        betas: tuple[float, float],
        muon: Collection[int] = (),
        others: float = 1.0,
        *,
        spared: Collection[str] = (),
        adam: AdamOptions = AdamOptions(),
    ):
        named = [item for key, module in modules.items() for item in module.named_parameters(prefix=key)]
        self.weights = [weight for _, weight in named]
        muon_weights = [
            weight
            for name, weight in named
            if weight.ndim in muon and len(weight) > 3 and not any(word in name for word in spared)
        ]
        self.matrices = {nn.Parameter(weight.detach().flatten(1)): weight for weight in muon_weights}
        muon_ids = {id(weight) for weight in muon_weights}
        rest = [weight for weight in self.weights if id(weight) not in muon_ids]
        groups = [
            {"params": [weight for weight in rest if weight.ndim > 1], "weight_decay": adam.decay},
            {"params": [weight for weight in rest if weight.ndim <= 1], "weight_decay": 0.0},
        ]
        self._rates = {"adam": rate * others, "muon": rate}
        self.named: dict[str, torch.optim.Optimizer] = {
            "adam": torch.optim.AdamW(groups, lr=self._rates["adam"], betas=betas, eps=adam.epsilon)
        }
        if muon_weights:
            self.named["muon"] = Muon(list(self.matrices), lr=rate, weight_decay=adam.decay)

    @classmethod
    def with_kernels(
        cls,
        modules: Mapping[str, nn.Module],
        learning_rate: float,
        kernel_rate: float,
        betas: tuple[float, float],
        muon: Collection[int] = (4,),
        **more,
    ) -> "Optimizers":
        """Muon at ``kernel_rate`` for the weights of ``muon`` dimensions, Adam at ``learning_rate`` for the rest.

        A ``kernel_rate`` of 0 uses Adam for all weights.
        """
        rate = kernel_rate or learning_rate
        return cls(modules, rate, betas, muon if kernel_rate else (), learning_rate / rate, **more)

    def state_dict(self) -> dict[str, dict]:
        return {name: optimizer.state_dict() for name, optimizer in self.named.items()}

    def load_state_dict(self, state: Mapping[str, dict]) -> None:
        for name, optimizer in self.named.items():
            optimizer.load_state_dict(state[name])

    def descend(self, loss: Tensor, share: float, clip: float | None = None) -> None:
        """Take one step on ``loss`` at ``share`` of the largest learning rates.

        ``clip``: the largest norm of the gradient of all weights.
        """
        for weight in self.weights:
            weight.grad = None
        with precision.without_bfloat16(loss.device):
            loss.backward()
        distributed.average_gradients(weight.grad for weight in self.weights)
        if clip is not None:
            nn.utils.clip_grad_norm_(self.weights, clip)
        for matrix, weight in self.matrices.items():
            matrix.grad = None if weight.grad is None else weight.grad.flatten(1)
        for name, optimizer in self.named.items():
            for group in optimizer.param_groups:
                group["lr"] = self._rates[name] * share
            optimizer.step()


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Take one step of a plain optimizer on ``loss``."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    distributed.average_gradients(weight.grad for group in optimizer.param_groups for weight in group["params"])
    optimizer.step()


def weigh_losses(losses: Mapping[str, Tensor], weights: Any) -> Tensor:
    """The sum of losses, each with the weight that ``weights``, a block of parameters, has under its name."""
    total: Any = sum(getattr(weights, name) * value for name, value in losses.items())
    return total


def compute_warmup_cosine(step: int, steps: int) -> float:
    """The share of the largest learning rate at a step: it rises for a tenth of the steps, then falls as a cosine."""
    progress = (step + 1) / steps
    return progress / 0.1 if progress < 0.1 else 0.5 * (1 + math.cos(math.pi * (progress - 0.1) / 0.9))


def compute_cooldown(step: int, steps: int, cooldown: float) -> float:
    """The share of the largest learning rate at a step: 1, then a linear fall to 0.02 over the last steps.

    ``cooldown``: the share of the steps in which it falls.
    """
    return min(1.0, max(0.02, (steps - step) / (cooldown * steps))) if cooldown else 1.0


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
        update = orthogonalize(gradient.lerp(average, momentum))
        matrix.mul_(1 - rate * decay)
        matrix.add_(update, alpha=-rate * 0.2 * max(matrix.shape) ** 0.5)


def orthogonalize(matrix: Tensor) -> Tensor:
    """The nearest matrix with singular values of 1, (M, N), as near as ITERATIONS come (0.7 to 1.2)."""
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide.to(torch.bfloat16 if precision.bfloat16_pays(matrix.device) else torch.float32)
    wide = wide / wide.norm().clamp(min=SMALLEST)
    first, second, third = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=second, alpha=third), wide, beta=first)
    return (wide.T if matrix.shape[0] > matrix.shape[1] else wide).to(matrix.dtype)
