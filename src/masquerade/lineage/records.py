"""The records of a build as text in git: ``records/<scale>.jsonl``, one line a job.

A line holds the md5 of the job's outputs, the circumstances of the job, and Snakemake's record of it. Two more kinds of
lines hold what many jobs share: the fingerprint of a source file with the steps that use it, and long values::

    {"value": "1f0c...", "is": {"sha256": ..., "python": "3.11.7", "packages": {...}}}
    {"source": "src/masquerade/core/images.py", "fingerprint": "9be1...", "steps": ["data", "measure"]}
    {"outputs": {"data/mini/faces/synthetic_hq.zip": "4d1a..."},
     "circumstances": {"commit": ..., "environment": "1f0c...", ...}, "snakemake": {"rule": "faces", ...}}
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from masquerade.core.errors import MasqueradeError
from masquerade.params.paths import CODE

FOLDER = Path("records")
SHARED = ("conda_env", "code", "environment")
"""The parts of a record that are long and equal in many jobs."""
Closures = Mapping[str, Mapping[str, str]]
"""Step -> its source files with their fingerprints, as `fingerprints.write_fingerprints` writes them."""
Value = TypeVar("Value")


def text_path(scale: str) -> Path:
    """The text with the records of a scale."""
    return FOLDER / f"{scale}.jsonl"


def params_path(scale: str) -> Path:
    """The parameters that took effect in the recorded build of a scale, as one file that DVC compares."""
    return FOLDER / f"{scale}.yaml"


class DamagedText(MasqueradeError):
    """A text of records that cannot be read."""


@dataclass(frozen=True)
class Record:
    """What is recorded of one job."""

    outputs: Mapping[str, str]
    """Path -> md5 of each output as the job wrote it, in the order of the rule."""
    circumstances: Mapping[str, Any]
    """What `provenance.write_circumstances` recorded, without the outputs."""
    snakemake: Mapping[str, Any]
    """Snakemake's record of the first output."""

    @property
    def key(self) -> str:
        """The first output, which names the job."""
        return next(iter(self.outputs))


@dataclass(frozen=True)
class Records:
    """The records of one build."""

    jobs: Mapping[str, Record]
    """Key -> record of each job."""
    closures: Closures

    @cached_property
    def makers(self) -> dict[str, Record]:
        """Output -> the record of the job that wrote it."""
        return {path: record for record in self.jobs.values() for path in record.outputs}

    @classmethod
    def read(cls, scale: str, root: Path = Path()) -> "Records":
        """The records in the working copy; none if there is no text. Raises DamagedText."""
        file = root / text_path(scale)
        try:
            return cls.parse(file.read_text(encoding="utf-8") if file.is_file() else "")
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedText(
                f"{text_path(scale)} cannot be read ({error}). After a `git merge` with conflicts, run `masquerade "
                f"records merge`. Otherwise restore it: `git checkout {text_path(scale)}`."
            ) from error

    @classmethod
    def parse(cls, text: str) -> "Records":
        """The records in what `text` returned."""
        shared: dict[str, Any] = {}
        jobs: dict[str, Record] = {}
        closures: dict[str, dict[str, str]] = {}
        for line in text.splitlines():
            content = json.loads(line)
            if "value" in content:
                shared[content["value"]] = content["is"]
            elif "source" in content:
                for step in content["steps"]:
                    closures.setdefault(step, {})[content["source"]] = content["fingerprint"]
            else:
                parts = ({k: shared[v] if k in SHARED and v else v for k, v in content[part].items()}
                         for part in ("circumstances", "snakemake"))  # fmt: skip
                record = Record(content["outputs"], *parts)
                jobs[record.key] = record
        return cls(jobs, closures)

    def text(self) -> str:
        """The records as text. The same records give the same text."""
        shared: dict[str, Any] = {}
        lines = [_line(_make_line(self.jobs[key], shared)) for key in sorted(self.jobs)]
        values = [_line({"value": name, "is": shared[name]}) for name in sorted(shared)]
        return "".join(f"{line}\n" for line in (*values, *self._format_sources(), *lines))

    def _format_sources(self) -> Iterator[str]:
        steps: dict[tuple[str, str], list[str]] = {}
        for step, closure in sorted(self.closures.items()):
            for source in closure.items():
                steps.setdefault(source, []).append(step)
        for (source, fingerprint), names in sorted(steps.items()):
            yield _line({"source": source, "fingerprint": fingerprint, "steps": names})


def read_closures(root: Path = Path()) -> dict[str, dict[str, str]]:
    """The closures that planning wrote in the working copy, as `Records` holds them."""
    files = sorted((root / CODE).glob("[!.]*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}


def merge_records(base: Records, ours: Records, theirs: Records) -> Records:
    """The records of two builds that began at ``base``.

    A job that one side changed is taken from that side. A job that both sides changed is taken from ours.
    """
    return Records(_merge(base.jobs, ours.jobs, theirs.jobs), _merge(base.closures, ours.closures, theirs.closures))


def _merge(base: Mapping[str, Value], ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> dict[str, Value]:
    values = {key: (theirs if ours.get(key) == base.get(key) else ours).get(key) for key in sorted({*ours, *theirs})}
    return {key: value for key, value in values.items() if value is not None}


def _make_line(record: Record, shared: dict[str, Any]) -> dict[str, Any]:
    """The content of a job's line. Adds to ``shared`` what it refers to by a hash."""

    def replace_shared(content: Mapping[str, Any]) -> dict[str, Any]:
        names = {key: _hash(content[key]) for key in SHARED if content.get(key)}
        shared.update({name: content[key] for key, name in names.items()})
        return {**content, **names}

    return {
        "outputs": record.outputs, "circumstances": replace_shared(record.circumstances),
        "snakemake": replace_shared(record.snakemake),
    }  # fmt: skip


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


_line: Callable[[Mapping[str, Any]], str] = json.JSONEncoder(ensure_ascii=False).encode
