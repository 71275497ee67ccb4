"""Reads the published weight file of ArcFace's IR-SE-50, strictly and without unpickling."""

from pathlib import Path

from masquerade.backbones.identity.settings import IdentitySettings
from masquerade.backbones.recognition.training import CROP, Recognizer
from masquerade.networks.ir_se import IRSE
from masquerade.training import checkpoints, weight_files


def recognizer(path: Path) -> Recognizer:
    """The network of the published file, frozen. Raises CheckpointError naming the tensors that do not fit."""
    network = IRSE()
    weight_files.load(network, weight_files.tensors(weight_files.read(path), path), path)
    return Recognizer(network, 112, CROP).eval().requires_grad_(False)


def adopt(params: IdentitySettings, path: Path, checkpoint: Path) -> None:
    """Write ``checkpoint`` from a file with the published layout and the sizes of ``params``.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    facts = {"widths": params.widths, "units": params.units, "input_size": params.recognition.input_size}
    network = IRSE(facts["input_size"], facts["widths"], facts["units"])
    weight_files.load(network, weight_files.tensors(weight_files.read(path), path), path)
    checkpoints.save_checkpoint(checkpoint, {"network": network}, facts | {"crop": CROP._asdict()})
