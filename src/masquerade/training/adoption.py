"""Adopts a network of weights/: writes the checkpoint that a training would have written, with rounded parameters.

The checkpoint states the weight file (`ADOPTED`), and the backbones of this scale in place of those of the training.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from masquerade import assets
from masquerade.core import fingerprints
from masquerade.core.errors import CheckpointError
from masquerade.core.own_weights import OFFICIAL, PREFIX
from masquerade.core.settings import Settings
from masquerade.training import cards, checkpoints, half_precision
from masquerade.training.cards import Card

logger = logging.getLogger(__name__)

ADOPTED = "adopted"
"""The fact of a checkpoint that was adopted: the name and the SHA-256 of the weight file."""


def adopt(
    name: str, keys: tuple[str, ...], params: Settings, backbones: Mapping[str, Path], checkpoint: Path,
    root: Path = Path(),
) -> Card:  # fmt: skip
    """Write ``checkpoint`` from weights/<name>.safetensors of the repository at ``root``, and return its card.

    ``keys`` and ``params``: the keys of the architecture, and the parameters of the network here. ``backbones``: name
    of each backbone that it needs -> its checkpoint. Raises CheckpointError or ParameterError if the file is missing,
    cut or altered, does not fit, or belongs to another backbone.
    """
    card = cards.checked(name, root)
    cards.check_fit(card, keys, params)
    path = root / cards.weights_path(name)
    tensors, facts = half_precision.read(path)
    ties = {backbone: _tie(card, backbone, sha256, backbones) for backbone, sha256 in card.belongs_to.items()}
    adopted = {ADOPTED: {"name": name, "sha256": card.sha256}}
    knobs = params.model_dump(include=set(params.after_training & facts.keys()))
    checkpoints.write(checkpoint, tensors, {**facts, **knobs, **ties, **adopted}, checkpoints.buffers_of(path))
    logger.info("%s: adopted from %s, which scale %s trained", checkpoint, cards.weights_path(name), card.scale)
    return card


def official(role: str, path: Path) -> dict[str, dict[str, str]]:
    """The fact of a checkpoint that was written from the official file of a role, at ``path``."""
    return {ADOPTED: {"name": f"{OFFICIAL}{role}", "sha256": assets.digest(path)}}


def _tie(card: Card, backbone: str, sha256: str, backbones: Mapping[str, Path]) -> str:
    """The MD5 of the checkpoint of a backbone. Raises CheckpointError if it was not adopted from the right file."""
    checkpoint = backbones.get(backbone)
    facts = checkpoints.load_checkpoint(checkpoint)[1] if checkpoint else {}
    if checkpoint is None or facts.get(ADOPTED, {}).get("sha256") != sha256:
        needed = cards.beside(card.name, backbone)
        raise CheckpointError(
            f"'{PREFIX}{card.name}' belongs to the network of {cards.weights_path(needed)} with the SHA-256 "
            f"{sha256}, and {checkpoint or 'no checkpoint'} is another one. Adopt both "
            f"(backbones.{backbone}.published: '{PREFIX}{needed}'), or set `published` of {card.block} to '' to "
            "train the network."
        )
    return fingerprints.md5(checkpoint)
