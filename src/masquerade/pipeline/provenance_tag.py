"""The provenance tag of an anonymized face: method, variant, scale and networks, such as ``fit/default photo 0f3a...``.

It stands in the PNG and in the report. A key brings the face back with these networks alone. Others draw somebody else,
without any sign of it.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from masquerade.core import fingerprints
from masquerade.core.errors import PictureError
from masquerade.faces.photographs import decoding
from masquerade.faces.photographs.names import files as files_below
from masquerade.faces.photographs.names import folder_of
from masquerade.methods import Resources
from masquerade.pipeline.outputs import REPORT, read_report

MAKER = "maker"  # the column in the report
KEYWORD = "masquerade maker"  # of the text in the PNG
_TEXT = re.compile(r"(?P<method>[a-z0-9_]+)/(?P<variant>[a-z0-9_]+) (?P<scale>[a-z0-9_]+) (?P<networks>[0-9a-f]{16}|-)")


@dataclass(frozen=True)
class ProvenanceTag:
    """``networks``: 16 digits of a hash of the checkpoints; ``-`` for a method without any."""

    method: str
    variant: str
    scale: str
    networks: str

    def __str__(self) -> str:
        return f"{self.method}/{self.variant} {self.scale} {self.networks}"

    def check(self, text: str) -> None:
        """Raises PictureError if ``text``, what an image states, is another tag. '' states nothing."""
        if text and (other := read(text)) != self:
            raise PictureError(
                f"'{other or text[:60]}' anonymized it, and this is '{self}': it would become somebody else"
            )


def compute(method: str, variant: str, scale: str, resources: Resources) -> ProvenanceTag:
    """The tag of the results of a method with these files."""
    paths = sorted({*resources.backbones.values(), *filter(None, [resources.checkpoint])})
    digest = hashlib.sha256("".join(fingerprints.md5(path) for path in paths).encode()).hexdigest()[:16]
    return ProvenanceTag(method, variant, scale, digest if paths else "-")


def read(text: str) -> ProvenanceTag | None:
    """The tag that an image or a report states; None for any other text."""
    stated = _TEXT.fullmatch(text)
    return ProvenanceTag(**stated.groupdict()) if stated else None


def find_in_folder(pictures: Path) -> ProvenanceTag | None:
    """The tag of the first image of a folder that states one, in the report or in its PNG; None if none does."""
    folder = folder_of(pictures)
    stated = chain((row.get(MAKER, "") for row in read_report(folder / REPORT)), _read_texts(pictures, folder))
    return next((tag for text in stated if (tag := read(text))), None)


def _read_texts(pictures: Path, folder: Path) -> Iterator[str]:
    for path in files_below(pictures):
        with suppress(PictureError):  # no image: the report of the recovery lists it
            yield decoding.texts(path, folder, decoding.PILLOW_LIMIT).get(KEYWORD, "")
