"""bfloat16 in trainings and frozen networks."""

from contextlib import AbstractContextManager, nullcontext

import torch


def mixed(device: torch.device, enabled: bool, frozen: bool = False) -> AbstractContextManager:
    """A block in which convolutions and products of matrices are computed with bfloat16, if ``enabled``.

    It has no effect where bfloat16 does not pay, and on frozen networks on a GPU in a deterministic process: with
    bfloat16, a face depends on its batch.
    """
    exact = frozen and device.type != "cpu" and torch.are_deterministic_algorithms_enabled()
    used = enabled and not exact and bfloat16_pays(device)
    return torch.autocast(device.type, torch.bfloat16) if used else nullcontext()


def bfloat16_pays(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster than those of 32-bit floats on a device.

    On a processor without instructions for bfloat16 (avx512_bf16 and amx_bf16 of x86-64, bf16 of ARM) a convolution
    takes 45 times as long (AVX2, measured). The device "meta" computes nothing.
    """
    if device.type != "cpu":
        return device.type != "meta"
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
