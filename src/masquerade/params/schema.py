"""The JSON schema of params.yaml, and the block to paste into it for a new method."""

import json

from masquerade.core import discovery
from masquerade.core.settings import Settings, descriptions
from masquerade.params.model import build_model


def format_schema() -> str:
    """The JSON schema of params.yaml."""
    return json.dumps(build_model().model_json_schema(), indent=1, sort_keys=True) + "\n"


def format_template(method: str) -> str:
    """The block to paste into params.yaml for a new method, each knob with its description as a comment."""
    cls = discovery.load("methods", method)
    lines = [f"  {method}:", *["    published: ''"] * cls.capabilities.trains]
    lines += [*_format_block(4, "params", cls.Params), "    variants:", *_format_block(6, "default", cls.Variant)]
    return "\n".join(lines) + "\n"


def _format_block(indent: int, name: str, block: type[Settings]) -> list[str]:
    """The block ``name``, with a line for each field that params.yaml must set."""
    margin, texts = " " * indent, descriptions(block)
    required = [name for name, field in block.model_fields.items() if field.is_required()]
    knobs = [f"{margin}  {knob}:   # {' '.join(texts.get(knob, '').split())}" for knob in required]
    return [f"{margin}{name}:{'' if knobs else ' {}'}", *knobs]
