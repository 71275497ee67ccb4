"""The MobileNet of Savchenko 2019 (PeerJ Computer Science 5:e197) that describes a face, and the reader of its file.

It learned to tell the people of VGGFace2 apart, and then age and gender. The file is ``faceres.bin`` of the npm package
@vladmandic/human, which keeps the tensors of TensorFlow.js as 16-bit floats, one after the other, without names.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.core.errors import CheckpointError

SIDE = 224
MEANS = (103.939, 116.779, 123.68)
"""Subtracted from blue, green and red, 0 to 255."""
EMBEDDING = 1024
BLOCKS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
    (1024, 2), (1024, 1),
)  # fmt: skip
"""Channels and stride of each block."""
HEADS = ((1024, 256), (256,), (256, 100), (100,), (256, 1), (1,))
"""Shapes of the layers for age and gender, which come first in the file and are not used."""
LIMITS = 2
"""Numbers after each layer: 6 and 0, between which ReLU6 keeps its values."""
INDEX = 8
"""Bytes at the end of the file: the two axes of the mean, as 32-bit integers."""


class Block(nn.Module):
    """Two convolutions, depthwise and 1 x 1, with ReLU6: (N, inputs, H, W) -> (N, outputs, H / stride, W / stride)."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, stride, groups=inputs)
        self.pointwise = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu6(self.pointwise(functional.relu6(self.depthwise(pad(x, self.depthwise.stride[0])))))


class MobileEmbedder(nn.Module):
    """(N, 3, 224, 224), blue first, 0 to 255 minus `MEANS` -> (N, 1024), not normalized."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, 2)
        inputs = (32, *(channels for channels, _ in BLOCKS))
        self.blocks = nn.Sequential(*(Block(before, *block) for before, block in zip(inputs, BLOCKS, strict=False)))

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(functional.relu6(self.stem(pad(x, 2)))).mean(dim=(2, 3))


def pad(x: Tensor, stride: int) -> Tensor:
    """TensorFlow's padding "same" of a 3 x 3 convolution: with stride 2, only on the right and at the bottom."""
    return functional.pad(x, (1, 1, 1, 1) if stride == 1 else (0, 1, 0, 1))


def load(path: Path) -> MobileEmbedder:
    """The network with the weights of the file, frozen.

    Raises CheckpointError if the file is of another size, or if it contains NaN or infinity.
    """
    with torch.device("meta"):
        network = MobileEmbedder()
    network.load_state_dict(_read_tensors(path, network), assign=True)
    return network.eval().requires_grad_(False).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def _list_shapes(network: MobileEmbedder) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of each tensor in the order of the file, in which kernels are (H, W, in, out).

    A depthwise kernel has the shape (H, W, C, 1), and its batch normalization has a factor as well.
    """
    for name, tensor in network.state_dict().items():
        outputs, *rest = tensor.shape
        if name.endswith("depthwise.weight"):
            yield name, (*rest[1:], outputs, 1)
            yield name.replace("weight", "factor"), (outputs,)
        else:
            yield name, (*rest[1:], *rest[:1], outputs)


def _read_tensors(path: Path, network: MobileEmbedder) -> dict[str, Tensor]:
    content = path.read_bytes()
    head_numbers = sum(int(np.prod(shape)) for shape in HEADS)
    shapes = dict(_list_shapes(network))
    layers = sum(name.endswith(".bias") for name in shapes)
    expected = 2 * (head_numbers + sum(int(np.prod(shape)) for shape in shapes.values()) + LIMITS * layers) + INDEX
    if len(content) != expected:
        raise CheckpointError(f"{path} has {len(content)} bytes, and the published file {expected}. Get it again.")
    numbers = np.frombuffer(content[:-INDEX], dtype="<f2").astype(np.float32)
    tensors, start = {}, head_numbers
    for name, shape in shapes.items():
        end = start + int(np.prod(shape))
        if not np.isfinite(numbers[start:end]).all():
            raise CheckpointError(f"{path}: {name} holds values that are not numbers. Get it again.")
        tensors[name] = torch.from_numpy(numbers[start:end].reshape(shape))
        start = end + (LIMITS if name.endswith(".bias") else 0)
    for name in [name for name in tensors if name.endswith(".factor")]:
        kernel = name.replace(".factor", ".weight")
        tensors[kernel] = tensors[kernel] * tensors.pop(name)[:, None]
    return {name: _in_torch_order(name, values) for name, values in tensors.items()}


def _in_torch_order(name: str, values: Tensor) -> Tensor:
    if name.endswith("depthwise.weight"):
        return values.permute(2, 3, 0, 1).contiguous()
    return values.permute(3, 2, 0, 1).contiguous() if name.endswith(".weight") else values.clone()
