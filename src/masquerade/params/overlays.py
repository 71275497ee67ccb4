"""YAML files, and overlays: how a scale changes params.yaml, and which changes of params.yaml an overlay hides.

YAML is read and written with the library that DVC takes, in the same way, so that both see the same values.
"""

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from masquerade.core import files
from masquerade.core.errors import ParameterError, suggest_nearest
from masquerade.params import blocks

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
    return files.write_if_changed(file, format_yaml(tree, sort_keys=True))


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


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file as a mapping. Raises ParameterError, with the file and the line, if it is not one."""
    if not path.is_file():
        raise ParameterError(f"{path} is missing.")
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ParameterError(
            f"{path} is not UTF-8, line {line}: {error.reason}. Save it as UTF-8 in your editor."
        ) from error


def parse_yaml(text: str, name: object) -> dict[str, Any]:
    """YAML text as a mapping. Raises ParameterError, with ``name`` and the line, if it is not one."""
    try:
        tree = YAML(typ="safe").load(text)  # YAML 1.2, parsed in C: requirements.lock has ruamel.yaml.clib
        wrong = [key for key in _iterate_keys(tree) if not isinstance(key, str)]
    except (YAMLError, RecursionError) as error:
        raise ParameterError(f"{name} is not valid YAML{_describe_mistake(error)}.") from error
    if not isinstance(tree, dict):
        raise ParameterError(f"{name} must be a mapping of names to values.")
    if wrong:
        raise ParameterError(f"{name}: the key {wrong[0]!r} is no text for YAML. Put it in quotes.")
    return tree


def format_yaml(tree: Mapping[str, Any], sort_keys: bool = False, flow: bool | None = False, width: int = 1000) -> str:
    """A mapping as YAML text, of which `parse_yaml` gives the same mapping.

    ``flow``: None writes the innermost lists and mappings on one line each, of at most ``width`` characters.
    """
    yaml, stream = YAML(typ="safe"), io.StringIO()
    yaml.default_flow_style, yaml.width, yaml.allow_unicode = flow, width, True
    yaml.sort_base_mapping_type_on_output = sort_keys  # pyright: ignore[reportAttributeAccessIssue] - typed as None
    yaml.dump(tree, stream)
    return stream.getvalue()


def _describe_mistake(error: Exception) -> str:
    """The line and the mistake of an error of the library."""
    if not (isinstance(error, MarkedYAMLError) and error.problem_mark):
        return f": {error}".rstrip(".")
    problem = error.problem or ""
    if isinstance(error, DuplicateKeyError):  # without the values, which may be whole blocks
        problem = f"{problem.split(' with value')[0]}; remove one of the two"
    return f", line {error.problem_mark.line + 1}: {problem}"


def _iterate_keys(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        yield from tree
        for value in tree.values():
            yield from _iterate_keys(value)
