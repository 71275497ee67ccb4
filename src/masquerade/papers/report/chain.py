"""The chain behind the numbers of a setting, from metrics to raw data, each file with the hash of its content.

A chain is a list of links, consumers first::

    [{"step": "metrics", "files": {"results/mini/metrics/synthetic_hq/falco/m_0/0.json": "4d1a..."}, "facts": {}}, ...,
     {"step": "parameters and seed", "files": {}, "facts": {"of": "methods.falco.variants.m_0", "seed": "0"}}, ...]
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from masquerade.core import fingerprints, images
from masquerade.params.matrix import Cell, Setting
from masquerade.params.paths import Paths

Link = dict[str, Any]
"""``step``, ``files`` (path -> md5 of its content), ``facts`` (name -> value)."""


@dataclass(frozen=True)
class Files:
    """The files of a build. An archive is named by its .zip; its index has a checksum of its images."""

    paths: Paths
    metrics: Sequence[Path]
    faces: Sequence[Path]
    recoveries: Sequence[Path]
    checkpoints: Sequence[Path]
    backbones: Sequence[Path]
    needs: Mapping[str, Sequence[str]]
    """Method -> the backbones that it needs with the parameters of the build."""

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells that have metrics, in the order of their files."""
        return [Cell.of("metrics", path) for path in self.metrics]

    @property
    def settings(self) -> list[Setting]:
        """Every (dataset, method, variant) that has metrics, in the order of the files."""
        return list(dict.fromkeys(cell.setting for cell in self.cells))

    def of(self, cells: Iterable[Cell], pattern: str) -> list[Path]:
        """The files of cells."""
        return [Path(pattern.format(**vars(cell))) for cell in cells]


def list_links(setting: Setting, files: Files, measurements: Mapping[str, str], knobs: Mapping[str, Any]) -> list[Link]:
    """Every step behind the numbers of ``setting``, consumers first. Steps without files and facts are left out.

    ``measurements``: path -> md5 of what its metrics were computed from. ``knobs``: the parameters of its variant.
    """
    dataset, method, variant = setting
    cells, paths = [cell for cell in files.cells if cell.setting == setting], files.paths
    derived = files.of(cells, paths.anonymized)
    attempts = [path for path in files.of(cells, paths.recoveries) if path in files.recoveries]
    of_variant, of_method = (
        [path for path in files.of(cells, pattern) if path in files.checkpoints]
        for pattern in (paths.ablation, paths.method)
    )
    seeds = ", ".join(str(cell.seed) for cell in cells)
    links = [
        _link("metrics", files.of(cells, paths.metrics)),
        {"step": "measurements", "files": dict(measurements), "facts": {}},
        _link("anonymized faces", _indexes(derived), _statement(derived)),
        _link("further images: recovered, wrong keys, further keys", _indexes(attempts)),
        _link("checkpoint", of_variant or of_method),
        _link("networks that it uses", [path for path in files.backbones if path.stem in files.needs.get(method, ())]),
        _link("parameters and seed", [], {"of": f"methods.{method}.variants.{variant}", **knobs, "seed": seeds}),
        _link("raw data", _indexes([Path(paths.faces.format(dataset=dataset))]), {"faces": dataset}),
    ]
    return [link for link in links if link["files"] or link["facts"]]


def _indexes(archives: Iterable[Path]) -> list[Path]:
    return [images.index_path(path) for path in archives]


def _statement(archives: Iterable[Path]) -> dict[str, Any]:
    """The statement of the method about itself, from the first seed."""
    first = next(iter(archives), None)
    return dict(images.read_metadata(images.index_path(first)).get("statement", {})) if first else {}


def _link(step: str, paths: Iterable[Path], facts: Mapping[str, Any] | None = None) -> Link:
    return {"step": step, "files": {str(path): _md5(path) for path in paths}, "facts": dict(facts or {})}


@cache
def _md5(path: Path) -> str:
    return fingerprints.md5(path)
