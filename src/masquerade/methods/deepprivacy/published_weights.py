"""Reads the published weight files of DeepPrivacy's generator (branch v1 of the published code).

A file holds the averaged generator under ``running_average_generator``: the number of the size that it grew to, and its
``parameters``. The names of these follow from the growth, block by block: docs/deepprivacy.md.
"""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from masquerade.core.errors import CheckpointError
from masquerade.methods.deepprivacy.settings import DeepPrivacySettings
from masquerade.methods.deepprivacy.training import generator
from masquerade.networks.inpainting_unet import InpaintingUNet
from masquerade.training import weight_files

AVERAGE = "running_average_generator"
GROWN = "transition_step"
SHARE = "transition_value"
"""Share of the finest blocks in the picture; 1 after the growth."""
EARLIER = {f"{name}.": "used only while the network grows" for name in ("from_rgb_old", "to_rgb_old")}


def network(params: DeepPrivacySettings, path: Path) -> InpaintingUNet:
    """The generator of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    return weight_files.load(generator(params), tensors(params, path), path)


def tensors(params: DeepPrivacySettings, path: Path) -> dict[str, Tensor]:
    """The tensors of the generator in a published file, under our names."""
    content = weight_files.read(path)
    average = content.get(AVERAGE) if isinstance(content, Mapping) else None
    if not isinstance(average, Mapping) or not {GROWN, SHARE} <= average.keys():
        raise CheckpointError(f"{path} has no {AVERAGE} with a {GROWN}: it is no file of DeepPrivacy, branch v1.")
    grown, levels = average[GROWN], len(params.widths) - 1
    if grown != levels or average[SHARE] != 1:
        raise CheckpointError(
            f"{path}: the generator has grown {grown} times (share of the last: {average[SHARE]}). With "
            f"{levels + 1} widths it must have grown {levels} times, completely."
        )
    given = weight_files.tensors(average, path, EARLIER, under="parameters")
    ours = weight_files.renamed(given, names(levels), path)
    return {name: value.flatten() if name.endswith("bias") else value for name, value in ours.items()}


def names(levels: int) -> dict[str, str]:
    """Published name -> our name of each tensor of a generator that has grown ``levels`` (at least two) times."""
    layers = {
        "from_rgb_new.0": "from_picture.0",
        "core_blocks_up.0.0.0.0": "merge.0",
        "new_up.0.0": f"join.{levels - 1}.0",
        "to_rgb_new": "to_picture",
    }
    layers |= {f"core_blocks_up.{level}.0.0": f"join.{level - 1}.0" for level in range(1, levels)}
    blocks = {"new_down.0.model": "down.0", "core_blocks_down.0.0.model": "down.1"}
    blocks |= {f"core_blocks_down.{level}.1.model": f"down.{level + 1}" for level in range(1, levels - 1)}
    blocks |= {f"core_blocks_down.{levels - 1}.1": f"down.{levels}", "core_blocks_up.0.0.1.model": "bottom"}
    blocks |= {f"core_blocks_up.{level}.1.model": f"up.{level - 1}" for level in range(1, levels)}
    blocks |= {"new_up.1.model": f"up.{levels - 1}"}
    layers |= {f"{theirs}.{at}.0": f"{ours}.{3 * at}" for theirs, ours in blocks.items() for at in (0, 1)}
    kinds = {"conv.weight": "weight", "bias": "bias"}
    return {f"{theirs}.{a}": f"{ours}.{b}" for theirs, ours in layers.items() for a, b in kinds.items()}
