"""The chain behind a cell of the matrix, from its metrics to raw data, each file with the hash of its content."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from masquerade import discovery, images, lineage

Cell = tuple[str, str, str]
"""(dataset, method, variant), all seeds."""
Link = dict[str, Any]
"""``step``, ``files`` (path -> md5 of its content), ``facts`` (what is known of them, by name)."""


@dataclass(frozen=True)
class Files:
    """What a build left behind, by kind. Of an archive its .zip is named; its index pins its pictures by a checksum."""

    faces: tuple[Path, ...]
    metrics: tuple[Path, ...]
    source: tuple[Path, ...]
    measured: tuple[Path, ...]
    derived: tuple[Path, ...]
    attempts: tuple[Path, ...]
    attempts_measured: tuple[Path, ...]
    checkpoints: tuple[Path, ...]
    backbones: tuple[Path, ...]

    @property
    def cells(self) -> list[Cell]:
        """Every cell of which there are metrics, in the order of the files."""
        return list(dict.fromkeys(path.parts[-4:-1] for path in self.metrics))


def chain_of(cell: Cell, files: Files, knobs: Mapping[str, Any]) -> list[Link]:
    """Every step behind the numbers of ``cell``, consumers first; a step that it does not have is left out.

    ``knobs``: the parameters of its variant.
    """
    dataset, method, variant = cell
    found = {name: _of_cell(cell, getattr(files, name)) for name in ("metrics", "measured", "derived", "attempts")}
    tried = _of_cell(cell, files.attempts_measured)
    source = [path for path in files.source if path.parent.name == dataset]
    own = [path for path in files.checkpoints if path.parts[-4:-1] == ("ablations", method, variant)]
    shared = [path for path in files.checkpoints if path.parts[-3:-1] == ("methods", method)]
    faces = [path for path in files.faces if path.stem == dataset]
    seeds = ", ".join(path.stem for path in found["metrics"])
    links = [
        _link("metrics", found["metrics"]),
        _link("measurements", [*found["measured"], *tried, *source]),
        _link("anonymized faces", _indexes(found["derived"]), _stated(found["derived"])),
        _link("further pictures: recovered, wrong keys, further keys", _indexes(found["attempts"])),
        _link("checkpoint", own or shared),
        _link("networks that it uses", [path for path in files.backbones if path.stem in _needs(method)]),
        _link("parameters and seed", [], {"of": f"methods.{method}.variants.{variant}", **knobs, "seed": seeds}),
        _link("raw data", _indexes(faces), {"faces": dataset}),
    ]
    return [link for link in links if link["files"] or link["facts"]]


@cache
def _needs(method: str) -> tuple[str, ...]:
    return discovery.load("methods", method).needs if method in discovery.names("methods") else ()


def _of_cell(cell: Cell, paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.parts[-4:-1] == cell]


def _indexes(archives: Iterable[Path]) -> list[Path]:
    return [images.index_path(path) for path in archives]


def _stated(archives: Iterable[Path]) -> dict[str, Any]:
    """What the method states about itself, from the first seed."""
    first = next(iter(archives), None)
    return dict(images.index_facts(images.index_path(first)).get("statement", {})) if first else {}


def _link(step: str, paths: Iterable[Path], facts: Mapping[str, Any] | None = None) -> Link:
    return {"step": step, "files": {str(path): _md5(path) for path in paths}, "facts": dict(facts or {})}


@cache
def _md5(path: Path) -> str:
    return lineage.md5(path)
