"""Images that another program made of the same faces: a method like every other, each program one of its variants.

`masquerade score` collects the images of a program into one file for each dataset, and writes the variant into
scales/imported/<scale>.yaml::

Methods:
      imported:
        variants:
          theirs: {title: Theirs, source: "They 2020, program 1.0", near: 6.0, images: {synthetic_hq: 8a7e...}}

The class is in method.py. originals.py and disguises.py find originals among the images.
"""

from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Name, Settings

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ImportedImages(Settings):
    """What one program made."""

    title: str
    """The name of the method in its paper, or of the program."""
    source: str
    """The paper (authors and year), and the program with its version."""
    near: Annotated[float, Field(ge=0)]
    """An image counts as an unchanged original if their mean absolute difference is at most this many gray levels of
    255."""
    images: dict[Name, Sha256]
    """For each dataset, the SHA-256 of the file ``imported/<scale>/<dataset>/<variant>.zip``."""
    recovers: bool
    """Whether these files also hold what the program recovered from its own images."""
