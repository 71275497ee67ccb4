"""The JSON schema of params.yaml, and the block to paste into it for a new method."""

import json

from pydantic.fields import FieldInfo

from masquerade.core import discovery
from masquerade.params.model import model


def schema_text() -> str:
    """The JSON schema of params.yaml, as committed in schemas/."""
    return json.dumps(model().model_json_schema(), indent=1, sort_keys=True) + "\n"


def template(method: str) -> str:
    """The block to paste into params.yaml for a new method, each knob with its description as a comment."""
    cls = discovery.load("methods", method)
    lines = [f"  {method}:", "    params:"]
    lines += [_line(6, *item) for item in cls.Params.model_fields.items()]
    lines += ["    variants:", "      default:"]
    lines += [_line(8, *item) for item in cls.Variant.model_fields.items()]
    return "\n".join(lines) + "\n"


def _line(indent: int, name: str, knob: FieldInfo) -> str:
    return f"{' ' * indent}{name}:   # {(knob.description or '').strip()}"
