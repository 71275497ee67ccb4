"""Reads the published weight file of the face parser, strictly and without unpickling."""

import hashlib
import logging
import pickle
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from masquerade.backbones.parsing import ParsingSettings
from masquerade.backbones.parsing.training import architecture, build
from masquerade.core.errors import CheckpointError
from masquerade.training import checkpoints, weight_files

logger = logging.getLogger(__name__)

OFFICIAL = "468e13ca13a9b43cc0881a9f99083a430e9c0a38abd935431d1c28ee94b26567"
"""SHA-256 of 79999_iter.pth, 53,289,463 bytes. facexlib's parsing_bisenet.pth is the same file."""


def adopt(params: ParsingSettings, published: Path, checkpoint: Path) -> None:
    """Write ``checkpoint`` from a file with the published layout and the sizes of ``params``.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    weights = read(published)
    with published.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != OFFICIAL:
            logger.warning(
                "%s is not the official 79999_iter.pth: it holds another training of the same layout", published
            )
    parser = build(architecture(params))
    checkpoints.load_into(parser.network, weights, published)
    weight_files.refuse_nan(weights, published)
    checkpoints.save_checkpoint(checkpoint, {"network": parser.network}, architecture(params))


def read(published: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file or of a PyTorch file by name. Raises CheckpointError naming the file."""
    if not published.is_file():
        raise CheckpointError(
            f"{published} is missing. docs/parsing.md says where to get the official file. Or set "
            "backbones.parsing.published to '' to train the network here."
        )
    try:
        if published.suffix == ".safetensors":
            return safetensors.torch.load_file(published)
        content = torch.load(published, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"{published} cannot be read as a file of weights ({str(error).splitlines()[0]}). Download it again and "
            "compare its checksum with that of docs/parsing.md."
        ) from error
    if not isinstance(content, dict) or not all(map(torch.is_tensor, content.values())):
        raise CheckpointError(
            f"{published} is no BiSeNet: it should hold only tensors, cp.resnet.conv1.weight and so on. Fetch it again."
        )
    return dict(content)
