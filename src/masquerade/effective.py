"""The parameters that take effect: params.yaml under the overlay of its scale, in one file that DVC can compare."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from masquerade import params
from masquerade.errors import ParameterError

FILE = Path(".masquerade/params.yaml")
MISSING = object()
"""Stands where a tree has no such key."""


def write(parameters: params.Parameters, file: Path) -> Path:
    """Write the effective parameters to ``file``, but only if they changed."""
    text = yaml.safe_dump(parameters.tree, allow_unicode=True)
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    return file


def visible(base: Any, over: Any, key: str) -> list[str]:
    """The parts of ``base``, the value of ``key`` in params.yaml, that ``over`` leaves in effect, as dotted keys."""
    if over is MISSING:
        return [key]
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return []
    return [part for name in base for part in visible(base[name], over.get(name, MISSING), f"{key}.{name}")]


def at(tree: Any, key: str) -> Any:
    """The value of a dotted key, or MISSING."""
    for name in key.split("."):
        if not isinstance(tree, Mapping) or name not in tree:
            return MISSING
        tree = tree[name]
    return tree


def idle(before: Mapping[str, Any], now: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted key -> new value of each change in params.yaml that the overlay hides."""
    return dict(_idle(before, now, over, ""))


def _idle(before: Any, now: Any, over: Any, key: str) -> Iterator[tuple[str, Any]]:
    if over is MISSING or before == now:
        return
    if isinstance(now, Mapping) and isinstance(over, Mapping):
        known = before if isinstance(before, Mapping) else {}
        for name, value in now.items():
            yield from _idle(known.get(name, MISSING), value, over.get(name, MISSING), f"{key}.{name}".strip("."))
    else:
        yield key, now


def check(before: Mapping[str, Any], now: Mapping[str, Any], over: Mapping[str, Any], overlay: str) -> None:
    """Raises ParameterError, with what to type, where a change of params.yaml has no effect under its ``overlay``."""
    hidden = idle(before, now, over)
    if hidden:
        lines = [f"{params.PARAMS}: '{key}' was changed, but {overlay} sets it at this scale." for key in hidden]
        flags = " ".join(f"-S '{overlay}:{key}={value}'" for key, value in hidden.items())
        raise ParameterError("\n".join([*lines, f"Change it there: `dvc exp run {flags}`."]))
