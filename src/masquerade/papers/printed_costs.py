"""The seconds per image that the papers print: reads ``reference/costs.yaml``. benchmarks/ measures them here."""

from pathlib import Path

from masquerade.papers import reference_files
from masquerade.papers.declarations import Declared
from masquerade.papers.printed import KnownNumber
from masquerade.papers.reference import FOLDER

FILE = FOLDER / "costs.yaml"


class PrintedCost(Declared):
    """The time in which a paper anonymizes one image."""

    paper: str
    """Its folder in reference/."""
    method: str
    variant: str
    printed: KnownNumber
    """Seconds per image."""
    device: str
    """As the paper writes it."""
    source: str
    """The place in the paper."""
    note: str = ""
    """What the paper leaves open."""


def load(path: Path = FILE) -> list[PrintedCost]:
    """Read every printed time, in the order of the file. Raises ReferenceFileError naming the file and the key."""
    items = reference_files.entries(path, "printed times")
    return [reference_files.check(PrintedCost, item, str(path)) for item in items]
