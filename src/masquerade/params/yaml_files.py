"""Reads YAML as DVC reads it: by YAML 1.2, so that both programs see the same values."""

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from masquerade.core.errors import ParameterError


class _Loader(yaml.CSafeLoader):
    """Reads ``no`` as a text and ``1e-05`` as a number, as DVC does when an experiment sets a knob."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, form) for tag, form in forms if tag.rpartition(":")[2] not in ("bool", "float")]
        for first, forms in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$"),
    list("-+.0123456789"),
)


def read(path: Path) -> dict[str, Any]:
    """A YAML file as a mapping. Raises ParameterError, with the file and the line, if it is not one."""
    if not path.is_file():
        raise ParameterError(f"{path} is missing.")
    return parse(path.read_text(encoding="utf-8"), path)


def parse(text: str, name: object) -> dict[str, Any]:
    """YAML text as a mapping. Raises ParameterError, with ``name`` and the line, if it is not one."""
    try:
        tree = yaml.load(text, Loader=_Loader)  # a safe loader
    except yaml.YAMLError as error:
        raise ParameterError(f"{name} is not valid YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ParameterError(f"{name} must be a mapping of names to values.")
    return tree
