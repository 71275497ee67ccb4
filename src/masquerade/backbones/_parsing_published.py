"""The published weight file of the face parser, read strictly and never unpickled."""

import hashlib
import logging
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from masquerade import training
from masquerade.backbones._parsing import architecture, build
from masquerade.errors import CheckpointError

if TYPE_CHECKING:
    from masquerade.backbones.parsing import Parsing

logger = logging.getLogger(__name__)

OFFICIAL = "468e13ca13a9b43cc0881a9f99083a430e9c0a38abd935431d1c28ee94b26567"
"""SHA-256 of 79999_iter.pth, 53,289,463 bytes; facexlib's parsing_bisenet.pth is the same file."""


def adopt(params: "Parsing.Params", published: Path, checkpoint: Path) -> None:
    """Write ``checkpoint`` from a file of the published layout and of the size of ``params``.

    Raises CheckpointError naming tensors that are missing, left over, of another shape or not numbers.
    """
    weights = read(published)
    with published.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != OFFICIAL:
            logger.warning("%s is not the official 79999_iter.pth: another training of its layout", published)
    parser = build(architecture(params))
    training.load_into(parser.network, weights, published)
    wrong = sorted(key for key, value in weights.items() if not torch.isfinite(value).all())
    if wrong:
        raise CheckpointError(f"{published}: {wrong[0]} holds values that are not numbers. Download the file again.")
    training.save_checkpoint(checkpoint, {"network": parser.network}, architecture(params))


def read(published: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file or of a PyTorch file by name. Raises CheckpointError naming the file."""
    if not published.is_file():
        raise CheckpointError(
            f"{published} is missing. docs/parsing.md says where the official file is; or set "
            "backbones.parsing.published to '' and the network is trained here."
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
            f"{published} is no BiSeNet: it should hold nothing but tensors, cp.resnet.conv1.weight ..."
        )
    return dict(content)
