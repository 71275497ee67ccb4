"""The losses of DartBlur (Jiang et al. 2023, and the published code), beside that of its detectors."""

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

UNITS = 127.5  # from [-1, 1] to units of 255


def review(made: Tensor, plain: Tensor, masks: Tensor, budget: float) -> Tensor:
    """max(0, d - budget), d the mean smooth L1 distance to the plain blur in the box, in units of 255."""
    apart = smooth_l1_loss(made * UNITS, plain * UNITS, reduction="none") * masks
    return (apart.sum() / (3 * masks.sum()) - budget).relu()


def answers_as_targets(answers: Tensor, truth: Tensor) -> Tensor:
    """A detector's own answers as targets: its probabilities, and its boxes in the cells with a face."""
    boxes = torch.where(truth[:, 1:].isnan(), torch.nan, answers[:, 1:])
    return torch.cat([answers[:, :1].sigmoid(), boxes], dim=1).detach()
