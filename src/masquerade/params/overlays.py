"""Overlays: how a scale changes params.yaml, and which changes of params.yaml an overlay hides."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from masquerade.core import files
from masquerade.core.errors import ParameterError
from masquerade.params import blocks

FILE = Path(".masquerade/params.yaml")
"""The effective parameters: params.yaml with the overlay of its scale, in one file that DVC compares."""
MISSING = object()
"""The value of a key that a tree does not have."""


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


def write(tree: Mapping[str, Any], file: Path) -> Path:
    """Write the effective parameters to ``file`` if they changed, and return ``file``."""
    return files.write_if_changed(file, yaml.dump(tree, Dumper=yaml.CSafeDumper, allow_unicode=True))


def at(tree: Any, key: str) -> Any:
    """The value of a dotted key, or MISSING if ``tree`` has no such key."""
    for name in key.split("."):
        if not isinstance(tree, Mapping) or name not in tree:
            return MISSING
        tree = tree[name]
    return tree


def hidden_changes(before: Mapping[str, Any], now: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted key -> new value of each change of params.yaml, from ``before`` to ``now``, that the overlay hides."""
    return dict(_hidden_changes(before, now, over, ""))


def _hidden_changes(before: Any, now: Any, over: Any, key: str) -> Iterator[tuple[str, Any]]:
    if over is MISSING or before == now:
        return
    if isinstance(now, Mapping) and isinstance(over, Mapping):
        old = before if isinstance(before, Mapping) else {}
        for name, value in now.items():
            inner = f"{key}.{name}".strip(".")
            yield from _hidden_changes(old.get(name, MISSING), value, over.get(name, MISSING), inner)
    else:
        yield key, now


def check(before: Mapping[str, Any], now: Mapping[str, Any], over: Mapping[str, Any], overlay: str) -> None:
    """Raises ParameterError if the file ``overlay`` hides a change of params.yaml. The text says what to type."""
    hidden = hidden_changes(before, now, over)
    if hidden:
        lines = [f"{blocks.PARAMS}: '{key}' was changed, but {overlay} sets it at this scale." for key in hidden]
        flags = " ".join(f"-S '{overlay}:{key}={value}'" for key, value in hidden.items())
        raise ParameterError("\n".join([*lines, f"Change it there: `dvc exp run {flags}`."]))
