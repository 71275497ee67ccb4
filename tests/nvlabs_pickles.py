"""Writes pickles of random weights as NVlabs' training saves its snapshots.

Which objects are in such a pickle, and which names it calls, was read from NVlabs/stylegan2-ada-pytorch (commit
d72cc7d) and NVlabs/stylegan3 (c233a91): training_loop.py, torch_utils/persistence.py, training/networks.py. Both codes
were run once, and their pickles name what NAMES holds. A module is saved with its whole ``__dict__``: PyTorch's hooks
and its set of unsaved buffers, gains that NumPy computed, the arguments of its constructor.
"""

import io
import pickle
import sys
import types
from collections.abc import Mapping

import numpy as np
from torch import Tensor, nn

NAMES = {
    ("builtins", "set"),
    ("collections", "OrderedDict"),
    ("dnnlib.util", "EasyDict"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "scalar"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch.storage", "_load_from_bytes"),
    ("torch_utils.persistence", "_reconstruct_persistent_obj"),
}
"""What a snapshot names: pickle protocol 3 (Python 3.7, which NVlabs' README requires) and NumPy 1."""
PARAMETERS = ("weight", "bias", "const", "noise_strength")
"""The last part of the names of learned tensors; the others are buffers."""


def snapshot(state: Mapping[str, Tensor], monkeypatch, conv_clamp: float | None = 256, activation: str = "lrelu",
             numpy: str = "numpy.core") -> bytes:  # fmt: skip
    """The pickle of a generator with the tensors ``state`` (NVlabs' names).

    ``conv_clamp`` and ``activation`` are those of its layers. ``numpy``: the package of NumPy's internals, numpy.core
    or numpy._core (NumPy 2). NVlabs' packages exist only while the pickle is written.
    """
    with monkeypatch.context() as patch:
        module_class, dictionary = _packages(patch)
        root = module_class(z_dim=512, synthesis_kwargs=dictionary(conv_clamp=conv_clamp, num_fp16_res=4))
        for name, value in state.items():
            *path, last = name.split(".")
            place = root
            for part in path:
                if part not in place._modules:
                    place.add_module(part, module_class())
                place = place.get_submodule(part)
            if last in PARAMETERS:
                place.register_parameter(last, nn.Parameter(value.clone(), requires_grad=False))
            else:
                place.register_buffer(last, value.clone())
        for name, module in root.named_modules():
            kind = name.rpartition(".")[2]
            if kind in ("conv0", "conv1"):
                module.activation, module.act_gain, module.conv_clamp = activation, np.sqrt(2), conv_clamp
            elif kind == "torgb":
                module.weight_gain, module.conv_clamp = 1 / np.sqrt(512), conv_clamp
            elif kind == "affine" or kind.startswith("fc"):
                module.activation, module.weight_gain = "linear", 1 / np.sqrt(512)
        content = {"training_set_kwargs": {"resolution": 32}, "G": None, "D": None, "G_ema": root, "augment_pipe": None}
        written = pickle.dumps(content, protocol=3)
    return written.replace(b"numpy._core.", numpy.encode() + b".").replace(b"numpy.core.", numpy.encode() + b".")


def names(pickled: bytes) -> set[tuple[str, str]]:
    """The names that a pickle of protocol 3 calls. Nothing of it is run."""
    import pickletools

    calls = (argument for code, argument, _ in pickletools.genops(io.BytesIO(pickled)) if code.name == "GLOBAL")
    return {tuple(call.split(" ")) for call in calls}


def _packages(patch) -> tuple[type, type]:
    """Stand-ins for NVlabs' class of modules, and for its dictionary, under NVlabs' names."""

    def _reconstruct_persistent_obj(meta):
        raise AssertionError("the converter must not call what the pickle names")

    class EasyDict(dict):
        pass

    class Module(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            self._init_args, self._init_kwargs = args, kwargs

        def __reduce__(self):
            meta = {"type": "class", "version": 6, "module_src": "import os", "class_name": "X", "state": vars(self)}
            return _reconstruct_persistent_obj, (meta,), None

    for module, item in (("torch_utils.persistence", _reconstruct_persistent_obj), ("dnnlib.util", EasyDict)):
        item.__module__, item.__qualname__ = module, item.__name__
        made = types.ModuleType(module)
        setattr(made, item.__name__, item)
        patch.setitem(sys.modules, module.partition(".")[0], types.ModuleType(module.partition(".")[0]))
        patch.setitem(sys.modules, module, made)
    return Module, EasyDict
