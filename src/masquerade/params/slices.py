"""Slices of the parameters: the values that one job may read, by dotted keys, as one canonical JSON text.

Snakemake gives the text to the job and keeps it in its record. DVC compares files with the same text, one for each
distinct slice, which the DVC stage ``params`` writes.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from masquerade.core import files, rehearsal
from masquerade.params.parameters import Parameters

FOLDER = Path(".masquerade/params")
"""The folder with one file for each slice."""


@dataclass(frozen=True)
class Knobs:
    """A function that gives a job its slice of the parameters. Name and keys may hold wildcards in braces."""

    name: str
    """The name of the slice's file."""
    keys: tuple[str, ...]
    text: Callable[[tuple[str, ...]], str]
    """Keys without wildcards -> the text of the slice."""

    def __call__(self, wildcards: Mapping[str, str]) -> str:
        return self.text(self.declared(wildcards)[1])

    def declared(self, wildcards: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
        """The name and the keys of the slice of the job with these wildcards."""
        filled = dict(wildcards.items())
        return self.name.format(**filled), tuple(key.format(**filled) for key in self.keys)


def text_of(parameters: Parameters, keys: Iterable[str]) -> str:
    """The slice of these keys as JSON with sorted keys. In a rehearsal it holds the mark of rehearsals.

    ``keys``: as `Parameters.slice` takes them. Raises ParameterError.
    """
    mark = (rehearsal.MARK,) * parameters.rehearsal
    return json.dumps(parameters.slice((*keys, *mark)), sort_keys=True)


def path_of(name: str) -> str:
    """The file of a slice, relative to the root of the repository."""
    return (FOLDER / f"{name}.json").as_posix()


def write(parameters: Parameters, slices: Mapping[str, Iterable[str]], root: Path = Path()) -> None:
    """Write the file of each slice (name -> keys) if it changed, and remove the files of slices that do not exist.

    Raises ParameterError before anything is written.
    """
    texts = {root / path_of(name): f"{text_of(parameters, keys)}\n" for name, keys in slices.items()}
    for path in (root / FOLDER).glob("*.json"):
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        files.write_if_changed(path, text)
