"""Slices of the parameters: what one job may read. Snakemake gives it to the job, and keeps it in its record.

A rule declares dotted keys, and the job gets their values as JSON on its command line::

    {"image.size": 64, "methods.falco.params": {"steps": 50, "first_layer": 3, ...}}
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from masquerade.core import discovery, rehearsal
from masquerade.core.settings import Settings
from masquerade.params.model import ROOMS
from masquerade.params.overlays import MISSING, find_value
from masquerade.params.parameters import Parameters, build_training_params
from masquerade.params.protocols import (
    AttackSettings,
    AttributeSettings,
    InformedSettings,
    RecoverySettings,
    UtilitySettings,
)

Block = TypeVar("Block", bound=Settings)
PROTOCOLS: dict[str, type[Settings]] = {
    "attributes": AttributeSettings, "recovery": RecoverySettings, "attacks": AttackSettings,
    "informed": InformedSettings, "downstream_utility": UtilitySettings,
}  # fmt: skip
"""Block of params.yaml -> the part of it that jobs read. The rest selects cells and judges."""


@dataclass(frozen=True)
class Slice:
    """The parameters that one job may read. A job cannot read a parameter that its rule did not declare."""

    values: Mapping[str, Any]
    """Dotted key, as the rule declares it -> plain JSON value."""
    rehearsal: bool = False
    """Whether the job is one of a rehearsal."""

    @classmethod
    def of(cls, parameters: Parameters, keys: Iterable[str]) -> "Slice":
        """The slice of these keys. A key that ends with ``?`` may be missing. Raises ParameterError for another one."""
        return cls(parameters.slice(tuple(keys)), parameters.rehearsal)

    @classmethod
    def parse(cls, text: str) -> "Slice":
        """The inverse of `text`."""
        values = json.loads(text)
        return cls(values, values.pop(rehearsal.MARK, False))

    def text(self) -> str:
        """The slice as JSON with sorted keys. In a rehearsal it holds the mark of rehearsals."""
        return json.dumps({**self.values, **({rehearsal.MARK: True} if self.rehearsal else {})}, sort_keys=True)

    @cached_property
    def _tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for key, value in self.values.items():
            *above, name = key.split(".")
            block = tree
            for part in above:
                block = block.setdefault(part, {})
            block[name] = value
        return tree

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a dotted key, or a mapping with all values below it; ``default`` if there is none."""
        value = find_value(self._tree, key)
        return default if value is MISSING else value

    def __getitem__(self, key: str) -> Any:
        value = self.get(key, MISSING)
        if value is MISSING:
            raise KeyError(f"the rule of this job does not declare the parameter '{key}'")
        return value

    def settings(self, key: str, block: type[Block], method: str = "", variant: str = "") -> Block:
        """The block ``key`` as ``block``, which may have fewer fields.

        The values under its key ``overrides`` for this method and variant replace those of the block.
        """
        values = {name: self[key][name] for name in block.model_fields if name in self[key]}
        return block(**values | self.get(f"{key}.overrides.{method}.{variant}", {}))

    def build(self, block: str, name: str, *arguments: Any) -> Any:
        """The module ``name`` of a block such as ``judges``, made of its parameters and further arguments."""
        cls = discovery.load(ROOMS[block], name)
        return cls(cls.Params(**self[f"{block}.{name}"]), *arguments)

    def training_params(self, method: str, variant: str = "") -> Settings:
        """The Params of a method's training. ``variant``: one of its ablations; any other variant changes nothing."""
        block = self[f"methods.{method}"]
        return build_training_params(
            discovery.load("methods", method), block["params"], block.get("ablations", {}).get(variant)
        )


def list_protocol_keys(block: str) -> list[str]:
    """The keys of a block of PROTOCOLS that jobs read, those of a single method with wildcards in braces."""
    overrides = [f"{block}.overrides.{{method}}.{{variant}}?"] if block in ("informed", "recovery") else []
    return [*(f"{block}.{name}" for name in sorted(PROTOCOLS[block].model_fields)), *overrides]
