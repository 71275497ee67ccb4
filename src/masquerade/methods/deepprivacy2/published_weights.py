"""Reads the published weight files of DeepPrivacy2's generator of faces, FDF256 and FDF128.

A file holds the averaged generator under ``EMA_generator`` (docs/deepprivacy2.md).
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from masquerade.core.errors import CheckpointError
from masquerade.methods.deepprivacy2.settings import DeepPrivacy2Settings
from masquerade.methods.deepprivacy2.training import generator
from masquerade.networks.style_unet import StyleUNet
from masquerade.training import weight_files

AVERAGE = "EMA_generator"
CENTERS = {"style_net.w_centers": "centers of styles, for multi-modal truncation"}
FILTER = "resample_filter"
"""The published name of a filter [1, 3, 3, 1], whose entries have the sum 1; ours have the sum 4."""


def network(params: DeepPrivacy2Settings, path: Path) -> StyleUNet:
    """The generator of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    untrained = generator(params)
    return weight_files.load(untrained, tensors(untrained.state_dict(), path), path)


def tensors(ours: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """The tensors of the generator in a published file, under our names. ``ours``: our state dict."""
    given = weight_files.tensors(weight_files.read(path), path, CENTERS, under=AVERAGE)
    found = weight_files.renamed(given, {published(name): name for name in ours}, path)
    for name, value in found.items():
        if name.endswith(".filter.kernel"):
            if value.shape != ours[name].shape or not torch.allclose(4 * value, ours[name]):
                raise CheckpointError(
                    f"{path}: {published(name)} is not the filter [1, 3, 3, 1] of the published code."
                )
            found[name] = ours[name]
    return found


def published(name: str) -> str:
    """The published name of one of our tensors."""
    room, _, rest = name.partition(".")
    if room == "skips":
        number, _, rest = rest.partition(".")
        return f"unet_block{int(number) + 1}.{rest}"
    if name == "mapping.mean":
        return "style_net.w_avg"
    if room == "mapping":  # layers.0 normalizes
        _, number, rest = rest.split(".")
        return f"style_net.fc{int(number) - 1}.{rest}"
    return name.replace("filter.kernel", FILTER)
