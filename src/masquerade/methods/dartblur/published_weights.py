"""Reads the published weight file of DartBlur's U-Net, ``dartblur.pt``: a plain state dict (docs/dartblur.md)."""

from pathlib import Path

from masquerade.methods.dartblur.settings import HALVINGS, DartBlurSettings
from masquerade.networks.dartblur import DartBlurUNet
from masquerade.training import weight_files


def network(params: DartBlurSettings, path: Path) -> DartBlurUNet:
    """The U-Net of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    given = weight_files.tensors(weight_files.read(path), path)
    return weight_files.load(DartBlurUNet(params.widths), weight_files.renamed(given, names(), path), path)


def names() -> dict[str, str]:
    """Published name -> our name of each tensor."""
    layers = {f"down{level}.module.{at}": f"down.{level}.{at}" for level in range(HALVINGS) for at in (0, 2)}
    layers |= {f"up{level}.module.{at}": f"up{level}.{at}" for level in range(HALVINGS) for at in (0, 3)}
    return {f"{a}.{kind}": f"{b}.{kind}" for a, b in layers.items() for kind in ("weight", "bias")}
