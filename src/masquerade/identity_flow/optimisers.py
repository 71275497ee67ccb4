"""Adam as the paper has it, or Muon for the kernels of an encoder with Adam for the rest."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Optimisers:
    """Optimises all weights of some modules. ``named``: the optimisers whose state a training keeps.

    ``matrices``: convolutions by Muon, which sees each kernel as a matrix in the same memory.
    """

    def __init__(
        self, modules: Mapping[str, nn.Module], rate: float, betas: tuple[float, float], matrices: bool = False
    ):
        self.rate = rate
        self.weights = [weight for module in modules.values() for weight in module.parameters()]
        kernels = [weight for weight in self.weights if weight.ndim == 4 and len(weight) > 3] if matrices else []
        self.matrices = {nn.Parameter(weight.detach().flatten(1)): weight for weight in kernels}
        chosen = {id(weight) for weight in kernels}
        self.named: dict[str, torch.optim.Optimizer] = {
            "adam": torch.optim.Adam([w for w in self.weights if id(w) not in chosen], lr=rate, betas=betas)
        }
        if kernels:
            self.named["muon"] = torch.optim.Muon(
                list(self.matrices), lr=rate, momentum=0.9, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
            )

    def descend(self, loss: Tensor, share: float) -> None:
        """One step down the loss at a share of the largest learning rate."""
        for weight in self.weights:
            weight.grad = None
        loss.backward()
        for matrix, weight in self.matrices.items():
            matrix.grad = None if weight.grad is None else weight.grad.flatten(1)
        for optimiser in self.named.values():
            for group in optimiser.param_groups:
                group["lr"] = self.rate * share
            optimiser.step()
