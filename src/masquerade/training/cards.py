"""The cards of the weight files in weights/: one YAML file beside each, with its origin, its parameters and its hash.

`half_precision` reads the weight files. This module needs no torch, so that the graph can be planned with it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from masquerade.core import files, fingerprints, own_weights
from masquerade.core.errors import CheckpointError, ParameterError, suggest_nearest
from masquerade.core.settings import Settings
from masquerade.params import overlays
from masquerade.params.overlays import MISSING, find_value, overlay

FOLDER = Path(own_weights.FOLDER)
LIMIT, LARGEST = 150_000_000, 40_000_000
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
    """Side of the pictures in pixels."""


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


def names(root: Path = Path()) -> list[str]:
    """The names of all cards of the repository at ``root``, sorted."""
    found = (root / FOLDER).rglob("*.yaml")
    return sorted(path.relative_to(root / FOLDER).with_suffix("").as_posix() for path in found)


def of(collection: str, root: Path = Path()) -> list[str]:
    """Those of `names` that lie in the folder ``collection`` of weights/; '': those in no folder."""
    return [name for name in names(root) if name.rpartition("/")[0] == collection]


def beside(name: str, other: str) -> str:
    """The name of the network ``other`` in the folder of ``name``: photo/falco, identity -> photo/identity."""
    folder, slash, _ = name.rpartition("/")
    return f"{folder}{slash}{other}"


def read(name: str, root: Path = Path()) -> Card:
    """The card of a weight file. Raises CheckpointError if it is missing or damaged."""
    path = card_path(name)
    if not (root / path).is_file():
        raise CheckpointError(
            f"'{own_weights.PREFIX}{name}' needs {weights_path(name)} and {path}, and {path} is missing. "
            f"{suggest_nearest(name, names(root))} Correct the parameter `published`, restore the files with `git "
            f"checkout -- {FOLDER}`, or set it to '' and build the scale (`make reproduce`), which trains the "
            "network then."
        )
    try:
        return Card(**overlays.read_yaml(root / path))
    except (ValidationError, ParameterError) as error:
        reasons = (
            "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            if isinstance(error, ValidationError)
            else str(error)
        )
        raise CheckpointError(f"{path} is not the card of a weight file ({reasons}). {AGAIN}.") from error


def checked(name: str, root: Path = Path()) -> Card:
    """The card of a weight file whose bytes are those that the card states. Raises CheckpointError."""
    card, path = read(name, root), weights_path(name)
    if not (root / path).is_file():
        raise CheckpointError(f"{path} is missing; its card {card_path(name)} is there. {AGAIN}.")
    size = (root / path).stat().st_size
    if size < card.size:
        raise CheckpointError(
            f"{path} is cut: it has {size} bytes, and its card {card_path(name)} states {card.size}. {AGAIN}."
        )
    digest = fingerprints.sha256(root / path)
    if digest != card.sha256:
        raise CheckpointError(
            f"{path} is altered, or it is another file: its SHA-256 is {digest}, and its card {card_path(name)} states "
            f"{card.sha256}. {AGAIN}."
        )
    return card


def write(card: Card, folder: Path) -> None:
    """Write a card into ``folder``."""
    text = yaml.safe_dump(
        card.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=118, default_flow_style=None
    )
    files.write_text(folder / card_path(card.name).name, text)


def differences(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(dotted key, value of the card, value now) of each parameter that is not the same. A missing one is None."""
    yield from _differences("", recorded, current)


def _differences(key: str, recorded: Any, current: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(recorded, Mapping) and isinstance(current, Mapping):
        for name in dict.fromkeys((*recorded, *current)):
            inner = f"{key}.{name}".strip(".")
            yield from _differences(inner, recorded.get(name, MISSING), current.get(name, MISSING))
    elif _plain(recorded) != _plain(current):
        yield key, _plain(recorded), _plain(current)


def _plain(value: Any) -> Any:
    """A value as a card holds it: sequences are lists, MISSING is None."""
    return None if value is MISSING else list(value) if isinstance(value, tuple) else value


def misfits(card: Card, keys: tuple[str, ...], params: Settings) -> list[tuple[str, Any, Any]]:
    """(key, value of the weights, value here) of each part of a network's architecture that is not the same.

    ``keys``: those of the architecture. ``params``: the parameters of the network at a scale.
    """
    blocks = _block(card), params.model_dump(mode="json")
    before, now = ({key: find_value(block, key) for key in keys} for block in blocks)
    return list(differences(before, now))


def _block(card: Card) -> dict[str, Any]:
    """The parameters of the network in its card: those of a backbone, or of a method with those of an ablation."""
    if card.block in card.parameters:
        return card.parameters[card.block]
    knobs = card.parameters.get(f"{card.block}.params", {})
    ablations = [value for key, value in card.parameters.items() if key.startswith(f"{card.block}.ablations.")]
    return overlay(knobs, ablations[0]) if ablations else knobs


def _text(value: Any) -> str:
    return "missing" if value is None else str(value)


def check_fit(card: Card, keys: tuple[str, ...], params: Settings) -> None:
    """Raises ParameterError naming each part of the architecture in which the weights differ from ``params``."""
    problems = [
        f"{key} is {_text(here)} here, and {_text(there)} in the weights"
        for key, there, here in misfits(card, keys, params)
    ]
    if problems:
        raise ParameterError(
            f"'{own_weights.PREFIX}{card.name}' does not fit the parameters of this scale ({card.block}): "
            f"{'; '.join(problems)}. Set these keys to the values of the weights (`masquerade weights adopt` prints "
            f"them), or set `published` of {card.block} to '' to train the network."
        )
