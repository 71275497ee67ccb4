"""TF32, bfloat16 and channels last, in trainings, optimizations and frozen networks.

`settings.Arithmetic` is the block of parameters. In a deterministic process on a GPU a training computes as its block
says: its batches are the same each time, and so are its bytes. Frozen networks compute in 32 bits there, because with
TF32 or bfloat16 a face depends on its batch.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from masquerade.training.settings import Arithmetic


def use_bfloat16(
    device: torch.device, enabled: bool, frozen: bool = False, cache: bool = True
) -> AbstractContextManager:
    """A block in which convolutions and products of matrices are computed with bfloat16, if ``enabled``.

    It has no effect where bfloat16 does not pay, and on frozen networks on a GPU in a deterministic process. ``cache``:
    whether weights are converted once in the block, which must then not update them.
    """
    enabled_here = enabled and not (frozen and is_exact(device)) and bfloat16_pays(device)
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=cache) if enabled_here else nullcontext()


def without_bfloat16(device: torch.device) -> AbstractContextManager:
    """A block within `use_bfloat16` that computes in the types of its tensors: a backward pass, or exact products."""
    available = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if available else nullcontext()


@contextmanager
def use_tf32(arithmetic: Arithmetic | None, device: torch.device, frozen: bool = False) -> Iterator[None]:
    """A block in which a GPU computes products of 32-bit floats in TF32, unless the precision is float32.

    It is for forward and backward passes. None, or ``frozen`` in a deterministic process: as outside of the block.
    """
    if arithmetic is None or (frozen and is_exact(device)):
        yield
        return
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = arithmetic.precision != "float32"
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@contextmanager
def use_arithmetic(arithmetic: Arithmetic | None, device: torch.device, own: bool = False) -> Iterator[None]:
    """A block for one step of a training. ``own``: the step itself says what uses bfloat16 (`use_bfloat16`)."""
    whole = arithmetic is not None and arithmetic.reduced and not own
    with use_tf32(arithmetic, device), use_bfloat16(device, whole, cache=False):
        yield


def prepare_networks(modules: Iterable[nn.Module], arithmetic: Arithmetic | None) -> None:
    """Let networks compute channels last, if ``arithmetic`` says so. Their weights stay as they are."""
    if arithmetic is None or not arithmetic.channels_last:
        return
    for part in {part for module in modules for part in module.modules()}:
        part.register_forward_pre_hook(_in_channels_last)


def _in_channels_last(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs of a module; maps (N, C, H, W) with the channels of a pixel side by side."""
    maps = (isinstance(value, Tensor) and value.ndim == 4 for value in inputs)
    pairs = zip(inputs, maps, strict=True)
    return tuple(value.contiguous(memory_format=torch.channels_last) if is_map else value for value, is_map in pairs)


def find_precision(arithmetic: Arithmetic, device: torch.device) -> str:
    """The precision in which frozen networks compute on a device: ``arithmetic.precision``, or float32."""
    if arithmetic.reduced:
        return "bfloat16" if not is_exact(device) and bfloat16_pays(device) else "float32"
    return "float32" if device.type == "cpu" or is_exact(device) else arithmetic.precision


def is_exact(device: torch.device) -> bool:
    """Whether frozen networks compute in 32 bits alone: on a GPU, in a deterministic process."""
    return device.type != "cpu" and torch.are_deterministic_algorithms_enabled()


def bfloat16_pays(device: torch.device) -> bool:
    """Whether products of bfloat16 are faster than those of 32-bit floats on a device.

    On a processor without instructions for bfloat16 (avx512_bf16 and amx_bf16 of x86-64, bf16 of ARM) a convolution
    takes 45 times as long (AVX2). With avx512_bf16 alone it takes half the time on an EPYC of Zen 5, and a product of
    matrices a quarter. On a Xeon without AMX it takes 1.2 to 1.9 times as long, so Intel's need amx_bf16. All of these
    were measured. The device "meta", which stands for a GPU in tests, computes nothing.
    """
    if device.type != "cpu":
        return device.type != "meta"
    capabilities = torch.cpu.get_capabilities()
    vector = capabilities.get("avx512_bf16") and "Intel" not in capabilities.get("cpu_name", "")
    return bool(vector or capabilities.get("amx_bf16") or capabilities.get("bf16"))
