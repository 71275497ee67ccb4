"""Adam as the papers have it, or Muon for the matrices of a network with Adam for the rest."""

from collections.abc import Collection, Mapping

import torch
from torch import Tensor, nn


class Optimisers:
    """Optimises all weights of some modules. ``named``: the optimisers whose state a training keeps.

    ``muon``: weights of so many dimensions are optimised by Muon; of 2 they are matrices, a convolution's kernel (4) it
    sees as one in the same memory. ``others``: the learning rate of what is left to Adam, as a share of ``rate``.
    """

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        rate: float,
        betas: tuple[float, float],
        muon: Collection[int] = (),
        others: float = 1.0,
    ):
        self.weights = [weight for module in modules.values() for weight in module.parameters()]
        chosen = [weight for weight in self.weights if weight.ndim in muon and len(weight) > 3]
        self.matrices = {nn.Parameter(weight.detach().flatten(1)): weight for weight in chosen}
        known = {id(weight) for weight in chosen}
        left = [weight for weight in self.weights if id(weight) not in known]
        self.named: dict[str, torch.optim.Optimizer] = {"adam": torch.optim.Adam(left, lr=rate * others, betas=betas)}
        self._rates = {"adam": rate * others, "muon": rate}
        if chosen:
            self.named["muon"] = torch.optim.Muon(
                list(self.matrices), lr=rate, momentum=0.9, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
            )

    def descend(self, loss: Tensor, share: float) -> None:
        """One step down the loss at a share of the largest learning rates."""
        for weight in self.weights:
            weight.grad = None
        loss.backward()
        for matrix, weight in self.matrices.items():
            matrix.grad = None if weight.grad is None else weight.grad.flatten(1)
        for name, optimiser in self.named.items():
            for group in optimiser.param_groups:
                group["lr"] = self._rates[name] * share
            optimiser.step()


def cooled(step: int, steps: int, cooldown: float) -> float:
    """The share of the largest learning rate at a step: it falls to a fiftieth over the last ``cooldown`` of them."""
    return min(1.0, max(0.02, (steps - step) / (cooldown * steps))) if cooldown else 1.0
