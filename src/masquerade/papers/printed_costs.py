"""The seconds per picture that the papers print: reads ``reference/costs.yaml``. benchmarks/ measures them here."""

from pathlib import Path

from pydantic import ValidationError

from masquerade.core.errors import ReferenceFileError
from masquerade.papers import mistakes, yaml_text
from masquerade.papers.declarations import Declared
from masquerade.papers.printed import KnownNumber
from masquerade.papers.reference import FOLDER

FILE = FOLDER / "costs.yaml"


class PrintedCost(Declared):
    """The time in which a paper anonymizes one picture."""

    paper: str
    """Its folder in reference/."""
    method: str
    variant: str
    printed: KnownNumber
    """Seconds per picture."""
    device: str
    """As the paper writes it."""
    source: str
    """The place in the paper."""
    note: str = ""
    """What the paper leaves open."""


def load(path: Path = FILE) -> list[PrintedCost]:
    """Read every printed time, in the order of the file. Raises ReferenceFileError naming the file and the key."""
    tree = yaml_text.read(path)
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise ReferenceFileError(f"{path} must be a list of printed times, each with its keys.")
    try:
        return [PrintedCost(**item) for item in tree]
    except ValidationError as error:
        texts = mistakes.lines(error, PrintedCost)
        raise ReferenceFileError("\n".join(f"{path}: {text}" for text in texts)) from error
