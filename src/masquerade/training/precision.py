"""bfloat16 in a training."""

from contextlib import AbstractContextManager, nullcontext

import torch


def mixed(device: torch.device, enabled: bool) -> AbstractContextManager:
    """A block in which convolutions and products of matrices are computed with bfloat16, if ``enabled``.

    On the device "meta", which computes nothing, the block has no effect.
    """
    if not enabled or device.type == "meta":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)
