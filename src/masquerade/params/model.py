"""The type of the whole of params.yaml, composed of the `Params` of every module of the rooms, and its JSON schema."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import create_model, model_validator

from masquerade.core import discovery
from masquerade.core.settings import Name, Settings, read_descriptions
from masquerade.core.weight_names import WeightsName, WeightsOrAssetName
from masquerade.params.blocks import Common
from masquerade.params.overlays import overlay

ROOMS = {
    "datasets": "faces",
    "backbones": "backbones",
    "judges": "judges",
    "metrics": "metrics",
    "methods": "methods",
    "attackers": "attackers",
}
"""Block of params.yaml -> the room whose modules it configures."""
CHOSEN = ("faces", "backbones", "methods")
"""The rooms of which a scale has only those modules that it names."""


class MethodBlock(Settings):
    """The block of a method.

    A value that many of its variants share stands once::

        lreorg:
          every_variant: {identity: group, groups: 100}
          variants:
            default: {hide: [identity]}
            k_anonymity: {hide: [identity], identity: farthest}

    A loaded block has no ``every_variant``: each variant holds all of its values.
    """

    every_variant: dict[str, Any] | None = None
    """Values of each of `variants`. A value that a variant sets itself replaces the one given here."""
    photographs: bool = True
    """Whether the command line and Python take its networks for photographs. False: people still recognize whom it
    hides, whatever a recognizer says, so its images are for the tables alone."""

    @model_validator(mode="before")
    @classmethod
    def _complete_variants(cls, block: Any) -> Any:
        shared = block.get("every_variant") if isinstance(block, Mapping) else None
        if not (shared and isinstance(block.get("variants"), Mapping)):
            return block
        variants = {
            name: overlay(shared, values) if isinstance(values, Mapping) else values
            for name, values in block["variants"].items()
        }
        return {**block, "every_variant": None, "variants": variants}


def _is_required(block: type[Settings]) -> bool:
    """Whether params.yaml must have the block, because one of its values has no default."""
    return any(field.is_required() for field in block.model_fields.values())


def _build_method_block(name: str) -> type[Settings]:
    method = discovery.load("methods", name)
    published: dict[str, Any] = {}
    if method.capabilities.trains:
        weights = WeightsOrAssetName if method.official else WeightsName
        published = {"published": (weights, ""), "published_ablations": (dict[Name, WeightsName] | None, None)}
    block = create_model(
        f"Method_{name}",
        __base__=MethodBlock,
        **published,
        params=(method.Params, ... if _is_required(method.Params) else method.Params()),
        variants=(dict[Name, method.Variant], ...),  # pyright: ignore[reportInvalidTypeForm]
        ablations=(dict[Name, dict[str, Any]] | None, None),
    )
    block.__doc__ = (
        f"{method.title}: `params` train the checkpoint. Each of `variants` anonymizes with it. A variant in "
        "`ablations` has its own checkpoint, trained with the values given there in place of those of `params`."
    )
    if published:
        block.__doc__ += (
            " `published` names weights to adopt instead of a training: `weights:<name>`; '': trained here. "
            "`published_ablations` does so for the training of a variant in `ablations`."
        )
    if method.official:
        block.__doc__ += f" Official files: {', '.join(f'`asset:{role}`' for role in method.official)}."
    return block


def _build_room_block(room: str) -> type[Settings]:
    """The block of one room: one optional key for each of its modules, and no other key.

    A metric, a judge or an attacker without parameters needs no key.
    """
    typed = {
        name: _build_method_block(name) if room == "methods" else discovery.load(room, name).Params
        for name in discovery.list_names(room)
    }
    fields: dict[str, Any] = {
        name: (block | None, None if room in CHOSEN or block.model_fields else block()) for name, block in typed.items()
    }
    return create_model(room, __base__=Settings, **fields)


@cache
def build_model() -> type[Common]:
    """The type of the whole of params.yaml, for the modules that exist now."""
    fields: dict[str, Any] = {key: (_build_room_block(room), ...) for key, room in ROOMS.items()}
    return create_model("Parameters", __base__=Common, **fields)


def format_schema() -> str:
    """The JSON schema of params.yaml."""
    schema = build_model().model_json_schema()
    for name, definition in schema["$defs"].items():
        if name.endswith("Variant"):  # `every_variant` may hold what a variant needs
            definition.pop("required", None)
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def format_template(method: str) -> str:
    """The block to paste into params.yaml for a new method, each parameter with its description as a comment."""
    cls = discovery.load("methods", method)
    lines = [f"  {method}:", *["    published: ''"] * cls.capabilities.trains]
    lines += [*_format_block(4, "params", cls.Params), "    variants:", *_format_block(6, "default", cls.Variant)]
    return "\n".join(lines) + "\n"


def _format_block(indent: int, name: str, block: type[Settings]) -> list[str]:
    """The block ``name``, with a line for each field that params.yaml must set."""
    margin, texts = " " * indent, read_descriptions(block)
    required = [name for name, field in block.model_fields.items() if field.is_required()]
    lines = [f"{margin}  {key}:   # {' '.join(texts.get(key, '').split())}" for key in required]
    return [f"{margin}{name}:{'' if lines else ' {}'}", *lines]
