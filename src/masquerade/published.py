"""Published weight files: read without running anything of them, and loaded strictly.

Torch files are read as tensors and plain containers alone. What is left out of a file is named by who loads it.
"""

import argparse
import logging
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from masquerade import repeated, training
from masquerade.errors import CheckpointError

logger = logging.getLogger(__name__)

COUNTER = "num_batches_tracked"
"""Of batch normalisations; PyTorch before 0.4.1 kept none, and nothing but training with momentum None reads it."""
NAMED = tuple(
    f"pytorch_lightning.callbacks.{name}"
    for name in ("model_checkpoint.ModelCheckpoint", "lr_monitor.LearningRateMonitor", "early_stopping.EarlyStopping")
)
"""Classes that old checkpoints of PyTorch Lightning name as keys beside their weights."""


class Inert:
    """Stands for a class of `NAMED`, so that it need not be imported; it keeps nothing and does nothing."""

    def __init__(self, *_: object, **__: object):
        pass

    def __setstate__(self, _: object) -> None:
        pass


def read(path: Path) -> Any:
    """What a torch file holds: tensors and plain containers. Raises CheckpointError naming the file."""
    if repeated.watcher() is not None:  # who counts what a step costs needs no numbers
        return {}
    if not Path(path).is_file():
        raise CheckpointError(f"{path} is missing: place the published weight file there, or correct its path.")
    harmless = [argparse.Namespace, *((Inert, name) for name in NAMED)]
    try:
        with torch.serialization.safe_globals(harmless):
            return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError, KeyError, AttributeError) as error:
        if found := re.search(r"GLOBAL (\S+) was not an allowed global|Unsupported class (\S+)", str(error)):
            raise CheckpointError(
                f"{path} wants '{found[1] or found[2]}' to be called, and nothing of a file is run here. It is not the "
                "published file, or holds more than weights: fetch it again from its publisher."
            ) from error
        raise CheckpointError(
            f"{path} cannot be read as a file of weights ({type(error).__name__}: {str(error).splitlines()[0][:200]}). "
            "It is cut, altered, or of another kind: fetch it again from its publisher."
        ) from error


def tensors(content: Any, path: Path, without: Mapping[str, str] | None = None, under: str = "") -> dict[str, Tensor]:
    """The tensors of a state dict by name. Raises CheckpointError where it is none.

    ``without``: first letters of the names of what is left out on purpose -> what that is. ``under``: the key of
    ``content`` where the state dict lies; '' where ``content`` is it.
    """
    if repeated.watcher() is not None:
        return {}
    if under:
        if not isinstance(content, Mapping) or under not in content:
            raise CheckpointError(f"{path} is another file than is meant: it needs the key {under}.")
        content = content[under]
    if not isinstance(content, Mapping) or not content or not all(map(torch.is_tensor, content.values())):
        raise CheckpointError(f"{path} is no file of weights: it should hold tensors by their names, and nothing else.")
    kept = dict(content)
    for start, what in (without or {}).items():
        dropped = [name for name in kept if name.startswith(start)]
        for name in dropped:
            del kept[name]
        if dropped:
            logger.info("%s: %s left out (%s)", path, ", ".join(dropped), what)
    return kept


def load(network: nn.Module, given: Mapping[str, Tensor], path: Path) -> nn.Module:
    """Load strictly; returns the network frozen, in evaluation mode.

    Raises CheckpointError naming the file and the tensors that are missing, left over, of another shape, or hold
    values that are no numbers.
    """
    if repeated.watcher() is not None:
        return network.eval().requires_grad_(False)
    refuse_nan(given, path)
    counted = {name: value for name, value in network.state_dict().items() if name.endswith(COUNTER)}
    training.load_into(network, {**counted, **given}, path)
    return network.eval().requires_grad_(False)


def refuse_nan(given: Mapping[str, Tensor], path: Path) -> None:
    """Raises CheckpointError naming the file and the first tensor with a value that is not finite."""
    for name in sorted(given):
        if not torch.isfinite(given[name]).all():
            raise CheckpointError(f"{path}: {name} holds values that are not numbers. Fetch the file again.")
