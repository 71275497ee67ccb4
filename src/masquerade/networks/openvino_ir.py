"""Reads the constants of a network in OpenVINO's intermediate representation: an .xml graph and a .bin of numbers."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from torch import Tensor

DTYPES = {"f32": "<f4", "i64": "<i8", "i32": "<i4"}


class Graph:
    """The layers of a graph, by id. No code from the files is run."""

    def __init__(self, xml: Path):
        root, numbers = ElementTree.parse(xml).getroot(), xml.with_suffix(".bin").read_bytes()
        self.names: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.inputs: dict[str, list[str]] = {}
        self.users: dict[str, list[str]] = {}
        self._constants: dict[str, np.ndarray] = {}
        for layer in root.iterfind("layers/layer"):
            number, data = layer.attrib["id"], layer.find("data")
            self.names[number], self.kinds[number] = layer.attrib["name"], layer.attrib["type"]
            if layer.attrib["type"] == "Const" and data is not None:
                start, size = int(data.attrib["offset"]), int(data.attrib["size"])
                shape = [int(side) for side in data.attrib["shape"].split(",") if side.strip()]
                values = np.frombuffer(numbers[start : start + size], DTYPES[data.attrib["element_type"]])
                self._constants[number] = values.reshape(shape)
        for edge in root.iterfind("edges/edge"):
            self.inputs.setdefault(edge.attrib["to-layer"], []).append(edge.attrib["from-layer"])
            self.users.setdefault(edge.attrib["from-layer"], []).append(edge.attrib["to-layer"])

    def of_kind(self, kind: str) -> list[str]:
        """The layers of a kind, in the order of the file."""
        return [number for number, own in self.kinds.items() if own == kind]

    def named(self, name: str) -> Tensor:
        """The constant of a name. Raises KeyError."""
        number = next((number for number, own in self.names.items() if own == name), None)
        if number not in self._constants:
            raise KeyError(name)
        return torch.tensor(self._constants[number])

    def operand(self, layer: str) -> Tensor:
        """The floating-point constant that a layer takes, also through a reshaping. Raises KeyError."""
        sources = self.inputs[layer]
        reshaped = [other for one in sources if self.kinds[one] == "Reshape" for other in self.inputs[one]]
        for number in (*sources, *reshaped):
            if number in self._constants and self._constants[number].dtype == np.float32:
                return torch.tensor(self._constants[number])
        raise KeyError(layer)

    def after(self, layer: str, kind: str) -> str:
        """The layer of a kind that takes the output of a layer. Raises KeyError."""
        for number in self.users[layer]:
            if self.kinds[number] == kind:
                return number
        raise KeyError(f"no {kind} after {self.names[layer]}")
