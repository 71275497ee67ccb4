"""The cards of the weight files in weights/: one YAML file beside each, with its origin, its parameters and its hash.

`pretrained` reads the weight files. This module needs no torch, so that the graph can be planned with it. A card:

    name: riddle
    block: methods.riddle
    scale: evening
    parameters: {methods.riddle.params: {groups: [4, 4, 6], width: 64, ...}, data_seed: 0, ...}
    belongs_to: {generator: bb5d1aa774ec...}       # SHA-256 of weights/generator.safetensors
    sha256: 51edc78ad977...                        # of weights/riddle.safetensors
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from masquerade.assets import sface
from masquerade.core import files, fingerprints, weight_names
from masquerade.core.errors import CheckpointError, ParameterError, suggest_nearest
from masquerade.core.settings import Settings
from masquerade.params import overlays
from masquerade.params.overlays import MISSING, find_value, overlay

FOLDER = Path(weight_names.FOLDER)
LIMIT, LARGEST = 200_000_000, 40_000_000
"""Bytes that all files of weights/ together and one of them may have, because they lie in git."""
AGAIN = "Restore both files with `git checkout -- weights`, or export them again (docs/weights.md)"


class Data(Settings):
    """The faces that a network learned from."""

    dataset: str
    """The name of the dataset: a module of faces/."""
    people: str
    """The people in words, for whoever uses the network."""
    group: str
    """The group of people that it learned from (core/people.py)."""
    image_size: int
    """Side of the images in pixels."""


class Card(Settings):
    """What weights/<name>.yaml says of weights/<name>.safetensors."""

    name: str
    """The name of both files, after that of their folder: ``photo/identity``. An ablation has that of its method and
    variant: ``ifadit.without_img``."""
    what: str
    """The network in words."""
    source: str
    """The paper, or the training, that it comes from."""
    block: str
    """The key of the network in params.yaml: ``backbones.generator``, ``methods.riddle``."""
    license: str
    """An SPDX identifier."""
    terms: str = ""
    """Terms of use of the faces and networks that it learned from, in words; '' for none."""
    scale: str
    """The scale that trained it."""
    data: Data
    parameters: dict[str, Any]
    """Dotted key -> value: the slice of the parameters that the training depends on."""
    seed: int
    """The seed of the training."""
    belongs_to: dict[str, str]
    """Backbone -> SHA-256 of its weight file: the network is useless with another one."""
    commit: str
    """The commit of the code that trained it; ``+`` at its end: with changes that were not committed."""
    hours: float
    """Time of the job that trained it, without the time before an interruption."""
    machine: str
    """The kind of machine."""
    quality: dict[str, float]
    """Name -> figure."""
    quality_of: str
    """On which people the figures were measured."""
    checkpoint: str
    """MD5 of the checkpoint that was exported, before rounding."""
    tensors: int = Field(ge=1)
    numbers: int = Field(ge=1)
    """Numbers in all tensors."""
    size: int = Field(ge=1)
    """Bytes of the weight file."""
    sha256: str
    """SHA-256 of the weight file."""


def weights_path(name: str) -> Path:
    """The weight file, relative to the root of the repository."""
    return FOLDER / f"{name}.safetensors"


def card_path(name: str) -> Path:
    """The card, relative to the root of the repository."""
    return FOLDER / f"{name}.yaml"


def list_names(root: Path = Path()) -> list[str]:
    """The names of all cards of the repository at ``root``, sorted."""
    paths = (root / FOLDER).rglob("*.yaml")
    return sorted(path.relative_to(root / FOLDER).with_suffix("").as_posix() for path in paths)


def name_beside(name: str, other: str) -> str:
    """The name of the network ``other`` in the folder of ``name``: photo/falco, identity -> photo/identity."""
    folder, slash, _ = name.rpartition("/")
    return f"{folder}{slash}{other}"


def find_required(card: Card, backbone: str) -> str:
    """The value of ``published`` of the backbone that a network belongs to: ``weights:photo/identity``."""
    is_sface = card.belongs_to[backbone] == sface.SHA256
    return sface.PUBLISHED if is_sface else f"{weight_names.PREFIX}{name_beside(card.name, backbone)}"


def read_card(name: str, root: Path = Path()) -> Card:
    """The card of a weight file. Raises CheckpointError if it is missing or damaged."""
    path = card_path(name)
    if not (root / path).is_file():
        raise CheckpointError(
            f"'{weight_names.PREFIX}{name}' needs {weights_path(name)} and {path}, and {path} is missing. "
            f"{suggest_nearest(name, list_names(root))} Correct the parameter `published`, restore the files with `git "
            f"checkout -- {FOLDER}`, or set it to '' and build the scale (`make reproduce`), which trains the network "
            "then."
        )
    try:
        return Card(**overlays.read_yaml(root / path))
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise CheckpointError(f"{path} is not the card of a weight file ({reasons}). {AGAIN}.") from error


def check_bytes(name: str, root: Path = Path()) -> Card:
    """The card of a weight file whose bytes are those that the card states. Raises CheckpointError."""
    card, path = read_card(name, root), weights_path(name)
    if not (root / path).is_file():
        raise CheckpointError(f"{path} is missing; its card {card_path(name)} is there. {AGAIN}.")
    digest = fingerprints.sha256(root / path)
    if digest != card.sha256:
        raise CheckpointError(
            f"{path} is cut, altered or another file: its SHA-256 is {digest}, and its card {card_path(name)} states "
            f"{card.sha256}. {AGAIN}."
        )
    return card


def write_card(card: Card, folder: Path) -> None:
    """Write a card into ``folder``."""
    text = yaml.safe_dump(
        card.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=118, default_flow_style=None
    )
    files.write_text(folder / card_path(card.name).name, text)


def find_differences(recorded: Any, current: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(dotted key, value of the card, value now) of each parameter that is not the same. A missing one is None."""
    if isinstance(recorded, Mapping) and isinstance(current, Mapping):
        for name in dict.fromkeys((*recorded, *current)):
            yield from find_differences(recorded.get(name), current.get(name), f"{key}.{name}".strip("."))
        return
    recorded, current = (list(value) if isinstance(value, tuple) else value for value in (recorded, current))
    if recorded != current:
        yield key, recorded, current


def check_fit(card: Card, keys: tuple[str, ...], params: Settings) -> None:
    """Raises ParameterError naming each part of the architecture in which the weights differ from ``params``.

    ``keys``: those of the architecture. ``params``: the parameters of the network at a scale.
    """
    blocks = _select_block(card), params.model_dump(mode="json")
    before, now = (
        {key: None if (value := find_value(block, key)) is MISSING else value for key in keys} for block in blocks
    )
    problems = [
        f"{key} is {'missing' if here is None else here} here, and {'missing' if there is None else there} in the "
        "weights"
        for key, there, here in find_differences(before, now)
    ]
    if problems:
        raise ParameterError(
            f"'{weight_names.PREFIX}{card.name}' does not fit the parameters of this scale ({card.block}): "
            f"{'; '.join(problems)}. Set these keys to the values of the weights, or set `published` of {card.block} "
            "to '' to train the network."
        )


def _select_block(card: Card) -> dict[str, Any]:
    """The parameters of the network in its card: those of a backbone, or of a method with those of an ablation."""
    if card.block in card.parameters:
        return card.parameters[card.block]
    params = card.parameters.get(f"{card.block}.params", {})
    ablations = [value for key, value in card.parameters.items() if key.startswith(f"{card.block}.ablations.")]
    return overlay(params, ablations[0]) if ablations else params
