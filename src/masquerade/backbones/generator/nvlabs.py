"""Reads NVlabs' StyleGAN2 pickles without running any code from them.

Such a pickle holds whole Python objects with their source code. Only the names below are accepted: containers, tensors
and their storages, the wrapper of NVlabs' modules, which is replaced by an inert record of its state, and sets and
numbers of NumPy, which are replaced by inert objects. Any other name in the file is an error.
"""

import collections
import io
import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from masquerade.backbones.generator import layouts, torch_internals
from masquerade.core import files
from masquerade.core.errors import CheckpointError
from masquerade.training.weight_files import Inert


class _Module:
    """The state of a pickled module: plain dictionaries of parameters, buffers and further modules."""

    def __init__(self, meta: dict):
        self.state = dict(meta["state"])


def _storage(content: bytes) -> Any:
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


KNOWN = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("dnnlib.util", "EasyDict"): dict,
    ("torch_utils.persistence", "_reconstruct_persistent_obj"): _Module,
    ("torch._utils", "_rebuild_tensor_v2"): torch_internals.REBUILD_TENSOR,
    ("torch._utils", "_rebuild_parameter"): torch_internals.REBUILD_PARAMETER,
    ("torch.storage", "_load_from_bytes"): _storage,
    ("builtins", "set"): Inert,  # the names of buffers that are not saved (torch.nn.Module), up to pickle protocol 3
    ("numpy", "dtype"): Inert,  # this and the next two: gains that NumPy computed
    ("numpy.core.multiarray", "scalar"): Inert,
    ("numpy._core.multiarray", "scalar"): Inert,  # NumPy 2
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return KNOWN[module, name]
        except KeyError:
            raise CheckpointError(
                f"the pickle names {module}.{name}, which is no tensor and no container: the file is not opened"
            ) from None


def convert(pickled: Path, output: Path) -> int:
    """Write the averaged generator of an NVlabs pickle in rosinality's layout. Returns its number of tensors.

    Raises CheckpointError if the file has an unknown name, is cut, or holds no generator.
    """
    try:
        with Path(pickled).open("rb") as file:
            content = _Reader(file).load()
    except CheckpointError as error:
        raise CheckpointError(f"{pickled}: {error}.") from error
    except Exception as error:  # a cut or foreign pickle raises many kinds
        raise CheckpointError(f"{pickled} cannot be read ({type(error).__name__}: {error}).") from error
    if not isinstance(content, dict) or not isinstance(content.get("G_ema"), _Module):
        raise CheckpointError(f"{pickled} holds no averaged generator (the key G_ema of NVlabs' pickles).")
    state = layouts.nvlabs(dict(_tensors(content["G_ema"], "")), pickled)
    mean, limit = state.pop("latent_avg"), _clamp(content["G_ema"], pickled)
    with files.written(output) as temporary:
        torch.save({"g_ema": state, "latent_avg": mean, **({} if limit is None else {"conv_clamp": limit})}, temporary)
    return len(state) + 1


def _clamp(generator: _Module, path: Path) -> float | None:
    """``conv_clamp``: the largest magnitude of the convolutions' output, 256 by default in NVlabs' training; or None.

    Raises CheckpointError if the layers differ in it, or if they are not those of StyleGAN2 (leaky rectifiers).
    """
    layers = [module.state for module in _modules(generator) if "conv_clamp" in module.state]
    limits = {layer["conv_clamp"] for layer in layers}
    if len(limits) != 1 or not {type(limit) for limit in limits} <= {int, float, type(None)}:
        raise CheckpointError(f"{path}: conv_clamp should be one number or None in all convolutions, and is {limits}.")
    kinds = {layer["activation"] for layer in layers if "activation" in layer}  # ToRGB has none
    if kinds != {"lrelu"}:
        raise CheckpointError(f"{path}: the activations are {kinds}; only lrelu, StyleGAN2's, is supported.")
    return limits.pop()


def _modules(module: _Module):
    """A module and all modules in it."""
    yield module
    for child in module.state.get("_modules", {}).values():
        if isinstance(child, _Module):
            yield from _modules(child)


def _tensors(module: _Module, prefix: str):
    """(name, tensor) of a module and all modules in it."""
    for kind in ("_parameters", "_buffers"):
        for name, value in module.state.get(kind, {}).items():
            if isinstance(value, Tensor):
                yield prefix + name, value.detach().float()
    for name, child in module.state.get("_modules", {}).items():
        if isinstance(child, _Module):
            yield from _tensors(child, f"{prefix}{name}.")
