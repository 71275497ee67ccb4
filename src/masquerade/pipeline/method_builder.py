"""Builds a method from its parameters and its files."""

from collections.abc import Mapping
from typing import Any

from masquerade.core.settings import Settings
from masquerade.methods import Method, Resources
from masquerade.params.parameters import trained_with


def build(
    cls: type[Method],
    knobs: Mapping[str, Any],
    ablation: Mapping[str, Any] | None,
    variant: Settings,
    resources: Resources,
) -> Method:
    """The method with its checkpoint loaded.

    ``knobs``: the block ``methods.<name>.params``. ``ablation``: the knobs that an ablation changes, or None. Raises
    pydantic's ValidationError for invalid knobs, and CheckpointError if the checkpoint does not fit them.
    """
    return cls(trained_with(cls, knobs, ablation), variant, resources)
