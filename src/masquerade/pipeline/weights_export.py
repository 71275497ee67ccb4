"""Exports the networks of a finished build into weights/: 16-bit weight files, each with its card (docs/weights.md)."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from masquerade.core import discovery, files, fingerprints, weight_names
from masquerade.core.errors import MasqueradeError, suggest_nearest
from masquerade.core.images import GALLERY, TEST
from masquerade.lineage import crate, descriptions, provenance
from masquerade.params import loading
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline.pretrained_networks import FAKES, Network, list_networks
from masquerade.training import cards, checkpoints
from masquerade.training.cards import Card, Data
from masquerade.training.pretrained import PRETRAINED, compute_rounding_error, round_to_half

TESTED = (TEST, GALLERY)
"""The splits that no training and no quality figure reads: their numbers of people are in no card."""


def select_parameters(network: Network) -> dict[str, Any]:
    """The parameters that the training of a network depends on, without what concerns the test split alone."""
    parameters, block = network.parameters, network.block
    dataset = f"datasets.{parameters.matrix.train_on}"
    keys = (f"{block}.params" if network.room == "methods" else block,)
    if network.variant:
        keys += (f"{block}.ablations.{network.variant}",)
    shared = ("data_seed", "people", "image.size", "matrix.train_on") if network.room else ("data_seed", "image.size")
    values = parameters.slice((*keys, *shared, dataset))
    return json.loads(json.dumps({**values, dataset: _drop_test(values[dataset])}))


def _drop_test(tree: Any) -> Any:
    if not isinstance(tree, Mapping):
        return tree
    return {key: _drop_test(value) for key, value in tree.items() if key not in TESTED}


def find_drift(card: Card, parameters: Parameters) -> list[str]:
    """How the parameters of the scale that trained a network differ from its card now, one line for each key."""
    path = cards.card_path(card.name)
    network = next((network for network in list_networks(parameters) if network.name == card.name), None)
    if network is None:
        return [f"{path}: scale {card.scale} has no network '{card.name}' any more."]
    itself = f"{weight_names.PREFIX}{card.name}"  # which the scale that trained it may take from weights/ since
    problems = [
        f"{path}: {key} was {before} in the training, and scale {card.scale} has {now} now."
        for key, before, now in cards.find_differences(card.parameters, select_parameters(network))
        if now != itself
    ]
    terms = network.terms
    if (card.license, card.terms) != (crate.license_of_networks(terms), terms):
        problems.append(
            f"{path}: it states {card.license} ({card.terms or 'no terms'}), and what it learned from requires "
            f"{crate.license_of_networks(terms)} ({terms or 'no terms'})."
        )
    return problems


def export(root: Path = Path(), scale: str | None = None, names: Sequence[str] = ()) -> list[tuple[Card, float]]:
    """Write the networks ``names`` of a finished build into weights/ of the repository at ``root``.

    By default these are all backbones and methods; ablations are exported by name (``ifadit.without_img``). Either all
    files are written or none. Returns the card and the `compute_rounding_error` of each. Raises MasqueradeError if a
    checkpoint or its record is missing or was itself pretrained, or if all files are larger than `cards.LIMIT`.
    """
    parameters = loading.load(root, scale)
    networks = list_networks(parameters)
    if unknown := [name for name in names if name not in {network.name for network in networks}]:
        hint = suggest_nearest(unknown[0], (network.name for network in networks))
        raise MasqueradeError(f"Scale {parameters.scale} has no network '{unknown[0]}'. {hint}")
    by_default = [network.name for network in networks if network.room and not network.variant]
    selected = [network for network in networks if network.name in (names or by_default)]
    if missing := [network.checkpoint for network in selected if not (root / network.checkpoint).is_file()]:
        raise MasqueradeError(
            f"{len(missing)} of {len(selected)} networks of scale {parameters.scale} are not built (the first: "
            f"{missing[0]}). Run `snakemake all --config scale={parameters.scale}`, or name the networks to export."
        )
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place:
        exporter = _Exporter(root, parameters, Path(place))
        exported = [exporter.export(network) for network in selected]
        _check_size(root, [card for card, _ in exported])
        for file in sorted(Path(place).iterdir()):
            with files.write_atomically(root / cards.FOLDER / parameters.collection / file.name) as temporary:
                shutil.move(file, temporary)
    return exported


def _check_size(root: Path, exported: Sequence[Card]) -> None:
    sizes = {name: cards.read_card(name, root).size for name in cards.list_names(root)}
    sizes |= {card.name: card.size for card in exported}
    largest = max(sizes, key=lambda name: sizes[name])
    if sizes[largest] > cards.LARGEST or sum(sizes.values()) > cards.LIMIT:
        raise MasqueradeError(
            f"The weights would have {sum(sizes.values()) / 1e6:.1f} MB together, the largest, {largest}, "
            f"{sizes[largest] / 1e6:.1f}. {cards.FOLDER}/ lies in git: at most {cards.LIMIT / 1e6:g} MB together and "
            f"{cards.LARGEST / 1e6:g} in one file. Export fewer networks, or make these smaller."
        )


class _Exporter:
    """Writes the weight files and cards of a build into ``folder``."""

    def __init__(self, root: Path, parameters: Parameters, folder: Path):
        self.root, self.parameters, self.folder = root, parameters, folder
        self.paths = Paths(parameters.scale)
        self._sha256: dict[str, str] = {}
        self._people = describe_people(parameters)

    def export(self, network: Network) -> tuple[Card, float]:
        """Write one network. Returns its card and its rounding error."""
        checkpoint = network.checkpoint
        path = self.root / checkpoint
        record = self._read_record(checkpoint)
        parts, metadata = checkpoints.load_checkpoint(path)
        self._refuse_pretrained(network, metadata)
        tensors = {f"{part}.{key}": tensor for part, group in parts.items() for key, tensor in group.items()}
        buffers = checkpoints.list_buffers(path)
        # the columns of fakes and distractors are buffers, and are rounded
        rounded = round_to_half(tensors, buffers if network.room else [])
        ties = {name: md5 for name in network.needs if (md5 := metadata.get(name))}
        if network.module == FAKES:  # the file states the generator; the features are those of this semantics network
            ties["semantics"] = fingerprints.md5(self.root / self.paths.backbone.format(backbone="semantics"))
        file = self.folder / cards.weights_path(network.name).name
        checkpoints.write_tensors(
            file, rounded, {key: value for key, value in metadata.items() if key not in ties}, buffers
        )
        self._sha256[network.name] = fingerprints.sha256(file)
        quality, quality_of = self._read_quality(network)
        terms = network.terms
        card = Card(
            name=network.name,
            what=self._describe(network),
            source=getattr(network.cls, "source", "") or network.cls.paper,
            block=network.block,
            license=crate.license_of_networks(terms),
            terms=terms,
            scale=self.parameters.scale,
            data=Data(
                dataset=self.parameters.matrix.train_on, people=self._people, group=network.cls.people,
                image_size=self.parameters.image.size,
            ),
            parameters=select_parameters(network),
            seed=network.seeds[0],
            belongs_to={name: self._find_tie(network, name, md5) for name, md5 in ties.items()},
            commit=record["commit"],
            hours=round(record["seconds"] / 3600, 3),
            machine=descriptions.describe_machine(record["machine"]),
            quality=quality,
            quality_of=quality_of,
            checkpoint=fingerprints.md5(path),
            tensors=len(rounded),
            numbers=sum(tensor.numel() for tensor in rounded.values()),
            size=file.stat().st_size,
            sha256=self._sha256[network.name],
        )  # fmt: skip
        cards.write_card(card, self.folder)
        return card, compute_rounding_error(tensors.values(), rounded.values())

    def _refuse_pretrained(self, network: Network, metadata: Mapping[str, Any]) -> None:
        """Raises MasqueradeError if a file of weights/ or an official one replaced the training of a network."""
        if network.room == "backbones":
            source = self._read_report(network)["published"]
        else:
            name = metadata.get(PRETRAINED, {}).get("name", "")
            source = name if not name or weight_names.parse_asset_role(name) else f"{weight_names.PREFIX}{name}"
        if source:
            raise MasqueradeError(
                f"{network.name} was not trained at scale {self.parameters.scale}: its weights are from {source}, and "
                f"{cards.FOLDER}/ holds networks that were trained with this program alone. Export from the scale that "
                f"trains it, or set {network.block}.published to '' and build this one again."
            )

    def _read_report(self, network: Network) -> dict[str, Any]:
        """The report of a backbone, with its figures."""
        return files.read_json(self.root / self.paths.backbone_quality.format(backbone=network.module))

    def _read_record(self, checkpoint: str) -> dict[str, Any]:
        """The circumstances of the job that wrote a checkpoint."""
        file = self.root / provenance.circumstances_path(checkpoint)
        record = files.read_json(file) if file.is_file() else {"outputs": {}}
        if record["outputs"].get(checkpoint) != fingerprints.md5(self.root / checkpoint):
            raise MasqueradeError(
                f"{checkpoint} has no record of its training in {provenance.FOLDER} (commit, time, machine), or the "
                "record is of another file. The card needs it: bring it with the files (`dvc pull` does), "
                f"or build it again with `snakemake {checkpoint} --forcerun {checkpoint}`."
            )
        return record

    def _find_tie(self, network: Network, backbone: str, md5: str) -> str:
        """The SHA-256 of the weight file of a backbone that the network was trained with."""
        checkpoint = self.root / self.paths.backbone.format(backbone=backbone)
        name = cards.name_beside(network.name, backbone)
        if fingerprints.md5(checkpoint) == md5:
            if source := checkpoints.load_checkpoint(checkpoint)[1].get(PRETRAINED):
                return source["sha256"]
            if name in self._sha256:
                return self._sha256[name]
            if name in cards.list_names(self.root) and (card := cards.check_bytes(name, self.root)).checkpoint == md5:
                return card.sha256
        raise MasqueradeError(
            f"{network.name} belongs to another {backbone} than the one of this build, or its weights are not in "
            f"{cards.FOLDER}/. Run `snakemake all --config scale={self.parameters.scale}`, and export both: "
            f"`masquerade weights export {name} {network.name}`."
        )

    def _describe(self, network: Network) -> str:
        """The network in words."""
        ablation = f", ablation {network.variant}" if network.variant else ""
        stand_in = ", a latent stand-in" if network.module in self.parameters.latent_stand_ins else ""
        return f"{network.cls.title}{ablation}{stand_in}"

    def _read_quality(self, network: Network) -> tuple[dict[str, float], str]:
        """The figures of a network and the people on whom they were measured."""
        dataset = self.parameters.matrix.train_on
        if network.room == "backbones":
            return self._read_report(network)["quality"], f"validation people of {dataset}"
        if not network.room:
            return {}, "not measured: faces of nobody"
        variant = network.variant or next(iter(self.parameters.methods[network.module].variants))
        file = self.root / self.paths.scores
        scores = files.read_json(file) if file.is_file() else {}
        figures = scores.get(dataset, {}).get(f"{network.module}/{variant}", {})
        where = f"variant {variant}, test people of {dataset} ({self.paths.scores})"
        return figures, where if figures else "not measured: a method has no figures before its images are measured"


def describe_people(parameters: Parameters) -> str:
    """The people of the training set in words."""
    cls = discovery.load("faces", parameters.matrix.train_on)
    return f"{cls.title}: {cls.shows}"
