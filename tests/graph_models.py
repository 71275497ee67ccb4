"""Writes graph models of TensorFlow.js, and npm packages with such models, as the published ones are laid out."""

import base64
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

Node = tuple[str, str, Sequence[str], Mapping[str, object]]
"""(name, operation, inputs, attributes)."""


def encode(value: object) -> dict:
    """An attribute as TensorFlow.js writes it."""
    if isinstance(value, bool):
        return {"b": value}
    if isinstance(value, str):
        return {"s": base64.b64encode(value.encode()).decode()}
    assert isinstance(value, list)
    if value and isinstance(value[0], str):
        return {"list": {"s": [base64.b64encode(text.encode()).decode() for text in value]}}
    return {"list": {"i": [str(number) for number in value]}}


def write_model(nodes: Sequence[Node], tensors: Mapping[str, np.ndarray], half: bool = False) -> tuple[bytes, bytes]:
    """The contents of the .json and the .bin file. ``half``: numbers are stored in 16 bits."""
    listed = [{"name": name, "op": "Const"} for name in tensors] + [
        {"name": name, "op": operation, "input": list(inputs), "attr": {key: encode(it) for key, it in given.items()}}
        for name, operation, inputs, given in nodes
    ]
    weights, content = [], b""
    for name, values in tensors.items():
        whole = np.issubdtype(values.dtype, np.integer)
        kind = "int32" if whole else "float32"
        entry: dict = {"name": name, "shape": list(values.shape), "dtype": kind}
        if half and not whole:
            entry["quantization"] = {"dtype": "float16", "original_dtype": "float32"}
        weights.append(entry)
        content += values.astype("<i4" if whole else "<f2" if half else "<f4").tobytes()
    tree = {"modelTopology": {"node": listed}, "weightsManifest": [{"weights": weights}]}
    return json.dumps(tree).encode(), content


def write_reader(
    output: str, channels: int, numbers: int, softmax: bool = False, seed: int = 0, always_one: Sequence[str] = ()
) -> tuple[bytes, bytes]:
    """A model that computes ``numbers`` from the mean color of an image: (N, H, W, channels) -> (N, numbers).

    ``always_one``: further outputs, (N, 1), which are 1 for every image.
    """
    draw = np.random.default_rng(seed)
    tensors = {
        "axes": np.array([1, 2]),
        "weights": draw.normal(0, 1, (channels, numbers)),
        "bias": draw.uniform(0, 100, numbers),
    }
    nodes: list[Node] = [
        ("input", "Placeholder", [], {}),
        ("mean", "Mean", ["input", "axes"], {"keep_dims": False}),
        ("product", "_FusedMatMul", ["mean", "weights", "bias"], {"fused_ops": ["BiasAdd"]}),
        (output, "Softmax" if softmax else "Identity", ["product"], {}),
    ]
    if always_one:
        tensors |= {"zeros": np.zeros((channels, 1)), "one": np.ones(1)}
        nodes += [(name, "_FusedMatMul", ["mean", "zeros", "one"], {"fused_ops": ["BiasAdd"]}) for name in always_one]
    return write_model(nodes, tensors)


def write_package(path: Path, models: Mapping[str, tuple[bytes, bytes]]) -> None:
    """An npm package with these models."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as package:
        for name, contents in models.items():
            for ending, content in zip(("json", "bin"), contents, strict=True):
                member = tarfile.TarInfo(f"package/models/{name}.{ending}")
                member.size = len(content)
                package.addfile(member, io.BytesIO(content))


def write_official(role: str, path: Path) -> None:
    """The package of a role of the registry, with models of its inputs and outputs."""
    models = {
        "human": {
            "emotion": write_reader("Identity", 1, 7, softmax=True),
            "facemesh": write_reader("Identity_2", 3, 1404, always_one=["Identity_1"]),
            "iris": write_reader("Identity", 3, 228),
        },
        "human_models": {"gear": write_reader("Identity_2", 3, 5, softmax=True)},
    }
    write_package(path, models[role])
