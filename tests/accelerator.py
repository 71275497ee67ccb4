"""Stand-ins of a GPU for the tests: a pretended one, and its operations without a deterministic form.

Every tensor of the pretended GPU stays in the processor's memory and keeps its values, so that whole methods run. What
is recorded follows PyTorch's rules: `to` and `cpu` copy between the sides, an operation needs all its tensors on one
side (except single numbers and indices), its result lies there too, and NumPy reads no tensor of the GPU.

In the contract tests a processor has the backward nodes of a deterministic GPU (`masquerade.networks.deterministic`),
except for three operations that PyTorch itself replaces there: bilinear interpolation, replicated edges and attention.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

GPU = torch.device("meta")
"""What ``tensor.device`` returns for a tensor on the pretended GPU: no code of PyTorch computes there by itself."""
MIXING = {"__getitem__", "__setitem__", "copy_", "index_put_", "__set__", "_has_compatible_shallow_copy_type"}
"""Functions whose tensors may lie on both sides: indices, copies, and the data of a parameter. The first one decides
where the result lies."""
READING = {"numpy", "__array__"}


class Accelerator(TorchFunctionMode):
    """Records, while it is active, the tensors on the pretended GPU, and the networks that run.

    ``ran``: the classes of the modules whose forward pass ran. ``astray``: those with a tensor or an input elsewhere.
    """

    def __init__(self):
        super().__init__()
        self._storages: dict[int, StorageWeakRef] = {}  # a weak reference keeps an address from being used again
        self._backwards = False
        self.ran: set[str] = set()
        self.astray: set[str] = set()

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor lies on the pretended GPU."""
        with torch._C.DisableTorchFunction():
            reference = self._storages.get(tensor.untyped_storage()._cdata)
        return reference is not None and not reference.expired()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        given = list(_tensors((args, kwargs)))
        placed = any(self.holds(tensor) for tensor in given)
        if name == "__get__" and function == Tensor.device.__get__:
            return GPU if placed else function(*args)
        if name in ("to", "cpu", "cuda"):
            return self._moved(function, name, args, kwargs)
        if placed and name in READING:
            raise TypeError("can't convert a tensor of the accelerator to numpy: copy it with cpu() first")
        both = {self.holds(tensor) for tensor in given if tensor.ndim} == {True, False}
        if name in MIXING:
            placed = bool(given) and self.holds(given[0])
        elif both:
            raise RuntimeError(f"{name}: expected all tensors to be on the same device")
        if "device" in kwargs:
            wanted = kwargs["device"]
            if wanted is not None and _is_gpu(wanted):
                kwargs["device"], placed = torch.device("cpu"), True
        self._backwards = name == "backward"
        return self._record(function(*args, **kwargs), placed)

    def _moved(self, function, name, args, kwargs):
        """The result of ``to``, ``cpu`` and ``cuda``: a copy if the tensor changes its side."""
        source, *rest = args
        before = self.holds(source)
        after, kept = before, []
        if name != "to":
            after, kept = name == "cuda", []
        for item in rest if name == "to" else ():
            if isinstance(item, Tensor):
                after = self.holds(item)
                kept.append(item.dtype)
            elif isinstance(item, str | torch.device):
                after = _is_gpu(item)
            elif item is not None:
                kept.append(item)
        if name == "to" and kwargs.get("device") is not None:
            after = _is_gpu(kwargs["device"])
        options = {key: value for key, value in kwargs.items() if key != "device"}
        kept = [item for item in kept if not isinstance(item, bool)]
        with torch._C.DisableTorchFunction():
            result = source.to(*kept, **options) if name == "to" and (kept or options) else source
            if after != before:
                result = result.clone()
        return self._record(result, after)

    def _record(self, result, placed: bool):
        if placed:
            with torch._C.DisableTorchFunction():
                for tensor in _tensors(result):
                    storage = tensor.untyped_storage()
                    self._storages[storage._cdata] = StorageWeakRef(storage)
        return result

    def watch(self, module: nn.Module, inputs: tuple) -> None:
        """Before each forward pass: note the module, and whether a parameter, buffer or input lies elsewhere.

        What a backward pass computes again is left out, and so are PyTorch's norms of weights, which run when a network
        is built.
        """
        if self._backwards or type(module).__module__.startswith("torch.nn.utils."):
            return
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        self.ran.add(type(module).__name__)
        if not all(self.holds(tensor) for tensor in [*own, *_tensors(inputs)] if tensor.numel() > 1):
            self.astray.add(type(module).__name__)


@contextlib.contextmanager
def pretended(monkeypatch) -> Iterator[Accelerator]:
    """Within the block there is a pretended GPU, and `torch.cuda.is_available` says so."""
    accelerator = Accelerator()
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        patch.setattr(torch.backends.cuda, "is_built", lambda: False)  # a CUDA build would look for the real one
        for name, answer in (("reset_peak_memory_stats", None), ("memory_allocated", 0), ("max_memory_allocated", 1)):
            patch.setattr(torch.cuda, name, lambda answer=answer: answer)
        patch.setattr(torch.cuda, "mem_get_info", lambda: (2**33, 2**33))
        hook = register_module_forward_pre_hook(accelerator.watch)
        try:
            with accelerator:
                yield accelerator
        finally:
            hook.remove()
            torch.set_deterministic_debug_mode("default")


def _is_gpu(device: object) -> bool:
    return torch.device(device).type in ("cuda", "meta") if isinstance(device, str | torch.device) else True


def _tensors(value: object) -> Iterator[Tensor]:
    """The tensors in nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


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
        names.update(list_nodes(outputs))
        return run(outputs, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.autograd, "_engine_run_backward", noted)
        yield names


def list_nodes(outputs: Iterable[Tensor]) -> set[str]:
    """The names of all nodes from which ``outputs`` were computed."""
    seen, waiting = set(), [output.grad_fn for output in outputs]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
    return {node.name() for node in seen}
