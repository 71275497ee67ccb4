"""YAML files, and overlays: how a scale changes params.yaml, and which changes of params.yaml an overlay hides.

YAML is read and written with the library that DVC takes, in the same way, so that both see the same values.
"""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from masquerade.core.errors import ParameterError
from masquerade.params import blocks

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


def find_value(tree: Any, key: str) -> Any:
    """The value of a dotted key, or MISSING if ``tree`` has no such key."""
    for name in key.split("."):
        if not isinstance(tree, Mapping) or name not in tree:
            return MISSING
        tree = tree[name]
    return tree


def find_hidden_changes(before: Any, now: Any, over: Any, key: str = "") -> dict[str, Any]:
    """Dotted key -> new value of each change of params.yaml, from ``before`` to ``now``, that the overlay hides."""
    if over is MISSING or before == now:
        return {}
    if not (isinstance(now, Mapping) and isinstance(over, Mapping)):
        return {key: now}
    hidden: dict[str, Any] = {}
    for name, value in now.items():
        old = before.get(name, MISSING) if isinstance(before, Mapping) else MISSING
        hidden |= find_hidden_changes(old, value, over.get(name, MISSING), f"{key}.{name}".strip("."))
    return hidden


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
    except (YAMLError, RecursionError, ValueError) as error:  # the last for a number without digits: -_
        raise ParameterError(f"{name} is not valid YAML{_describe_mistake(error)}.") from error
    if not isinstance(tree, dict):
        raise ParameterError(f"{name} must be a mapping of names to values.")
    if wrong:
        raise ParameterError(f"{name}: the key {wrong[0]!r} is no text for YAML. Put it in quotes.")
    return tree


def format_yaml(tree: Mapping[str, Any], sort_keys: bool = False) -> str:
    """A mapping as YAML text, of which `parse_yaml` gives the same mapping."""
    yaml, stream = YAML(typ="safe"), io.StringIO()
    yaml.default_flow_style, yaml.width, yaml.allow_unicode = False, 1000, True
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
