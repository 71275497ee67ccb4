"""The JSON schema of params.yaml, and the block to paste into it for a new method."""

import json

from masquerade.core import discovery
from masquerade.core.settings import Settings, descriptions
from masquerade.params.model import model


def schema_text() -> str:
    """The JSON schema of params.yaml."""
    return json.dumps(model().model_json_schema(), indent=1, sort_keys=True) + "\n"


def template(method: str) -> str:
    """The block to paste into params.yaml for a new method, each knob with its description as a comment."""
    cls = discovery.load("methods", method)
    lines = [f"  {method}:", *["    published: ''"] * cls.capabilities.trains, "    params:"]
    lines += _lines(6, cls.Params)
    lines += ["    variants:", "      default:"]
    lines += _lines(8, cls.Variant)
    return "\n".join(lines) + "\n"


def _lines(indent: int, block: type[Settings]) -> list[str]:
    texts = descriptions(block)
    return [f"{' ' * indent}{name}:   # {texts.get(name, '')}" for name in block.model_fields]
