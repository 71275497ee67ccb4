"""The closed, frozen base class of every block of params.yaml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
"""The name of a module, method, variant, dataset or scale; it becomes a part of paths."""


class Settings(BaseModel):
    """A block of parameters. Closed: an unknown key is an error. Frozen: its values cannot be changed.

    Fields have no defaults, so that params.yaml shows every knob and DVC detects every change. The text below a field
    is its description, with unit and source.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class NoParameters(Settings):
    """A block without parameters."""
