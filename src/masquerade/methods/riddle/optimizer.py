"""Ranger: rectified Adam (Liu et al. 2020, arXiv:1908.03265) with LookAhead (Zhang et al. 2019, arXiv:1907.08610)."""

import torch

EVERY, SHARE = 6, 0.5  # fast steps for each slow step, and the length of a slow step: Zhang et al. 2019, section 3


class Ranger(torch.optim.RAdam):
    """RAdam with LookAhead: every 6 steps the weights go back half of the way since the last such step."""

    def __init__(self, parameters, lr: float):
        super().__init__(parameters, lr=lr, betas=(0.95, 0.999), eps=1e-5)

    @torch.no_grad()
    def step(self, closure=None):
        weights = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        slow = [self.state[weight].get("slow", weight.detach().clone()) for weight in weights]
        loss = super().step(closure)
        for weight, kept in zip(weights, slow, strict=True):
            state = self.state[weight]
            state["slow"] = kept
            if int(state["step"]) % EVERY == 0:
                weight.copy_(kept.lerp_(weight, SHARE))  # phi <- phi + alpha (theta - phi), theta <- phi
        return loss
