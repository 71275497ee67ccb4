"""The files that a method needs outside a build: those that a build made, else networks adopted from weights/.

Adopted checkpoints and the fakes that are drawn with them lie in ``.masquerade/adopted/<scale>/`` (of a wheel, in the
user's cache), so that a build never takes them for its own.
"""

from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path

from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive, index_path
from masquerade.core.settings import Settings
from masquerade.methods import Resources
from masquerade.methods.latent import SetOfFakes
from masquerade.params import repository
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import pretrained_networks
from masquerade.training.cards import Card

FOLDER = "adopted"
Say = Callable[[str], None]


def resources(
    root: Path, parameters: Parameters, name: str, variant: str, say: Say = lambda text: None,
    checkpoint: Path | None = None,
) -> Resources:  # fmt: skip
    """The files of the method ``name`` in the repository at ``root``.

    ``say`` gets a sentence when networks of weights/ are used, with the people that they learned from. ``checkpoint``:
    of the method's own network, in place of that of the scale. Raises CheckpointError naming the files that are
    missing, and what to do, and ParameterError for a checkpoint of a method that has none.
    """
    return _Finder(root, parameters, say).resources(name, variant, checkpoint)


class _Finder:
    def __init__(self, root: Path, parameters: Parameters, say: Say):
        self.root, self.parameters, self.say = root, parameters, say
        self.paths = Paths(parameters.scale)
        self.folder = repository.find_cache_folder(root) / FOLDER / parameters.scale
        self.cards: list[Card] = []
        self.missing: list[str] = []

    def resources(self, name: str, variant: str, given: Path | None) -> Resources:
        cls = discovery.load("methods", name)
        able, needs = cls.capabilities, self.parameters.needs(name)
        trains = self.parameters.trains(name)
        if given and not trains:
            raise ParameterError(f"'{name}' has no network of its own, so it takes no checkpoint. Leave it out.")
        if given and not given.is_file():
            raise CheckpointError(f"{given} is missing. Name a checkpoint of '{name}', or none.")
        backbones: dict[str, Path] = {}
        for need in _in_order(needs):
            if path := self._backbone(need, backbones):
                backbones[need] = path
        checkpoint = given or (self._checkpoint(name, variant, backbones) if trains else None)
        gallery = self.paths.faces.format(dataset=self.parameters.matrix.train_on)
        if able.gallery:
            self.missing += [path for path in (gallery, str(index_path(Path(gallery)))) if not self._built(path)]
        fakes = self._fakes(backbones) if able.fakes else None
        if self.missing:
            self._refuse(name)
        if self.cards:
            self.say(self._learned())
        return Resources(
            checkpoint=checkpoint,
            backbones={need: backbones[need] for need in needs},
            gallery=FaceArchive(self.root / gallery) if able.gallery else None,
            fakes=fakes,
        )

    def _built(self, path: str) -> bool:
        return (self.root / path).is_file()

    def _backbone(self, name: str, others: dict[str, Path]) -> Path | None:
        """The checkpoint of a backbone; None, and an entry of ``missing``, if there is none."""
        path = self.paths.backbone.format(backbone=name)
        if self._built(path):
            return self.root / path
        backbone = discovery.load("backbones", name)(self.parameters.backbones[name])
        return self._adopted(path, f"backbones.{name}", backbone.weights, backbone.params, others)

    def _checkpoint(self, name: str, variant: str, backbones: dict[str, Path]) -> Path | None:
        """The checkpoint of a method or of an ablation, as `_backbone`."""
        pattern = self.paths.ablation if variant in self.parameters.ablations(name) else self.paths.method
        path = pattern.format(method=name, variant=variant, seed=self.parameters.seeds[0])
        if self._built(path):
            return self.root / path
        params, weights = self.parameters.training_params(name, variant), self.parameters.weights_name(name, variant)
        return self._adopted(path, f"methods.{name}", weights, params, backbones)

    def _adopted(self, path: str, block: str, weights: str, params: Settings, others: dict[str, Path]) -> Path | None:
        from masquerade.training import pretrained

        if not weights:
            self.missing.append(path)
        if self.missing:
            return None
        pretrained_networks.check_pretrained(self.parameters, self.root, block)
        keys = discovery.load(*block.split(".")).architecture
        checkpoint = self.folder / Path(path).relative_to(self.paths.checkpoints)
        self.cards.append(pretrained.load_pretrained(weights, keys, params, others, checkpoint, self.root))
        return checkpoint

    def _fakes(self, backbones: dict[str, Path]) -> Path | None:
        """The set of fakes: of a build, a published one, or drawn once with adopted networks."""
        if self._built(self.paths.fakes):
            return self.root / self.paths.fakes
        if self.missing or not self.cards:
            self.missing.append(self.paths.fakes)
            return None
        from masquerade.methods.latent import fakes
        from masquerade.methods.latent.space import LatentSpace

        settings, seed = self.parameters.fakes, self.parameters.data_seed
        files = {name: backbones[name] for name in SetOfFakes.needs}
        if settings.published:
            pretrained_networks.check_pretrained(self.parameters, self.root, pretrained_networks.FAKES)
            path = self.folder / "fakes.safetensors"
            self.cards.append(fakes.adopt(settings, files, path, self.root))
            return path
        origin = "-".join(fingerprints.md5(path)[:8] for path in files.values())
        path = self.folder / f"fakes-{origin}-{settings.count}-{settings.psi}-{seed}.safetensors"
        if not path.is_file():
            self.say(f"Drawing {settings.count} faces of nobody, once: {path}.")
            fakes.write_fakes(LatentSpace(files), path, settings.count, settings.psi, seed)
        return path

    def _refuse(self, name: str) -> None:
        one = len(self.missing) == 1
        listed = ", ".join(self.missing)
        place = "a clone of Masquerade" if self.root == repository.CARRIED else self.root.resolve()
        raise CheckpointError(
            f"{name} needs {listed}, which {'is' if one else 'are'} missing, and scale {self.parameters.scale} adopts "
            f"{'it' if one else 'them'} from no file of weights/. Run `make reproduce`, or only `snakemake "
            f"{' '.join(self.missing)}`, in {place}."
        )

    def _learned(self) -> str:
        """What a person must know of the networks of weights/."""
        names = ", ".join(card.name for card in self.cards)
        people = "; ".join(dict.fromkeys(card.data.people for card in self.cards))
        sizes = " and ".join(dict.fromkeys(str(card.data.image_size) for card in self.cards))
        return (
            f"No build of scale {self.parameters.scale} has these networks, so those of weights/ are used: {names}. "
            f"They learned from pictures of {sizes} pixels. The people: {people}."
        )


def _in_order(names: tuple[str, ...]) -> list[str]:
    """Backbones, each after those that it was trained with."""
    needs = {name: set(discovery.load("backbones", name).needs) & set(names) for name in names}
    return list(TopologicalSorter(needs).static_order())
