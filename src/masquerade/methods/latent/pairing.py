"""The fake that is nearest to a real face (Barattin et al. 2023, section 3.2, Eq. 1)."""

import torch
from torch import Tensor


def nearest(real: Tensor, fakes: Tensor) -> Tensor:
    """The row of ``fakes`` (M, D) that is nearest to each of ``real`` (N, D) in Euclidean distance, int64 (N,).

    The distances are sums of squared differences: products of matrices would round them.
    """
    return torch.cdist(real, fakes, compute_mode="donot_use_mm_for_euclid_dist").argmin(dim=1)
