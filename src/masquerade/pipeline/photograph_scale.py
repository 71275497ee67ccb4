"""Chooses the scale whose networks anonymize or recover photographs on the command line."""

from collections.abc import Iterator
from pathlib import Path

from masquerade.core import discovery
from masquerade.params import loading
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import pretrained_networks

PHOTO = "photo"
"""The scale of the networks for photographs (docs/photo.md)."""
SIZE = 256
"""Pixels of its pictures."""


def choose(root: Path, method: str, variant: str | None, scale: str | None) -> tuple[Parameters, str]:
    """The parameters with which ``method`` works on photographs, and a sentence that states their scale and size.

    ``scale``: None takes PHOTO if all networks of the method are there at that scale, and else the scale of
    params.yaml. Raises ParameterError as `loading.load`.
    """
    if scale is None and PHOTO in loading.list_scales(root):
        photo = loading.load(root, PHOTO)
        absent = list(missing(root, photo, method, variant))
        if not absent:
            return photo, _sentence(photo, method)
        parameters = loading.load(root)
        if method in photo.methods and parameters.scale != PHOTO:
            networks = [lack for lack in absent if lack != pretrained_networks.find_package_problem(photo)]
            advice = (
                f"For {SIZE} pixels, it lacks {networks[0]}."
                if networks
                else f"`make photo` gives {SIZE} pixels. {pretrained_networks.WITHOUT_CLONE}"
            )
            return parameters, f"{_sentence(parameters, method)} {advice}"
        return parameters, _sentence(parameters, method)
    parameters = loading.load(root, scale)
    return parameters, _sentence(parameters, method)


def _sentence(parameters: Parameters, method: str) -> str:
    size = parameters.image.size
    networks = f"{method} uses the networks of scale {parameters.scale} and writes pictures of {size} x {size} pixels."
    instead = parameters.latent_stand_ins.get(method)
    return f"{networks} It is a latent stand-in and not the published method: {instead}." if instead else networks


def missing(root: Path, parameters: Parameters, method: str, variant: str | None) -> Iterator[str]:
    """What a method lacks at a scale: its block, the package of the generator, or files of networks."""
    if method not in parameters.methods:
        yield f"methods.{method}"
        return
    if problem := pretrained_networks.find_package_problem(parameters):
        yield problem
    paths = Paths(parameters.scale)
    needs = parameters.needs(method)
    files = {need: paths.backbone.format(backbone=need) for need in needs}
    weights = {
        need: discovery.load("backbones", need)(parameters.backbones[need]).weights
        for need in needs
        if need in parameters.backbones
    }
    if parameters.trains(method):
        name = variant or next(iter(parameters.methods[method].variants))
        ablation = name in parameters.ablations(method)
        pattern = paths.ablation if ablation else paths.method
        files[method] = pattern.format(method=method, variant=name, seed=parameters.seeds[0])
        weights[method] = parameters.weights_name(method, name)
    for network, file in files.items():
        adopted = pretrained_networks.list_files(weights.get(network, ""))
        if not (root / file).is_file() and not (adopted and all((root / path).is_file() for path in adopted)):
            yield (adopted or [file])[0]
