"""Reads the published weight file of DartBlur's U-Net, ``dartblur.pt``: a plain state dict (docs/dartblur.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from masquerade.methods.dartblur.settings import HALVINGS, DartBlurSettings
from masquerade.networks.dartblur import DartBlurUNet
from masquerade.training import checkpoints, weight_files


def adopt(params: DartBlurSettings, path: Path, checkpoint: Path, facts: Mapping[str, Any]) -> None:
    """Write ``checkpoint`` from a file with the published layout and the sizes of ``params``.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    network = DartBlurUNet(params.widths)
    given = weight_files.tensors(weight_files.read(path), path)
    weight_files.load(network, weight_files.renamed(given, names(), path), path)
    checkpoints.save_checkpoint(checkpoint, {"network": network}, dict(facts))


def names() -> dict[str, str]:
    """Published name -> our name of each tensor."""
    layers = {f"down{level}.module.{at}": f"down.{level}.{at}" for level in range(HALVINGS) for at in (0, 2)}
    layers |= {f"up{level}.module.{at}": f"up{level}.{at}" for level in range(HALVINGS) for at in (0, 3)}
    return {f"{a}.{kind}": f"{b}.{kind}" for a, b in layers.items() for kind in ("weight", "bias")}
