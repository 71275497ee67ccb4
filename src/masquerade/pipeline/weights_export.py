"""Exports the networks of a finished build into weights/: 16-bit weight files, each with its card (docs/weights.md)."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masquerade.core import discovery, files, fingerprints, own_weights
from masquerade.core.errors import MasqueradeError, suggest_nearest
from masquerade.lineage import crate, descriptions, provenance
from masquerade.params import loading
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline.trained_networks import Trained, networks, slice_of, terms_of
from masquerade.training import adoption, cards, checkpoints, half_precision
from masquerade.training.cards import Card, Data
from masquerade.training.settings import TrainingJob


@dataclass(frozen=True)
class Exported:
    """A network that was exported."""

    trained: Trained
    card: Card
    loss: float
    """The rounding error, as `half_precision.loss`."""


def export(root: Path = Path(), scale: str | None = None, names: Sequence[str] = ()) -> list[Exported]:
    """Write the networks ``names`` of a finished build into weights/ of the repository at ``root``.

    By default these are all backbones and methods; ablations are exported by name (``ifadit.without_img``).

    Either all files are written or none. Raises MasqueradeError if a checkpoint or its record is missing, was itself
    adopted, cannot be rounded, or if the files together would be larger than `cards.LIMIT`.
    """
    parameters = loading.load(root, scale)
    known = networks(parameters)
    if unknown := [name for name in names if name not in {trained.name for trained in known}]:
        raise MasqueradeError(
            f"Scale {parameters.scale} has no network '{unknown[0]}'. "
            f"{suggest_nearest(unknown[0], (one.name for one in known))}"
        )
    chosen = [one for one in known if (one.name in names if names else one.room and not one.variant)]
    _check_built(root, parameters, chosen)
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place:
        exporter = _Exporter(root, parameters, Path(place))
        exported = [exporter.export(trained) for trained in chosen]
        _check_size(root, exported)
        for file in sorted(Path(place).iterdir()):
            with files.write_atomically(root / cards.FOLDER / parameters.collection / file.name) as temporary:
                shutil.move(file, temporary)
    return exported


def _check_built(root: Path, parameters: Parameters, chosen: Sequence[Trained]) -> None:
    paths, seed = Paths(parameters.scale), parameters.seeds[0]
    files = [trained.checkpoint(paths, seed) for trained in chosen]
    if missing := [path for path in files if not (root / path).is_file()]:
        raise MasqueradeError(
            f"{len(missing)} of {len(files)} networks of scale {parameters.scale} are not built (the first: "
            f"{missing[0]}). Run `snakemake all --config scale={parameters.scale}`, or name the networks to export."
        )


def _check_size(root: Path, exported: Sequence[Exported]) -> None:
    sizes = {one.card.name: one.card.size for one in exported}
    kept = {name: cards.read(name, root).size for name in cards.names(root) if name not in sizes}
    total = sum((*sizes.values(), *kept.values()))
    if large := [name for name, size in sizes.items() if size > cards.LARGEST]:
        raise MasqueradeError(
            f"{cards.weights_path(large[0])} would have {sizes[large[0]] / 1e6:.1f} MB, and a file of {cards.FOLDER}/ "
            f"has at most {cards.LARGEST / 1e6:g} MB. Make the network smaller."
        )
    if total > cards.LIMIT:
        largest = sorted((*sizes.items(), *kept.items()), key=lambda item: -item[1])[:3]
        listed = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in largest)
        raise MasqueradeError(
            f"The weights would have {total / 1e6:.1f} MB together, and {cards.FOLDER}/ lies in git with at most "
            f"{cards.LIMIT / 1e6:g} MB. The largest: {listed}. Export fewer networks, or make these smaller."
        )


class _Exporter:
    """Writes the weight files and cards of a build into ``folder``."""

    def __init__(self, root: Path, parameters: Parameters, folder: Path):
        self.root, self.parameters, self.folder = root, parameters, folder
        self.paths = Paths(parameters.scale)
        self._sha256: dict[str, str] = {}
        self._people = _people(parameters)

    def export(self, trained: Trained) -> Exported:
        seed = self.parameters.seeds[0] if trained.room == "methods" else self.parameters.data_seed
        checkpoint = trained.checkpoint(self.paths, self.parameters.seeds[0])
        path = self.root / checkpoint
        record = self._record(checkpoint)
        parts, facts = checkpoints.load_checkpoint(path)
        if published := self._published(trained, facts):
            raise MasqueradeError(
                f"{checkpoint} was not trained at scale {self.parameters.scale}: it was adopted from {published}, and "
                f"{cards.FOLDER}/ holds networks that were trained with this program alone. Export from the scale that "
                f"trains it, or set {trained.block}.published to '' and build this one again."
            )
        tensors = {f"{part}.{key}": tensor for part, group in parts.items() for key, tensor in group.items()}
        buffers = checkpoints.buffers_of(path)
        exact = buffers if trained.room else []  # the codes and features of fakes are buffers, and are rounded
        rounded = half_precision.rounded(tensors, exact, path)
        ties = {name: md5 for name in trained.needs(self.parameters) if (md5 := facts.get(name))}
        if not trained.room:  # the file states the generator, and the features are those of this semantics network
            ties["semantics"] = fingerprints.md5(self.root / self.paths.backbone.format(backbone="semantics"))
        file = self.folder / cards.weights_path(trained.name).name
        facts = {key: value for key, value in facts.items() if key not in ties}
        checkpoints.write(file, rounded, facts, buffers)
        self._sha256[trained.name] = fingerprints.sha256(file)
        quality, quality_of = self._quality(trained)
        terms = terms_of(self.parameters, trained)
        card = Card(
            name=trained.name,
            what=self._what(trained),
            source=getattr(trained.cls, "source", "") or trained.cls.paper,
            block=trained.block,
            license=crate.license_of_networks(terms),
            terms=terms,
            scale=self.parameters.scale,
            data=Data(
                dataset=self.parameters.matrix.train_on, people=self._people, group=trained.cls.people,
                image_size=self.parameters.image.size,
            ),
            parameters=slice_of(self.parameters, trained),
            seed=seed,
            belongs_to={name: self._tied(trained, name, md5) for name, md5 in ties.items()},
            commit=record["commit"],
            hours=round(record["seconds"] / 3600, 3),
            machine=descriptions.describe_machine(record["machine"]),
            quality=quality,
            quality_of=quality_of,
            checkpoint=fingerprints.md5(path),
            tensors=len(rounded),
            numbers=sum(tensor.numel() for tensor in rounded.values()),
            size=file.stat().st_size,
            sha256=self._sha256[trained.name],
        )  # fmt: skip
        cards.write(card, self.folder)
        return Exported(trained, card, half_precision.loss(tensors.values(), rounded.values()))

    def _published(self, trained: Trained, facts: Mapping[str, Any]) -> str:
        """What replaced the training of a network, as ``published`` names it; '' if it was trained."""
        if trained.room == "backbones":
            return self._report(trained)["published"]
        name = facts.get(adoption.ADOPTED, {}).get("name", "")
        return name if not name or own_weights.role_of(name) else f"{own_weights.PREFIX}{name}"

    def _report(self, trained: Trained) -> dict[str, Any]:
        """The report of a backbone, with its figures."""
        file = self.root / self.paths.backbone_quality.format(backbone=trained.module)
        return json.loads(file.read_text(encoding="utf-8"))

    def _record(self, checkpoint: str) -> dict[str, Any]:
        """The circumstances of the job that wrote a checkpoint."""
        file = self.root / provenance.circumstances_path(checkpoint)
        record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"outputs": {}}
        if record["outputs"].get(checkpoint) != fingerprints.md5(self.root / checkpoint):
            raise MasqueradeError(
                f"{checkpoint} has no record of its training in {provenance.FOLDER} (commit, time, machine), or the "
                "record is of another file. The card needs it: bring it with the files (`dvc pull` does), "
                f"or build it again with `snakemake {checkpoint} --forcerun {checkpoint}`."
            )
        return record

    def _tied(self, trained: Trained, backbone: str, md5: str) -> str:
        """The SHA-256 of the weight file of a backbone that the network was trained with."""
        checkpoint = self.root / self.paths.backbone.format(backbone=backbone)
        if fingerprints.md5(checkpoint) != md5:
            raise MasqueradeError(
                f"{trained.name} was trained with another {backbone} than the one of this build. Run `snakemake all "
                f"--config scale={self.parameters.scale}`, and export again."
            )
        if adopted := checkpoints.load_checkpoint(checkpoint)[1].get(adoption.ADOPTED):
            return adopted["sha256"]
        name = cards.beside(trained.name, backbone)
        if name in self._sha256:
            return self._sha256[name]
        if name not in cards.names(self.root) or (card := cards.checked(name, self.root)).checkpoint != md5:
            raise MasqueradeError(
                f"{trained.name} belongs to the {backbone} of this build, whose weights are not in {cards.FOLDER}/. "
                f"Export both: `masquerade weights export {name} {trained.name}`."
            )
        return card.sha256

    def _what(self, trained: Trained) -> str:
        """The network in words."""
        ablation = f", ablation {trained.variant}" if trained.variant else ""
        stand_in = ", a latent stand-in" if trained.module in self.parameters.latent_stand_ins else ""
        return f"{trained.cls.title}{ablation}{stand_in}"

    def _quality(self, trained: Trained) -> tuple[dict[str, float], str]:
        """The figures of a network and the people on whom they were measured."""
        dataset = self.parameters.matrix.train_on
        if trained.room == "backbones":
            return self._report(trained)["quality"], f"validation people of {dataset}"
        if not trained.room:
            return {}, "not measured: faces of nobody"
        variant = trained.variant or next(iter(self.parameters.methods[trained.module].variants))
        file = self.root / self.paths.scores
        scores = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        figures = scores.get(dataset, {}).get(f"{trained.module}/{variant}", {})
        where = f"variant {variant}, test people of {dataset} ({self.paths.scores})"
        return figures, where if figures else "not measured: a method has no figures before its pictures are measured"


def _people(parameters: Parameters) -> str:
    """The people of the training set in words."""
    cls = discovery.load("faces", parameters.matrix.train_on)
    return f"{cls.title}: {cls.shows}"


def rounding_losses(
    exported: Sequence[Exported], parameters: Parameters, root: Path = Path()
) -> Iterator[tuple[str, str, float, float]]:
    """(backbone, figure, of the checkpoint, of the rounded weights) of each exported backbone, measured again here."""
    exported_names = {one.card.name for one in exported}
    with tempfile.TemporaryDirectory(prefix="masquerade-") as place:
        written = {name: Path(place, f"{name}.safetensors") for name in parameters.backbones}
        for trained in networks(parameters):
            name = trained.module
            if trained.room != "backbones" or trained.name not in cards.names(root):
                continue
            backbone = trained.cls(parameters.backbones[name])
            job = TrainingJob(
                faces=root / Paths(parameters.scale).faces.format(dataset=parameters.matrix.train_on),
                backbones=written, checkpoint=written[name], state=Path(place, "state.pt"), seed=parameters.data_seed,
                threads=1, log=lambda *_: None, picture=lambda *_: None, people=trained.cls.people,
            )  # fmt: skip
            card = adoption.adopt(trained.name, backbone.architecture, backbone.params, written, written[name], root)
            if trained.name in exported_names:
                after = backbone.quality(job)
                for figure, before in card.quality.items():
                    yield name, figure, before, after[figure]
