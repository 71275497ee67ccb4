"""The closed, frozen base class of every block of params.yaml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
"""Of a module, method, variant, dataset or scale: it becomes a part of paths."""


class Settings(BaseModel):
    """A block of parameters. Closed: a key it does not know is an error. Frozen: nobody changes it on the way.

    Fields carry no defaults, so that params.yaml shows every knob and DVC sees every change;
    each field's ``description`` gives its unit and its source.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
