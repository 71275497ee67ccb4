"""Overlays: how a scale changes params.yaml, and which changes of params.yaml an overlay hides."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from masquerade.core import files
from masquerade.core.errors import ParameterError, suggest_nearest
from masquerade.params import blocks, yaml_files

MISSING = object()
"""The value of a key that a tree does not have."""
BASE = "base"
"""The key of an overlay that names the scale on whose overlay it is put."""


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``over`` on top: mappings are merged, any other value replaces, None removes the key."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = overlay(merged[key], value)
        else:
            merged[key] = value
    return merged


def overlay_path(scale: str) -> str:
    """The file of a scale's overlay, relative to the root of the repository."""
    return f"{blocks.SCALES}/{scale}.yaml"


def read_chain(
    scale: str, read: Callable[[str], Mapping[str, Any]], known: Collection[str] | None = None
) -> dict[str, dict[str, Any]]:
    """File -> overlay, without its key ``base``, of a scale and of its bases, in the order in which they apply.

    ``read`` returns the content of a file. ``known``: the scales that exist; None: this is not checked. Raises
    ParameterError when a base does not exist or when the bases form a circle.
    """
    names, layers = [scale], []
    while True:
        layer = dict(read(overlay_path(names[-1])))
        base = layer.pop(BASE, None)
        layers.append(layer)
        if base is None:
            return dict(zip(map(overlay_path, reversed(names)), reversed(layers), strict=True))
        if base in names:
            circle = " -> ".join([*names[names.index(base) :], base])
            raise ParameterError(
                f"{overlay_path(names[-1])}: the bases form a circle, {circle}. A scale may be based on one that is "
                f"not based on it: remove `{BASE}` from one of these overlays."
            )
        if known is not None and base not in known:
            raise ParameterError(
                f"{overlay_path(names[-1])}: `{BASE}` names '{base}', which is no scale. "
                f"{suggest_nearest(str(base), known)}"
            )
        names.append(base)


def write_tree(tree: Mapping[str, Any], file: Path) -> Path:
    """Write the effective parameters to ``file`` if they changed, and return ``file``."""
    return files.write_if_changed(file, yaml_files.format_yaml(tree, sort_keys=True))


def find_value(tree: Any, key: str) -> Any:
    """The value of a dotted key, or MISSING if ``tree`` has no such key."""
    for name in key.split("."):
        if not isinstance(tree, Mapping) or name not in tree:
            return MISSING
        tree = tree[name]
    return tree


def find_hidden_changes(before: Mapping[str, Any], now: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted key -> new value of each change of params.yaml, from ``before`` to ``now``, that the overlay hides."""
    return dict(_find_hidden_changes(before, now, over, ""))


def _find_hidden_changes(before: Any, now: Any, over: Any, key: str) -> Iterator[tuple[str, Any]]:
    if over is MISSING or before == now:
        return
    if isinstance(now, Mapping) and isinstance(over, Mapping):
        old = before if isinstance(before, Mapping) else {}
        for name, value in now.items():
            inner = f"{key}.{name}".strip(".")
            yield from _find_hidden_changes(old.get(name, MISSING), value, over.get(name, MISSING), inner)
    else:
        yield key, now


def check_hidden_changes(
    before: Mapping[str, Any], now: Mapping[str, Any], over: Mapping[str, Any], overlay: str
) -> None:
    """Raises ParameterError if the file ``overlay`` hides a change of params.yaml. The text says what to type."""
    hidden = find_hidden_changes(before, now, over)
    if hidden:
        lines = [f"{blocks.PARAMS}: '{key}' was changed, but {overlay} sets it at this scale." for key in hidden]
        flags = " ".join(f"-S '{overlay}:{key}={value}'" for key, value in hidden.items())
        raise ParameterError("\n".join([*lines, f"Change it there: `dvc exp run {flags}`."]))
