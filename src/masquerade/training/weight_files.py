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
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from masquerade.core.errors import CheckpointError
from masquerade.training import checkpoints

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
        if is_program(path):
            return read_program(path)
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
    arrays: dict[str, Tensor] = {}

    def collect(value: object, name: str) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                collect(part, f"{name}.{key}" if name else str(key))
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            arrays[name] = torch.tensor(value)
        else:
            raise pickle.UnpicklingError(f"{name or 'its content'} is {type(value).__name__} and no array of numbers")

    try:
        with path.open("rb") as file:
            collect(_Arrays(file).load(), "")
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    return arrays


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
    missing, left_over = sorted(names.keys() - given.keys()), sorted(given.keys() - names.keys())
    if missing or left_over:
        lists = {"lacks": missing, "also holds": left_over}
        mistakes = " and ".join(f"{verb} {', '.join(some[:5])}" for verb, some in lists.items() if some)
        raise CheckpointError(
            f"{path} {mistakes} ({len(missing)} tensors missing, {len(left_over)} left over). It is another network, "
            "or its sizes in params.yaml are not those of the published one."
        )
    return {names[name]: value for name, value in given.items()}


# The weights of a TorchScript program, read from its archive without running any of its code.
#
# Such an archive is a zip: ``data.pkl`` holds the objects with their attributes, ``data/<number>`` the bytes of
# tensors, and ``code/`` text that names the parameters and buffers of each class. Objects become inert records here. A
# name in the pickle that is no tensor, no container and no class of the program is an error.

DTYPES = {
    "FloatStorage": torch.float32, "HalfStorage": torch.float16, "DoubleStorage": torch.float64,
    "LongStorage": torch.int64, "IntStorage": torch.int32, "BoolStorage": torch.bool,
}  # fmt: skip


class Record:
    """An object of the program: its attributes, and the name of its class in ``kind``."""

    kind = ""

    def __init__(self):
        self.attributes: dict[str, Any] = {}

    def __new__(cls, *_: object) -> Self:
        record = super().__new__(cls)
        record.__init__()
        return record

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.attributes = dict(state)


def is_program(path: Path) -> bool:
    """Whether a file is a TorchScript archive."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def read_program(path: Path) -> dict[str, Tensor]:
    """Parameters and buffers by name, as in the ``state_dict`` of the program.

    Raises pickle.UnpicklingError when the archive names anything but tensors, containers and classes of the program.
    """
    with zipfile.ZipFile(path) as archive:
        (pickled,) = (name for name in archive.namelist() if name.count("/") == 1 and name.endswith("/data.pkl"))
        folder = pickled.removesuffix("data.pkl")
        with archive.open(pickled) as file:
            program = _ProgramReader(file, archive, folder).load()
        return dict(_find_tensors(program, "", archive, folder, {}))


class _ProgramReader(pickle.Unpickler):
    def __init__(self, file: Any, archive: zipfile.ZipFile, root: str):
        super().__init__(file)
        self._archive, self._root = archive, root

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "__torch__":
            return type("Record", (Record,), {"kind": f"{module}.{name}"})
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuilt
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        if module == "torch.jit._pickle":  # lists and their types
            return lambda values, *_: values
        raise pickle.UnpicklingError(f"GLOBAL {module}.{name} was not an allowed global")

    def persistent_load(self, pid: Any) -> Tensor:
        _, dtype, key, _, _ = pid
        return torch.frombuffer(bytearray(self._archive.read(f"{self._root}data/{key}")), dtype=dtype)


def _rebuilt(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object) -> Tensor:
    return storage.as_strided(size, stride, offset).clone()


def _find_tensors(
    record: Record, prefix: str, archive: zipfile.ZipFile, root: str, declared: dict[str, set[str]]
) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of an object and of the objects in it. ``declared``: class -> its tensors, a cache."""
    if record.kind not in declared:
        declared[record.kind] = _declared(record.kind, archive, root)
    for name, value in record.attributes.items():
        if isinstance(value, Tensor) and name in declared[record.kind]:
            yield prefix + name, value
        elif isinstance(value, Record):
            yield from _find_tensors(value, f"{prefix}{name}.", archive, root, declared)


def _declared(kind: str, archive: zipfile.ZipFile, root: str) -> set[str]:
    """The parameters and buffers of a class, from the text of its file."""
    module, _, name = kind.rpartition(".")
    text = archive.read(f"{root}code/{module.replace('.', '/')}.py").decode()
    body = re.search(rf"^class {re.escape(name)}\(Module\):\n((?:  .*\n|\n)*)", text, re.MULTILINE)
    lists = re.findall(r"^  __(?:parameters|buffers)__ = \[(.*)\]$", body[1] if body else "", re.MULTILINE)
    return {tensor for line in lists for tensor in re.findall(r'"([^"]+)"', line)}
