"""Pretrained networks of weights/: rounds their parameters to 16-bit floats, and writes checkpoints from them.

Such a checkpoint is the one that a training would have written, with rounded parameters. It states the weight file
(`PRETRAINED`), and the backbones of this scale in place of those of the training.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from masquerade import assets
from masquerade.core import fingerprints
from masquerade.core.errors import CheckpointError
from masquerade.core.settings import Settings
from masquerade.core.weight_names import OFFICIAL, PREFIX
from masquerade.training import cards, checkpoints
from masquerade.training.cards import Card

logger = logging.getLogger(__name__)

PRETRAINED = "adopted"
"""The fact of a checkpoint that was written from a weight file: the name and the SHA-256 of that file."""
LARGEST_ERROR = 0.001
"""A `compute_rounding_error` that numbers between 0.0001 and 65504 do not reach: theirs is at most 2^-11, or 0.0005."""


def round_to_half(tensors: Mapping[str, Tensor], buffers: Collection[str]) -> dict[str, Tensor]:
    """The tensors of a checkpoint: 32-bit parameters as 16-bit floats, all others as they are.

    ``buffers``: names of the tensors that are no parameters. A parameter with numbers that 16 bits cannot hold (its
    `compute_rounding_error` is above LARGEST_ERROR) keeps its 32 bits.
    """
    result = dict(tensors)
    for name, tensor in tensors.items():
        if tensor.dtype == torch.float32 and name not in buffers:
            half = tensor.half()
            result[name] = half if compute_rounding_error([tensor], [half]) <= LARGEST_ERROR else tensor
    return result


def compute_rounding_error(before: Iterable[Tensor], after: Iterable[Tensor]) -> float:
    """The root mean square of the rounding error of tensors, relative to that of their numbers; 0 without numbers."""
    pairs = [(exact.double(), rounded.double()) for exact, rounded in zip(before, after, strict=True)]
    error = sum(((rounded - exact).square().sum().item() for exact, rounded in pairs), 0.0)
    size = sum((exact.square().sum().item() for exact, _ in pairs), 0.0)
    return (error / size) ** 0.5 if size else 0.0


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Returns (tensors by name, metadata). 16-bit floats come back with 32 bits. Raises CheckpointError."""
    mistake = f"cannot be read as a weight file ({{}}). Restore it with `git checkout -- {path.parent.name}`."
    tensors, metadata = checkpoints.read_tensors(path, mistake)
    widened = {name: tensor.float() if tensor.dtype == torch.float16 else tensor for name, tensor in tensors.items()}
    return widened, metadata


def load_pretrained(
    name: str, keys: tuple[str, ...], params: Settings, backbones: Mapping[str, Path], checkpoint: Path,
    root: Path = Path(),
) -> Card:  # fmt: skip
    """Write ``checkpoint`` from weights/<name>.safetensors of the repository at ``root``, and return its card.

    ``keys`` and ``params``: the keys of the architecture, and the parameters of the network here. ``backbones``: name
    of each backbone that it needs -> its checkpoint. Raises CheckpointError or ParameterError if the file is missing,
    cut or altered, does not fit, or belongs to another backbone.
    """
    card = cards.check_bytes(name, root)
    cards.check_fit(card, keys, params)
    path = root / cards.weights_path(name)
    tensors, metadata = read_weights(path)
    ties = {backbone: _find_tie(card, backbone, backbones.get(backbone)) for backbone in card.belongs_to}
    source = {PRETRAINED: {"name": name, "sha256": card.sha256}}
    # such as the refinement of an inversion, which a scale sets without a new training
    changeable = params.model_dump(include=set(params.after_training & metadata.keys()))
    checkpoints.write_tensors(
        checkpoint, tensors, {**metadata, **changeable, **ties, **source}, checkpoints.list_buffers(path)
    )
    logger.info("%s: written from %s, which scale %s trained", checkpoint, cards.weights_path(name), card.scale)
    return card


def describe_official(role: str, path: Path) -> dict[str, dict[str, str]]:
    """The fact of a checkpoint that was written from the official file of a role, at ``path``."""
    return {PRETRAINED: {"name": f"{OFFICIAL}{role}", "sha256": assets.digest(path)}}


def _find_tie(card: Card, backbone: str, checkpoint: Path | None) -> str:
    """The MD5 of the checkpoint of a backbone. Raises CheckpointError if it was not written from the right file."""
    metadata = checkpoints.load_checkpoint(checkpoint)[1] if checkpoint else {}
    if checkpoint is None or metadata.get(PRETRAINED, {}).get("sha256") != card.belongs_to[backbone]:
        required = cards.find_required(card, backbone)
        raise CheckpointError(
            f"'{PREFIX}{card.name}' belongs to '{required}' with the SHA-256 {card.belongs_to[backbone]}, and "
            f"{checkpoint or 'no checkpoint'} is another one. Set backbones.{backbone}.published to '{required}', or "
            f"`published` of {card.block} to '' to train the network."
        )
    return fingerprints.md5(checkpoint)
