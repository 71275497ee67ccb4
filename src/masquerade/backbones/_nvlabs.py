"""NVlabs' StyleGAN2 pickles, read without executing anything of them.

Such a pickle holds whole Python objects with their source code. Here only the names below are known: containers,
tensors and their storages, and the wrapper of NVlabs' modules, in whose place an inert record of the state stands.
Any other name in the file ends the reading.
"""

import collections
import io
import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from masquerade.backbones import _layouts
from masquerade.errors import CheckpointError


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
    ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): torch._utils._rebuild_parameter,
    ("torch.storage", "_load_from_bytes"): _storage,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return KNOWN[module, name]
        except KeyError:
            raise CheckpointError(
                f"the pickle names {module}.{name}, which is no tensor and no container: it is not opened"
            ) from None


def convert(pickled: Path, output: Path) -> int:
    """Write the averaged generator of an NVlabs pickle in the rosinality layout; returns its number of tensors.

    Raises CheckpointError where the file names anything unknown, is cut, or holds no generator.
    """
    try:
        with Path(pickled).open("rb") as file:
            content = _Reader(file).load()
    except CheckpointError as error:
        raise CheckpointError(f"{pickled}: {error}.") from error
    except Exception as error:  # noqa: BLE001 - a cut or foreign pickle raises many kinds
        raise CheckpointError(f"{pickled} cannot be read ({type(error).__name__}: {error}).") from error
    if not isinstance(content, dict) or not isinstance(content.get("G_ema"), _Module):
        raise CheckpointError(f"{pickled} holds no averaged generator (the key G_ema of NVlabs' pickles).")
    state = _layouts.nvlabs(dict(_tensors(content["G_ema"], "")), pickled)
    mean = state.pop("latent_avg")
    temporary = output.with_name(f".{output.name}.part")
    torch.save({"g_ema": state, "latent_avg": mean}, temporary)
    temporary.replace(output)
    return len(state) + 1


def _tensors(module: _Module, prefix: str):
    """(name, tensor) of a module and all modules in it."""
    for kind in ("_parameters", "_buffers"):
        for name, value in module.state.get(kind, {}).items():
            if isinstance(value, Tensor):
                yield prefix + name, value.detach().float()
    for name, child in module.state.get("_modules", {}).items():
        if isinstance(child, _Module):
            yield from _tensors(child, f"{prefix}{name}.")
