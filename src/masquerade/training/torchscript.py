"""Reads the weights of a TorchScript program from its archive without running any of its code.

Such an archive is a zip: ``data.pkl`` holds the objects with their attributes, ``data/<number>`` the bytes of tensors,
and ``code/`` text that names the parameters and buffers of each class. Objects become inert records here. A name in the
pickle that is no tensor, no container and no class of the program is an error.
"""

import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

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


def read_state(path: Path) -> dict[str, Tensor]:
    """Parameters and buffers by name, as in the ``state_dict`` of the program.

    Raises pickle.UnpicklingError when the archive names anything but tensors, containers and classes of the program.
    """
    with zipfile.ZipFile(path) as archive:
        (pickled,) = (name for name in archive.namelist() if name.count("/") == 1 and name.endswith("/data.pkl"))
        folder = pickled.removesuffix("data.pkl")
        with archive.open(pickled) as file:
            program = _Reader(file, archive, folder).load()
        return dict(_tensors(program, "", archive, folder, {}))


class _Reader(pickle.Unpickler):
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


def _tensors(
    record: Record, prefix: str, archive: zipfile.ZipFile, root: str, declared: dict[str, set[str]]
) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of an object and of the objects in it. ``declared``: class -> its tensors, a cache."""
    if record.kind not in declared:
        declared[record.kind] = _declared(record.kind, archive, root)
    for name, value in record.attributes.items():
        if isinstance(value, Tensor) and name in declared[record.kind]:
            yield prefix + name, value
        elif isinstance(value, Record):
            yield from _tensors(value, f"{prefix}{name}.", archive, root, declared)


def _declared(kind: str, archive: zipfile.ZipFile, root: str) -> set[str]:
    """The parameters and buffers of a class, from the text of its file."""
    module, _, name = kind.rpartition(".")
    text = archive.read(f"{root}code/{module.replace('.', '/')}.py").decode()
    body = re.search(rf"^class {re.escape(name)}\(Module\):\n((?:  .*\n|\n)*)", text, re.MULTILINE)
    lists = re.findall(r"^  __(?:parameters|buffers)__ = \[(.*)\]$", body[1] if body else "", re.MULTILINE)
    return {tensor for line in lists for tensor in re.findall(r'"([^"]+)"', line)}
