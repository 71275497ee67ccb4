"""What made an anonymized face: method, variant, scale and networks. It stands in the PNG and in the report.

A key brings the face back with these networks alone. Others draw somebody else, without any sign of it.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from masquerade.core import fingerprints
from masquerade.core.errors import PictureError
from masquerade.faces.folder import files as files_below
from masquerade.faces.photographs import decoding
from masquerade.methods import Resources

MAKER = "maker"  # the column in the report
KEYWORD = "masquerade maker"  # of the text in the PNG
_TEXT = re.compile(r"(?P<method>[a-z0-9_]+)/(?P<variant>[a-z0-9_]+) (?P<scale>[a-z0-9_]+) (?P<networks>[0-9a-f]{16}|-)")


@dataclass(frozen=True)
class Maker:
    """``networks``: 16 digits of a hash of the checkpoints; ``-`` for a method without any."""

    method: str
    variant: str
    scale: str
    networks: str

    def __str__(self) -> str:
        return f"{self.method}/{self.variant} {self.scale} {self.networks}"

    def check(self, text: str) -> None:
        """Raises PictureError if ``text``, what a picture states, is another maker. '' states nothing."""
        if text and (made := read(text)) != self:
            raise PictureError(
                f"'{made or text[:60]}' anonymized it, and this is '{self}': it would become somebody else"
            )


def of(method: str, variant: str, scale: str, resources: Resources) -> Maker:
    """The maker of the results of a method with these files."""
    paths = sorted({*resources.backbones.values(), *filter(None, [resources.checkpoint])})
    digest = fingerprints.md5_of_text(" ".join(fingerprints.md5(path) for path in paths))[:16] if paths else "-"
    return Maker(method, variant, scale, digest)


def read(text: str) -> Maker | None:
    """The maker that a picture or a report states; None for any other text."""
    stated = _TEXT.fullmatch(text)
    return Maker(**stated.groupdict()) if stated else None


def listed(report: Path) -> dict[str, str]:
    """Name of the picture -> what made it, as in the ``report`` of an earlier run; {} if there is none."""
    if not report.is_file():
        return {}
    with report.open(encoding="utf-8", errors="replace", newline="") as file:
        return {row.get("output") or "": row.get(MAKER) or "" for row in csv.DictReader(file)}


def of_folder(folder: Path, report: Path, megapixels: float) -> Maker | None:
    """The maker of the first picture of a folder that states one, by its PNG or by the report; None if none does."""
    for path in files_below(folder):
        try:
            text = decoding.texts(path, folder, megapixels).get(KEYWORD, "")
        except PictureError:
            continue
        if maker := read(text):
            return maker
    return next((maker for text in listed(report).values() if (maker := read(text))), None)
