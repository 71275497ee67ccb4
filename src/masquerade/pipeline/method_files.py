"""The files that a method needs outside a build: those that a build made, else networks adopted from weights/.

Adopted checkpoints and the fakes that are drawn with them lie in ``.masquerade/adopted/<scale>/`` (of a wheel, in the
user's cache), so that a build never takes them for its own. For photographs the scale is `PHOTO`, if its networks are
there.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive, index_path
from masquerade.methods import Resources
from masquerade.methods.latent import SetOfFakes
from masquerade.params import loading, repository
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import pretrained_networks
from masquerade.pipeline.pretrained_networks import FAKES, Network
from masquerade.training.cards import Card

FOLDER = "adopted"
PHOTO = "photo"
"""The scale of the networks for photographs (docs/scale_photo.md)."""
SIZE = 256
"""Pixels of its images."""
Say = Callable[[str], None]


def choose_scale(root: Path, method: str, variant: str | None, scale: str | None) -> tuple[Parameters, str]:
    """The parameters with which ``method`` works on photographs, and a sentence that states their scale and size.

    ``scale``: None takes PHOTO if all networks of the method are there at that scale, and else the scale of
    params.yaml. Raises ParameterError as `loading.load`.
    """
    if scale is not None or PHOTO not in loading.list_scales(root):
        parameters = loading.load(root, scale)
        return parameters, describe_scale(parameters, method)
    photo = loading.load(root, PHOTO)
    absent = list(list_missing(root, photo, method, variant))
    parameters = loading.load(root) if absent else photo
    sentence = describe_scale(parameters, method)
    if method not in photo.methods or parameters.scale == PHOTO:
        return parameters, sentence
    networks = [lack for lack in absent if lack != pretrained_networks.find_package_problem(photo)]
    advice = (
        f"For {SIZE} pixels, it lacks {networks[0]}."
        if networks
        else f"`make photo` gives {SIZE} pixels. {pretrained_networks.WITHOUT_CLONE}"
    )
    return parameters, f"{sentence} {advice}"


def describe_scale(parameters: Parameters, method: str) -> str:
    """The scale of a method's networks, and the size of its images, in a sentence."""
    size = parameters.image.size
    networks = f"{method} uses the networks of scale {parameters.scale} and writes images of {size} x {size} pixels."
    instead = parameters.latent_stand_ins.get(method)
    return f"{networks} It is a latent stand-in and not the published method: {instead}." if instead else networks


def list_missing(root: Path, parameters: Parameters, method: str, variant: str | None) -> Iterator[str]:
    """What a method lacks at a scale: its block, the package of the generator, or files of networks."""
    if method not in parameters.methods:
        yield f"methods.{method}"
        return
    if problem := pretrained_networks.find_package_problem(parameters):
        yield problem
    for network in list_networks(parameters, method, variant or next(iter(parameters.methods[method].variants))):
        if not (root / network.checkpoint).is_file() and not network.package:
            files = pretrained_networks.list_files(network.weights) or [network.checkpoint]
            if not all((root / path).is_file() for path in files):
                yield files[0]


def list_networks(parameters: Parameters, method: str, variant: str) -> list[Network]:
    """The networks that a method loads: backbones, each after those that it was trained with, and its own."""
    networks = [
        Network(parameters, "backbones", name) for name in pretrained_networks.sort_backbones(parameters.needs(method))
    ]
    if parameters.trains(method):
        ablation = variant if variant in parameters.ablations(method) else ""
        networks.append(Network(parameters, "methods", method, ablation))
    return networks


def find_resources(
    root: Path, parameters: Parameters, name: str, variant: str, say: Say = lambda text: None,
    checkpoint: Path | None = None,
) -> Resources:  # fmt: skip
    """The files of the method ``name`` in the repository at ``root``.

    ``say`` gets a sentence when networks of weights/ are used, with the people that they learned from. ``checkpoint``:
    of the method's own network, in place of that of the scale. Raises CheckpointError naming the files that are
    missing, and what to do, and ParameterError for a checkpoint of a method that has none.
    """
    if checkpoint and not parameters.trains(name):
        raise ParameterError(f"'{name}' has no network of its own, so it takes no checkpoint. Leave it out.")
    if checkpoint and not checkpoint.is_file():
        raise CheckpointError(f"{checkpoint} is missing. Name a checkpoint of '{name}', or none.")
    able, networks = discovery.load("methods", name).capabilities, list_networks(parameters, name, variant)
    if checkpoint:
        networks.pop()
    gallery = Path(Paths(parameters.scale).faces.format(dataset=parameters.matrix.train_on))
    required_files = [network.checkpoint for network in networks if not (network.weights or network.package)]
    required_files += [str(path) for path in (gallery, index_path(gallery)) if able.gallery]
    if missing := [path for path in required_files if not (root / path).is_file()]:
        raise _explain_missing(root, parameters, name, missing)
    if able.fakes:
        networks.append(Network(parameters, "", FAKES))
    paths: dict[str, Path] = {}
    cards: list[Card] = []
    for network in networks:
        if (path := root / network.checkpoint).is_file():
            paths[network.module] = path
        elif network.weights:
            paths[network.module], card = _adopt(root, network, paths)
            cards.append(card)
        elif network.package:
            paths[network.module] = _find_place(root, network)
            network.cls(network.params).write_packaged(paths[network.module])
        else:
            paths[FAKES] = _draw_fakes(root, parameters, paths, say)
    if cards:
        say(_describe_cards(parameters.scale, cards))
    return Resources(
        checkpoint=checkpoint or paths.get(name),
        backbones={need: paths[need] for need in parameters.needs(name)},
        gallery=FaceArchive(root / gallery) if able.gallery else None,
        fakes=paths.get(FAKES),
    )


def _find_folder(root: Path, parameters: Parameters) -> Path:
    return repository.find_cache_folder(root) / FOLDER / parameters.scale


def _adopt(root: Path, network: Network, backbones: Mapping[str, Path]) -> tuple[Path, Card]:
    """The checkpoint that is written from weights/, and its card."""
    from masquerade.training import pretrained

    pretrained_networks.check_pretrained(network.parameters, root, network.block)
    checkpoint, keys = _find_place(root, network), network.cls.architecture
    return checkpoint, pretrained.load_pretrained(network.weights, keys, network.params, backbones, checkpoint, root)


def _find_place(root: Path, network: Network) -> Path:
    """Where the checkpoint of a pretrained network is written."""
    paths = Paths(network.parameters.scale)
    file = Path(network.checkpoint).relative_to(paths.checkpoints if network.room else paths.data)
    return _find_folder(root, network.parameters) / file


def _draw_fakes(root: Path, parameters: Parameters, backbones: Mapping[str, Path], say: Say) -> Path:
    """The set of fakes that is drawn once with these backbones."""
    from masquerade.methods.latent import fakes
    from masquerade.methods.latent.space import LatentSpace

    settings, seed = parameters.fakes, parameters.data_seed
    files = {name: backbones[name] for name in SetOfFakes.needs}
    origin = "-".join(fingerprints.md5(path)[:8] for path in files.values())
    path = _find_folder(root, parameters) / f"fakes-{origin}-{settings.count}-{settings.psi}-{seed}.safetensors"
    if not path.is_file():
        say(f"Drawing {settings.count} faces of nobody, once: {path}.")
        fakes.write_fakes(LatentSpace(files), path, settings.count, settings.psi, seed)
    return path


def _explain_missing(root: Path, parameters: Parameters, name: str, missing: list[str]) -> CheckpointError:
    are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
    place = "a clone of Masquerade" if root == repository.CARRIED else root.resolve()
    return CheckpointError(
        f"{name} needs {', '.join(missing)}, which {are} missing, and scale {parameters.scale} adopts {them} from no "
        f"file of weights/. Run `make reproduce`, or only `snakemake {' '.join(missing)}`, in {place}."
    )


def _describe_cards(scale: str, cards: list[Card]) -> str:
    """What a person must know of the networks of weights/."""
    names = ", ".join(card.name for card in cards)
    people = "; ".join(dict.fromkeys(card.data.people for card in cards))
    sizes = " and ".join(dict.fromkeys(str(card.data.image_size) for card in cards))
    return (
        f"No build of scale {scale} has these networks, so those of weights/ are used: {names}. "
        f"They learned from images of {sizes} pixels. The people: {people}."
    )
