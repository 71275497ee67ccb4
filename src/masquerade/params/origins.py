"""Which file sets a parameter: params.yaml or an overlay of the scale, and which values it replaced."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from masquerade.core.errors import ParameterError, suggest_nearest
from masquerade.params.blocks import PARAMS
from masquerade.params.loading import load, read_layers
from masquerade.params.overlays import MISSING, find_value
from masquerade.params.yaml_files import read_yaml

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
    gone = [name for name in removed if find_value(parameters.tree, name) is MISSING]
    present = [
        name for name, _ in list_leaves(parameters.tree) if not any(other.startswith(f"{name}.") for other in gone)
    ]
    names = [name for name in (*present, *gone) if f"{name}.".startswith(f"{key}.")]
    names += [name for name in gone if key.startswith(f"{name}.")]
    if not names:
        raise ParameterError(_explain_unknown(key, parameters.tree, parameters.scale))
    files = {PARAMS: read_yaml(root / PARAMS), **layers}
    if scale is not None:
        files["--scale"] = {"scale": scale}
    found = {
        name: {file: value for file in reversed(files) if (value := find_value(files[file], name)) is not MISSING}
        for name in dict.fromkeys(names)
    }
    return {name: values or {DEFAULT: find_value(parameters.tree, name)} for name, values in found.items()}


def list_leaves(tree: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of everything in ``tree`` that is no mapping, or an empty one."""
    if not (isinstance(tree, Mapping) and tree):
        yield key, tree
        return
    for name, value in tree.items():
        yield from list_leaves(value, f"{key}.{name}".strip("."))


def _explain_unknown(key: str, tree: Mapping[str, Any], scale: str) -> str:
    """The error for a key that ``tree`` does not have: its block, and the nearest name in that block."""
    blocks = accumulate(key.split("."), lambda above, name: f"{above}.{name}")
    missing = next(name for name in blocks if find_value(tree, name) is MISSING)
    above, _, name = missing.rpartition(".")
    inside = find_value(tree, above) if above else tree
    place = f"'{above}' has no key '{name}'" if above else f"there is no parameter '{name}'"
    known = suggest_nearest(name, inside) if isinstance(inside, Mapping) else "It is a value and not a block."
    return f"{place} at scale {scale}. {known}"
