"""The one reader of published weight files: it runs no code from them, and loads them strictly.

`read` takes a .safetensors file, a PyTorch file (tensors and plain containers alone) and a TorchScript program, such as
OpenAI's CLIP. The caller names the tensors that it leaves out.

    content = read(path)                                        # {"state_dict": {"stem.weight": (64, 3, 7, 7), ...}}
    tensors = select_tensors(content, path, under="state_dict")  # {"stem.weight": (64, 3, 7, 7), ...}
    network = load(Network(), rename_tensors(tensors, {"stem.weight": "conv1.weight", ...}, path), path)

`load_file` does the same for a file whose names are those of the network.
"""

import argparse
import logging
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from masquerade.core.errors import CheckpointError
from masquerade.training import checkpoints, torchscript

logger = logging.getLogger(__name__)

Network = TypeVar("Network", bound=nn.Module)

COUNTER = "num_batches_tracked"
"""A buffer of batch normalization, used only by training with momentum None. PyTorch before 0.4.1 does not save it."""
UNREADABLE = (
    pickle.UnpicklingError, SafetensorError, zipfile.BadZipFile, RuntimeError, OSError, EOFError, ValueError, KeyError,
    AttributeError, TypeError, IndexError,
)  # fmt: skip
"""What a damaged or foreign file raises while it is read."""
LIGHTNING_CLASSES = tuple(
    f"pytorch_lightning.callbacks.{name}"
    for name in ("model_checkpoint.ModelCheckpoint", "lr_monitor.LearningRateMonitor", "early_stopping.EarlyStopping")
)
"""Classes that are dictionary keys in old checkpoints of PyTorch Lightning, beside the weights."""


ARRAYS = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
"""What a pickle of arrays may name: NumPy's function (before and since version 2) and classes for arrays."""


class Inert:
    """Stands for a class of `LIGHTNING_CLASSES`, which is not imported. It stores nothing and does nothing."""

    def __init__(self, *_: object, **__: object):
        pass

    def __setstate__(self, _: object) -> None:
        pass


def read(path: Path) -> Any:
    """The content of a weight file: tensors and plain containers.

    Raises CheckpointError naming the file when it is missing, damaged, or holds anything else.
    """
    if not Path(path).is_file():
        raise CheckpointError(f"{path} is missing: place the published weight file there, or correct its path.")
    allowed = [argparse.Namespace, *((Inert, name) for name in LIGHTNING_CLASSES)]
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        if torchscript.is_program(path):
            return torchscript.read_state(path)
        with torch.serialization.safe_globals(allowed):
            return torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    """The error of a file that cannot be read, with the reason."""
    if match := re.search(r"GLOBAL (\S+) was not an allowed global|Unsupported class (\S+)", str(error)):
        return CheckpointError(
            f"{path} contains a call of '{match[1] or match[2]}', and code from a file is never run. It is not the "
            "published file, or it holds more than weights: fetch it again from its publisher."
        )
    reason = (str(error).splitlines() or ["no reason given"])[0][:200]
    return CheckpointError(
        f"{path} cannot be read as a file of weights ({type(error).__name__}: {reason}). "
        "It is cut, altered, or another kind of file: fetch it again from its publisher."
    )


class _Arrays(pickle.Unpickler):
    """Reads plain containers and arrays of numbers. Any other name ends the reading before anything is run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ARRAYS:
            raise pickle.UnpicklingError(f"GLOBAL {module}.{name} was not an allowed global")
        return ARRAYS[module, name]


def read_arrays(path: Path) -> dict[str, Tensor]:
    """The arrays of a pickle of nested dictionaries, such as the weights of a Flax network: dotted name -> tensor.

    Raises CheckpointError naming the file when it is damaged, or holds anything but arrays of numbers.
    """
    found: dict[str, Tensor] = {}

    def collect(value: object, name: str) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                collect(part, f"{name}.{key}" if name else str(key))
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            found[name] = torch.tensor(value)
        else:
            raise pickle.UnpicklingError(f"{name or 'its content'} is {type(value).__name__} and no array of numbers")

    try:
        with path.open("rb") as file:
            collect(_Arrays(file).load(), "")
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    return found


def select_tensors(
    content: Any, path: Path, without: Mapping[str, str] | None = None, under: str = ""
) -> dict[str, Tensor]:
    """Returns the tensors of a state dict by name.

    ``without``: prefix of the names of tensors to leave out -> description of them, for the log. ``under``: the key of
    ``content`` that holds the state dict; '' when ``content`` is the state dict. Raises CheckpointError when there is
    no state dict.
    """
    if under:
        if not isinstance(content, Mapping) or under not in content:
            raise CheckpointError(
                f"{path} is not the expected file: it has no key {under}. Fetch it again from its publisher."
            )
        content = content[under]
    if not isinstance(content, Mapping) or not content or not all(map(torch.is_tensor, content.values())):
        raise CheckpointError(f"{path} is not a file of weights: it should hold tensors by name, and nothing else.")
    selected = dict(content)
    for prefix, description in (without or {}).items():
        dropped = [name for name in selected if name.startswith(prefix)]
        for name in dropped:
            del selected[name]
        if dropped:
            logger.info("%s: %s left out (%s)", path, ", ".join(dropped), description)
    return selected


def load(network: Network, given: Mapping[str, Tensor], path: Path) -> Network:
    """Load strictly; returns the network frozen, in evaluation mode.

    Raises CheckpointError naming the file and the tensors that are missing, left over, of another shape, or hold
    values that are not finite.
    """
    refuse_nan(given, path)
    counters = {name: value for name, value in network.state_dict().items() if name.endswith(COUNTER)}
    checkpoints.load_into(network, {**counters, **given}, path)
    return network.eval().requires_grad_(False)


def load_file(network: Network, path: Path, without: Mapping[str, str] | None = None, under: str = "") -> Network:
    """`load` the tensors of a file whose names are those of the network. Raises as `read` and `select_tensors`."""
    return load(network, select_tensors(read(path), path, without, under), path)


def refuse_nan(given: Mapping[str, Tensor], path: Path) -> None:
    """Raises CheckpointError naming the file and the first tensor with a value that is not finite."""
    for name in sorted(given):
        if not torch.isfinite(given[name]).all():
            raise CheckpointError(f"{path}: {name} holds values that are not numbers. Fetch the file again.")


def rename_tensors(given: Mapping[str, Tensor], names: Mapping[str, str], path: Path) -> dict[str, Tensor]:
    """The tensors under our names. ``names``: published name -> our name, for each tensor of the published network.

    Raises CheckpointError naming the file and the published names that are missing or left over.
    """
    missing, left = sorted(names.keys() - given.keys()), sorted(given.keys() - names.keys())
    if missing or left:
        mistakes = [f"lacks {', '.join(missing[:5])}"] * bool(missing) + [f"also holds {', '.join(left[:5])}"] * bool(
            left
        )
        raise CheckpointError(
            f"{path} {' and '.join(mistakes)} ({len(missing)} tensors missing, {len(left)} left over). It is another "
            "network, or its sizes in params.yaml are not those of the published one."
        )
    return {names[name]: value for name, value in given.items()}
