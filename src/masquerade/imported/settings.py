"""What params.yaml says of imported pictures. `masquerade import-method` writes these blocks."""

from typing import Annotated

from pydantic import Field

from masquerade.settings import Name, Settings

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ImportedSet(Settings):
    sha256: Sha256
    """Of the file ``imported/<scale>/<dataset>/<method>/<variant>.zip``."""
    originals: Sha256
    """Of the faces that the program was given (`pictures.digest`): for other faces, other pictures must be imported."""
    near: Annotated[float, Field(ge=0)]
    """A picture whose mean absolute difference from an original is not above this, in grey levels of 255, shows it."""


class ImportedMethod(Settings):
    title: str
    """The method, as its authors call it."""
    source: str
    """Who and when (the paper), and the program with its version."""
    variants: dict[Name, dict[Name, ImportedSet]]
    """variant -> dataset -> the pictures of its test faces."""
