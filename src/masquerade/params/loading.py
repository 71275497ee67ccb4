"""Loads and validates params.yaml and the overlay of one scale.

params.yaml holds the values of the papers. ``scales/<scale>.yaml`` holds what differs at that scale: a mapping is
merged, any other value replaces, ``null`` removes the key. Its key ``base`` names another scale, whose overlay is put
on params.yaml first. The modules of the rooms define the types of their own
blocks (datasets, backbones, judges, metrics, methods and attackers), so a new module brings its own block.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from masquerade import assets
from masquerade.core import discovery
from masquerade.core.errors import ParameterError, suggest_nearest
from masquerade.params.blocks import PARAMS, SCALES
from masquerade.params.mistakes import explain_mistakes
from masquerade.params.model import build_model
from masquerade.params.overlays import overlay, read_chain
from masquerade.params.parameters import Parameters, build_training_params
from masquerade.params.yaml_files import read_yaml

CONFIG = "--config or --configfile"
"""The name of what Snakemake's command line sets, in the place of a file."""


def list_scales(root: Path = Path()) -> list[str]:
    """The scales that have an overlay."""
    return sorted(path.stem for path in (root / SCALES).glob("*.yaml"))


def load(root: Path = Path(), scale: str | None = None, config: Mapping[str, Any] | None = None) -> Parameters:
    """The parameters of the repository at ``root``: params.yaml with the overlay of ``scale``.

    ``scale``: None takes the key ``scale`` of params.yaml. ``config``: one more overlay, on top of the others, that of
    Snakemake's ``--config`` and ``--configfile``; its key ``scale`` names the scale. Raises ParameterError, which lists
    every mistake.
    """
    base = read_yaml(root / PARAMS)
    changes = dict(config or {})
    scale = changes.pop("scale", scale or base.get("scale"))
    if scale not in list_scales(root):
        raise ParameterError(f"{PARAMS}: there is no scale '{scale}'. {suggest_nearest(str(scale), list_scales(root))}")
    layers = {**read_layers(scale, root), CONFIG: changes}
    merged = base
    for file, layer in layers.items():
        _check_removals(merged, layer, file)
        merged = overlay(merged, layer)
    merged = overlay(merged, {"scale": scale})
    try:
        parameters = Parameters(build_model()(**merged))
    except ValidationError as error:
        raise ParameterError(explain_mistakes(error, layers)) from error
    _check_references(parameters)
    return parameters


def read_layers(scale: str, root: Path = Path()) -> dict[str, dict[str, Any]]:
    """File -> overlay of a scale and of its bases, in the order in which they apply. Raises ParameterError."""
    return read_chain(scale, lambda file: read_yaml(root / file), list_scales(root))


def _check_references(parameters: Parameters) -> None:
    """Raises ParameterError if one block names what must be defined in another and is not."""
    references = {
        "matrix.train_on": ([parameters.matrix.train_on], parameters.datasets),
        "matrix.evaluate": (parameters.matrix.evaluate, parameters.datasets),
        "share_originals": (parameters.share_originals, discovery.names("faces")),
        "measure.judges": (parameters.measure.judges, parameters.judges),
        "target.judges": (parameters.target.judges, parameters.judges),
        "recovery.judges": (parameters.recovery.judges, parameters.judges),
        "informed.judges": (parameters.informed.judges if parameters.informed.cells else [], parameters.judges),
        "attacks.judge": ([parameters.attacks.judge] if parameters.attacks.cells else [], parameters.judges),
    }
    for name, block in parameters.backbones.items():
        if role := discovery.load("backbones", name)(block).asset:
            weights = {role for role, entry in assets.registry().items() if isinstance(entry, assets.Weights)}
            references[f"backbones.{name}.published"] = ([role], weights)
    for method, block in parameters.methods.items():
        references[f"methods.{method}.ablations"] = (parameters.ablations(method), block.variants)
        if role := parameters.official(method):
            references[f"methods.{method}.published"] = ([role], discovery.load("methods", method).official)
        published = getattr(block, "published_ablations", None) or {}
        references[f"methods.{method}.published_ablations"] = (published, parameters.ablations(method))
    for method, block in parameters.imported.items():
        if method in discovery.names("methods"):
            raise ParameterError(
                f"imported.{method} has the name of a module of methods/. Choose another name, such as "
                f"{method}_official, and rename the folder imported/<scale>/<dataset>/{method} if it is there."
            )
        for variant, sets in block.variants.items():
            references[f"imported.{method}.variants.{variant}"] = (sets, parameters.datasets)
    for key, (used, defined) in references.items():
        for name in used:
            if name not in defined:
                raise ParameterError(
                    f"{PARAMS}: {key} names '{name}', which is not defined. {suggest_nearest(name, defined)}"
                )
    for method in parameters.methods:
        for variant, knobs in parameters.ablations(method).items():
            try:
                build_training_params(
                    discovery.load("methods", method), parameters.tree["methods"][method]["params"], knobs
                )
            except ValidationError as error:
                reasons = "; ".join(f"'{'.'.join(map(str, item['loc']))}': {item['msg']}" for item in error.errors())
                raise ParameterError(f"{PARAMS}: methods.{method}.ablations.{variant}: {reasons}.") from error


def _check_removals(base: Mapping[str, Any], over: Mapping[str, Any], file: str, above: str = "") -> None:
    """Raises ParameterError if ``over`` removes (null) a key that ``base`` does not have, which is a typing error."""
    for key, value in over.items():
        if value is None and key not in base:
            raise ParameterError(
                f"{file}: '{above}{key}' is null, which removes the key, but {PARAMS} has no such key. "
                f"{suggest_nearest(str(key), base)}"
            )
        if isinstance(value, Mapping):
            inside = base.get(key)
            _check_removals(inside if isinstance(inside, Mapping) else {}, value, file, f"{above}{key}.")
