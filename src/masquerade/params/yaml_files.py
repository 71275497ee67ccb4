"""Reads and writes YAML with the library that DVC takes, in the same way, so that both programs see the same values."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from masquerade.core.errors import ParameterError


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
        wrong = [key for key in _keys(tree) if not isinstance(key, str)]
    except (YAMLError, RecursionError) as error:
        raise ParameterError(f"{name} is not valid YAML{_mistake(error)}.") from error
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


def _mistake(error: Exception) -> str:
    """The line and the mistake of an error of the library."""
    if not (isinstance(error, MarkedYAMLError) and error.problem_mark):
        return f": {error}".rstrip(".")
    problem = error.problem or ""
    if isinstance(error, DuplicateKeyError):  # without the values, which may be whole blocks
        problem = f"{problem.split(' with value')[0]}; remove one of the two"
    return f", line {error.problem_mark.line + 1}: {problem}"


def _keys(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        yield from tree
        for value in tree.values():
            yield from _keys(value)
