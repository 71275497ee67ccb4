"""bfloat16 in a training."""

from contextlib import AbstractContextManager, nullcontext

import torch


def mixed(device: torch.device, enabled: bool) -> AbstractContextManager:
    """A block in which convolutions and products of matrices are computed with bfloat16, if ``enabled``.

    It has no effect on the device "meta", which computes nothing, nor on a processor without instructions for bfloat16:
    there a convolution would take 45 times as long as with 32 bits (AVX2, measured).
    """
    if not enabled or device.type == "meta" or (device.type == "cpu" and not _instructions()):
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def _instructions() -> bool:
    """Whether the processor computes with bfloat16: avx512_bf16 and amx_bf16 of x86-64, bf16 of ARM."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
