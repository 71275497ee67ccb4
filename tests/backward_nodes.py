"""The nodes that backward passes run through, and those that PyTorch cannot compute deterministically on a GPU.

In the contract tests a processor has the nodes of a deterministic GPU (`masquerade.networks.deterministic`), except
for three operations that PyTorch itself replaces there: bilinear interpolation, replicated edges and attention.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

VERSION = "2.13.0"
"""Of PyTorch, whose documentation of `use_deterministic_algorithms` lists the operations of `REFUSED`."""
REFUSED = {
    "torch.nn.AvgPool3d": {"AvgPool3DBackward0"},
    "torch.nn.AdaptiveAvgPool2d": {"AdaptiveAvgPool2DBackward0"},  # one of 1 x 1 is a mean, which has another node
    "torch.nn.AdaptiveAvgPool3d": {"AdaptiveAvgPool3DBackward0"},
    "torch.nn.AdaptiveMaxPool2d": {"AdaptiveMaxPool2DBackward0"},
    "torch.nn.FractionalMaxPool2d": {"FractionalMaxPool2DBackward0"},
    "torch.nn.FractionalMaxPool3d": {"FractionalMaxPool3DBackward0"},
    "torch.nn.MaxUnpool1d": {"MaxUnpool2DBackward0"},
    "torch.nn.MaxUnpool2d": {"MaxUnpool2DBackward0"},
    "torch.nn.MaxUnpool3d": {"MaxUnpool3DBackward0"},
    "torch.nn.functional.interpolate": {  # bilinear and trilinear: see above
        "UpsampleLinear1DBackward0", "UpsampleBicubic2DBackward0", "UpsampleBilinear2DAaBackward0",
        "UpsampleBicubic2DAaBackward0", "UpsampleLanczos2DAaBackward0",
    },
    "torch.nn.ReflectionPad1d": {"ReflectionPad1DBackward0"},
    "torch.nn.ReflectionPad2d": {"ReflectionPad2DBackward0"},
    "torch.nn.ReflectionPad3d": {"ReflectionPad3DBackward0"},
    "torch.nn.NLLLoss": {"NllLoss2DBackward0"},  # of maps; that of rows, NllLossBackward0, is deterministic
    "torch.nn.CTCLoss": {"CtcLossBackward0"},
    "torch.nn.EmbeddingBag": {"EmbeddingBagBackward0"},
    "torch.Tensor.put_": {"PutBackward0"},
    "torch.histc": set(),  # no gradient
    "torch.bincount": set(),  # no gradient
    "torch.median": {"MedianBackward1"},
    "torch.nn.functional.grid_sample": {
        "GridSampler2DBackward0", "GridSampler3DBackward0", "CudnnGridSamplerBackward0",
    },
    "torch.cumsum": {"CumsumBackward0"},
    "torch.Tensor.scatter_reduce": {"ScatterReduceBackward0"},
    "torch.Tensor.resize_": set(),  # of quantized tensors
}  # fmt: skip
"""Operation -> its nodes."""
NONDETERMINISTIC = frozenset().union(*REFUSED.values())


def documented() -> set[str]:
    """The operations that the installed PyTorch refuses in a deterministic process, by its own documentation."""
    text = torch.use_deterministic_algorithms.__doc__ or ""
    refused = text.partition("operations will throw a\n")[2].partition("In addition, ")[0]
    return set(re.findall(r"^        \* :\w+:`([\w.]+)`", refused, re.MULTILINE))


@contextmanager
def differentiated() -> Iterator[set[str]]:
    """The names of the nodes of every backward pass within the block."""
    names, run = set(), torch.autograd._engine_run_backward

    def noted(outputs, *arguments, **options):
        names.update(of(outputs))
        return run(outputs, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.autograd, "_engine_run_backward", noted)
        yield names


def of(outputs: Iterable[Tensor]) -> set[str]:
    """The names of all nodes from which ``outputs`` were computed."""
    seen, waiting = set(), [output.grad_fn for output in outputs]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
    return {node.name() for node in seen}
