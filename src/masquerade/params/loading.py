"""Loads and validates params.yaml and the overlay of one scale, and says which file sets a value.

params.yaml holds the values of the papers. ``scales/<scale>.yaml`` holds what differs at that scale: a mapping is
merged, any other value replaces, ``null`` removes the key. Its key ``base`` names another scale, whose overlay is put
on params.yaml first. The modules of the rooms define the types of their own blocks (datasets, backbones, judges,
metrics, methods and attackers), so a new module brings its own block.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from masquerade import assets
from masquerade.core import discovery
from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ParameterError, suggest_nearest
from masquerade.params.blocks import PARAMS, SCALES
from masquerade.params.model import build_model
from masquerade.params.overlays import MISSING, find_value, overlay, read_yaml
from masquerade.params.parameters import Parameters, build_training_params

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
    layers = {**read_layers(scale, root), **read_imported(scale, root), CONFIG: changes}
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


def read_imported(scale: str, root: Path = Path()) -> dict[str, dict[str, Any]]:
    """File -> overlay of what other programs made, which `masquerade score` writes; empty if there is none."""
    file = f"{SCALES}/{IMPORTED}/{scale}.yaml"
    return {file: read_yaml(root / file)} if (root / file).is_file() else {}


def read_layers(scale: str, root: Path = Path()) -> dict[str, dict[str, Any]]:
    """File -> overlay of a scale and of its bases, without the key ``base``, in the order in which they apply.

    Raises ParameterError when a base does not exist or when the bases form a circle.
    """
    scales, layers = [scale], {}
    while True:
        file = f"{SCALES}/{scales[-1]}.yaml"
        layers[file] = read_yaml(root / file)
        base = layers[file].pop("base", None)
        if base is None:
            return dict(reversed(layers.items()))
        if base in scales:
            circle = " -> ".join([*scales[scales.index(base) :], base])
            raise ParameterError(
                f"{file}: the bases form a circle, {circle}. A scale may be based on one that is not based on it: "
                "remove `base` from one of these overlays."
            )
        if base not in list_scales(root):
            raise ParameterError(
                f"{file}: `base` names '{base}', which is no scale. {suggest_nearest(str(base), list_scales(root))}"
            )
        scales.append(base)


def _check_references(parameters: Parameters) -> None:
    """Raises ParameterError if one block names what must be defined in another and is not."""
    references = {
        "matrix.train_on": ([parameters.matrix.train_on], parameters.datasets),
        "matrix.evaluate": (parameters.matrix.evaluate, parameters.datasets),
        "share_originals": (parameters.share_originals, discovery.list_names("faces")),
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
        if role := parameters.official_role(method):
            references[f"methods.{method}.published"] = ([role], discovery.load("methods", method).official)
        published = getattr(block, "published_ablations", None) or {}
        references[f"methods.{method}.published_ablations"] = (published, parameters.ablations(method))
    for variant, images in parameters.methods[IMPORTED].variants.items() if IMPORTED in parameters.methods else ():
        references[f"methods.{IMPORTED}.variants.{variant}.images"] = (images.images, parameters.datasets)
    for key, (used, defined) in references.items():
        for name in used:
            if name not in defined:
                raise ParameterError(
                    f"{PARAMS}: {key} names '{name}', which is not defined. {suggest_nearest(name, defined)}"
                )
    for method in parameters.methods:
        for variant, changes in parameters.ablations(method).items():
            try:
                build_training_params(
                    discovery.load("methods", method), parameters.tree["methods"][method]["params"], changes
                )
            except ValidationError as error:
                reasons = "; ".join(f"'{'.'.join(map(str, item['loc']))}': {item['msg']}" for item in error.errors())
                raise ParameterError(f"{PARAMS}: methods.{method}.ablations.{variant}: {reasons}.") from error


def _check_removals(base: Mapping[str, Any], over: Mapping[str, Any], file: str, prefix: str = "") -> None:
    """Raises ParameterError if ``over`` removes (null) a key that ``base`` does not have, which is a typing error."""
    for key, value in over.items():
        if value is None and key not in base:
            raise ParameterError(
                f"{file}: '{prefix}{key}' is null, which removes the key, but {PARAMS} has no such key. "
                f"{suggest_nearest(str(key), base)}"
            )
        if isinstance(value, Mapping):
            block = base.get(key)
            _check_removals(block if isinstance(block, Mapping) else {}, value, file, f"{prefix}{key}.")


def explain_mistakes(error: ValidationError, layers: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each mistake: the file, the dotted key, what is wrong, and for an unknown key the nearest known one.

    ``layers``: file -> overlay, in the order in which they apply. A mistake is reported for the last one that sets the
    key, else for params.yaml.
    """
    lines = []
    for item in error.errors():
        names = [part for part in item["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
        key = ".".join(map(str, names))
        dotted = ".".join(name for name in names if isinstance(name, str))  # a list, not a position in it
        file = next(iter(_find_settings(dotted, layers)), PARAMS)
        if item["type"] == "extra_forbidden":
            lines.append(
                f"{file}: unknown parameter '{key}'. {suggest_nearest(str(names[-1]), _list_fields(names[:-1]))}"
            )
        elif item["type"] == "missing":
            lines.append(f"{PARAMS}: '{key}' is missing. It has no default, so that the file shows it.")
        else:
            lines.append(f"{file}: '{key}' is {item['input']!r}: {item['msg'][0].lower() + item['msg'][1:]}.")
    return "\n".join(dict.fromkeys(lines))


def _list_fields(names: Sequence[Any]) -> list[str]:
    """The keys that are allowed in the block ``names``."""
    node: Any = build_model()
    for name in names:
        if name not in node.model_fields:  # a key of a mapping or a position in a list: the type is known already
            continue
        annotation = node.model_fields[name].annotation
        types = [item for item in (annotation, *getattr(annotation, "__args__", ())) if isinstance(item, type)]
        node = next((item for item in types if issubclass(item, BaseModel)), None)
        if node is None:
            return []
    return sorted(node.model_fields)


DEFAULT = "default"
"""The origin of a value that no file sets: a field of a `SmallScale`."""


def find_origins(key: str, root: Path = Path(), scale: str | None = None) -> dict[str, dict[str, Any]]:
    """Dotted key -> file -> the value that it sets, the file that decides first: for ``key``, or each value below it.

    A key that the scale removes has the value None in that file. The values are those of the files. ``scale``: as
    `load` takes it. Raises ParameterError, with the nearest key, if there is no ``key`` at this scale.
    """
    parameters = load(root, scale)
    layers = read_layers(parameters.scale, root)
    removed = [name for layer in layers.values() for name, value in list_leaves(layer) if value is None]
    missing = [name for name in removed if find_value(parameters.tree, name) is MISSING]
    present = [
        name for name, _ in list_leaves(parameters.tree) if not any(other.startswith(f"{name}.") for other in missing)
    ]
    names = [name for name in (*present, *missing) if f"{name}.".startswith(f"{key}.")]
    names += [name for name in missing if key.startswith(f"{name}.")]
    if not names:
        raise ParameterError(_explain_unknown(key, parameters.tree, parameters.scale))
    files = {PARAMS: read_yaml(root / PARAMS), **layers}
    if scale is not None:
        files["--scale"] = {"scale": scale}
    origins = {name: _find_settings(name, files) for name in dict.fromkeys(names)}
    return {name: values or {DEFAULT: find_value(parameters.tree, name)} for name, values in origins.items()}


def _find_settings(key: str, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """File -> the value that it gives to a dotted key, the last of ``files`` first.

    Files that set a value for every variant of the method stand behind those that set it for the variant itself.
    """
    values = {file: value for file in reversed([*files]) if (value := find_value(files[file], key)) is not MISSING}
    key_of_every_variant = re.sub(r"^(methods\.\w+)\.variants\.\w+\.", r"\1.every_variant.", key)
    for file in reversed([*files]):
        if (value := find_value(files[file], key_of_every_variant)) is not MISSING:
            values.setdefault(file, value)
    return values


def list_leaves(tree: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of everything in ``tree`` that is no mapping, or an empty one."""
    if not (isinstance(tree, Mapping) and tree):
        yield key, tree
        return
    for name, value in tree.items():
        yield from list_leaves(value, f"{key}.{name}".strip("."))


def _explain_unknown(key: str, tree: Mapping[str, Any], scale: str) -> str:
    """The error for a key that ``tree`` does not have: its block, and the nearest name in that block."""
    keys = accumulate(key.split("."), lambda block, name: f"{block}.{name}")
    block, _, name = next(item for item in keys if find_value(tree, item) is MISSING).rpartition(".")
    values = find_value(tree, block) if block else tree
    place = f"'{block}' has no key '{name}'" if block else f"there is no parameter '{name}'"
    advice = suggest_nearest(name, values) if isinstance(values, Mapping) else "It is a value and not a block."
    return f"{place} at scale {scale}. {advice}"
