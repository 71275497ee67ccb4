"""The published weight file of ArcFace's IR-SE-50, read strictly and never unpickled."""

from pathlib import Path
from typing import TYPE_CHECKING

from masquerade import published, training
from masquerade.backbones._recognition import Crop, Recogniser
from masquerade.networks.ir_se import IRSE

if TYPE_CHECKING:
    from masquerade.backbones.identity import Identity

CROP = Crop(of=256, left=32, top=35, right=220, bottom=223)
"""Of an FFHQ-aligned picture, where ArcFace's five points would put the face: the published code of e4e and FALCO."""


def recogniser(path: Path) -> Recogniser:
    """The published network of a file, frozen. Raises CheckpointError naming what does not fit."""
    network = IRSE()
    published.load(network, published.tensors(published.read(path), path), path)
    return Recogniser(network, 112, CROP).eval().requires_grad_(False)


def adopt(params: "Identity.Params", path: Path, checkpoint: Path) -> None:
    """Write ``checkpoint`` from a file of the published layout and of the size of ``params``.

    Raises CheckpointError naming tensors that are missing, left over, of another shape or not numbers.
    """
    facts = {"widths": params.widths, "units": params.units, "input_size": params.recognition.input_size}
    network = IRSE(facts["input_size"], facts["widths"], facts["units"])
    published.load(network, published.tensors(published.read(path), path), path)
    training.save_checkpoint(checkpoint, {"network": network}, facts | {"crop": CROP._asdict()})
