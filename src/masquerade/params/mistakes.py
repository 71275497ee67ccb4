"""Turns a validation error of pydantic into the text that a user reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from masquerade.core.errors import suggest_nearest
from masquerade.params.blocks import PARAMS
from masquerade.params.model import build_model
from masquerade.params.overlays import MISSING, find_value


def explain_mistakes(error: ValidationError, layers: Mapping[str, Mapping[str, Any]]) -> str:
    """One line for each mistake: the file, the dotted key, what is wrong, and for an unknown key the nearest known one.

    ``layers``: file -> overlay, in the order in which they apply. A mistake is reported for the last one that sets the
    key, else for params.yaml.
    """
    lines = []
    for item in error.errors():
        names = [part for part in item["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
        key = ".".join(map(str, names))
        stated = ".".join(name for name in names if isinstance(name, str))  # a list, not a position in it
        file = next((file for file in reversed([*layers]) if find_value(layers[file], stated) is not MISSING), PARAMS)
        if item["type"] == "extra_forbidden":
            lines.append(f"{file}: unknown parameter '{key}'. {suggest_nearest(str(names[-1]), _fields(names[:-1]))}")
        elif item["type"] == "missing":
            lines.append(f"{PARAMS}: '{key}' is missing. It has no default, so that the file shows it.")
        else:
            lines.append(f"{file}: '{key}' is {item['input']!r}: {item['msg'][0].lower() + item['msg'][1:]}.")
    return "\n".join(dict.fromkeys(lines))


def _fields(names: Sequence[Any]) -> list[str]:
    """The keys that are allowed in the block ``names``."""
    node: Any = build_model()
    for name in names:
        if name not in node.model_fields:  # a key of a mapping or a position in a list: the type is known already
            continue
        annotation = node.model_fields[name].annotation
        node = next((item for item in [annotation, *getattr(annotation, "__args__", ())] if _is_model(item)), None)
        if node is None:
            return []
    return sorted(node.model_fields)


def _is_model(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, BaseModel)
