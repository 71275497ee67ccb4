"""The blocks of params.yaml for pictures that another program made. `masquerade import-method` writes them."""

from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Name, Settings

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ImportedSet(Settings):
    """The pictures of one variant and one dataset."""

    sha256: Sha256
    """SHA-256 of the file ``imported/<scale>/<dataset>/<method>/<variant>.zip``."""
    originals: Sha256
    """SHA-256 of the faces that the program received (`pictures.digest`); other faces need another import."""
    near: Annotated[float, Field(ge=0)]
    """A picture counts as an original if their mean absolute difference, in gray levels of 255, is at most this."""


class ImportedMethod(Settings):
    """A method whose pictures another program made."""

    title: str
    """The method's name in its paper."""
    source: str
    """The paper (authors and year), and the program with its version."""
    variants: dict[Name, dict[Name, ImportedSet]]
    """Variant -> dataset -> the pictures of its test faces."""
