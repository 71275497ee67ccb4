"""The chain behind the numbers of a setting, from metrics to raw data, each file with the hash of its content."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from masquerade.core import discovery, fingerprints, images
from masquerade.params.matrix import Setting

Link = dict[str, Any]
"""``step``, ``files`` (path -> md5 of its content), ``facts`` (name -> value)."""


@dataclass(frozen=True)
class Files:
    """The files of a build, by kind. An archive is named by its .zip; its index has a checksum of its pictures."""

    faces: tuple[Path, ...]
    metrics: tuple[Path, ...]
    derived: tuple[Path, ...]
    attempts: tuple[Path, ...]
    checkpoints: tuple[Path, ...]
    backbones: tuple[Path, ...]

    @classmethod
    def of_build(cls, derived: Path, metrics: Sequence[Path], **further: Sequence[Path]) -> "Files":
        """The files of a build, of which ``derived`` is a folder.

        A file in this folder has the same place as its metrics: ``<dataset>/<method>/<variant>/<seed>``.
        """
        return cls(
            metrics=tuple(metrics),
            derived=tuple(derived / Path(*path.parts[-4:]).with_suffix(".zip") for path in metrics),
            **{name: tuple(paths) for name, paths in further.items()},
        )

    @property
    def settings(self) -> list[Setting]:
        """Every (dataset, method, variant) that has metrics, in the order of the files."""
        return [cast("Setting", parts) for parts in dict.fromkeys(path.parts[-4:-1] for path in self.metrics)]


def chain_of(setting: Setting, files: Files, measurements: Mapping[str, str], knobs: Mapping[str, Any]) -> list[Link]:
    """Every step behind the numbers of ``setting``, consumers first. Steps without files and facts are left out.

    ``measurements``: path -> md5 of what its metrics were computed from. ``knobs``: the parameters of its variant.
    """
    dataset, method, variant = setting
    metrics = _of_setting(setting, files.metrics)
    derived = _of_setting(setting, files.derived)
    attempts = _of_setting(setting, files.attempts)
    own = [path for path in files.checkpoints if path.parts[-4:-1] == ("ablations", method, variant)]
    shared = [path for path in files.checkpoints if path.parts[-3:-1] == ("methods", method)]
    faces = [path for path in files.faces if path.stem == dataset]
    seeds = ", ".join(path.stem for path in metrics)
    links = [
        _link("metrics", metrics),
        {"step": "measurements", "files": dict(measurements), "facts": {}},
        _link("anonymized faces", _indexes(derived), _statement(derived)),
        _link("further pictures: recovered, wrong keys, further keys", _indexes(attempts)),
        _link("checkpoint", own or shared),
        _link("networks that it uses", [path for path in files.backbones if path.stem in _needs(method)]),
        _link("parameters and seed", [], {"of": f"methods.{method}.variants.{variant}", **knobs, "seed": seeds}),
        _link("raw data", _indexes(faces), {"faces": dataset}),
    ]
    return [link for link in links if link["files"] or link["facts"]]


@cache
def _needs(method: str) -> tuple[str, ...]:
    return discovery.load("methods", method).needs if method in discovery.names("methods") else ()


def _of_setting(setting: Setting, paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.parts[-4:-1] == setting]


def _indexes(archives: Iterable[Path]) -> list[Path]:
    return [images.index_path(path) for path in archives]


def _statement(archives: Iterable[Path]) -> dict[str, Any]:
    """The statement of the method about itself, from the first seed."""
    first = next(iter(archives), None)
    return dict(images.index_facts(images.index_path(first)).get("statement", {})) if first else {}


def _link(step: str, paths: Iterable[Path], facts: Mapping[str, Any] | None = None) -> Link:
    return {"step": step, "files": {str(path): _md5(path) for path in paths}, "facts": dict(facts or {})}


@cache
def _md5(path: Path) -> str:
    return fingerprints.md5(path)
