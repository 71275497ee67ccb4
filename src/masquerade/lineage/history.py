"""Reads the records of a repository: every job that wrote a file, as it ran. It runs and hashes nothing.

Snakemake's record of an output gives the rule, the command, the parameters and the sha256 of every input as the job
read it. `provenance` gives the md5 of every output as the job wrote it, and the circumstances. Both come with
``dvc pull``.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from masquerade.core.errors import MasqueradeError
from masquerade.lineage import provenance, snakemake_internals
from masquerade.lineage.snakemake_internals import OutputRecord
from masquerade.params import paths

WORDS = ("name", "dataset", "method", "ablation", "variant", "seed", "split")
"""Arguments of a step's program that identify its subject."""


class LineageError(MasqueradeError):
    """A name that has no lineage here, or a damaged record."""


@dataclass(frozen=True)
class Job:
    """One job as it ran. A field that the records do not give is '' or empty."""

    rule: str
    outputs: Mapping[str, str]
    """Path -> md5 of the file as the job wrote it."""
    inputs: Mapping[str, str]
    """Path -> sha256 of the file as the job read it, without the fingerprints of its code."""
    code: str
    """The file with the fingerprints of its code."""
    code_sha256: str
    params: Mapping[str, Any]
    """Its slice of the parameters, by dotted keys."""
    command: str
    template: str
    """The command of the rule, before names were filled in."""
    declared_environment: str
    """environment.yml as it was, base64."""
    started: float
    """Seconds since 1970, by Snakemake."""
    ended: float
    circumstances: Mapping[str, Any]
    """What `provenance.write` recorded."""

    @property
    def key(self) -> str:
        """The first output, which names the job."""
        return next(iter(self.outputs))

    @property
    def words(self) -> dict[str, str]:
        """The subject of the job: method, variant, seed, ..."""
        arguments = shlex.split(self.command)
        pairs = pairwise(arguments)
        values = {option[2:]: value for option, value in pairs if option.startswith("--") and value[:1] not in "->"}
        return {word: values[word] for word in WORDS if values.get(word)}

    @property
    def drawn(self) -> bool:
        """Whether the job read nothing but code and parameters, so that its outputs are raw data."""
        return not self.inputs


class History:
    """The jobs of a repository, by the files that they wrote."""

    def __init__(self, root: Path = Path()):
        self.root = root
        self._made: dict[str, Job] = {}
        circumstances = {path: record for record in self._circumstances() for path in record["outputs"]}
        jobs: dict[str, tuple[OutputRecord, list[str]]] = {}
        for output, file in snakemake_internals.output_records(root):
            record = snakemake_internals.output_record(_read(file))
            jobs.setdefault(record.command or output, (record, []))[1].append(output)
        for record, outputs in jobs.values():
            job = _job(record, outputs, circumstances)
            self._made |= dict.fromkeys(job.outputs, job)

    def maker(self, path: str) -> Job | None:
        """The job that wrote a file, or None if no job of this repository did."""
        return self._made.get(path)

    def outputs(self) -> list[str]:
        """Every file that a job wrote, sorted by name."""
        return sorted(self._made)

    def read(self, path: str) -> str:
        """The text of a file. Raises LineageError if the file is missing."""
        file = self.root / path
        if not file.is_file():
            raise LineageError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        return file.read_text(encoding="utf-8")

    def _circumstances(self) -> Iterator[dict[str, Any]]:
        folder = self.root / provenance.FOLDER
        for path in sorted(folder.rglob("*.json")) if folder.is_dir() else ():
            content = _read(path)
            if not isinstance(content.get("outputs"), dict):
                raise LineageError(f"{path} is damaged: it names no outputs. Fetch it again: `dvc checkout {path}`.")
            yield content


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LineageError(f"{path} is damaged ({error}). Fetch it again: `dvc checkout {path}`.") from error
    if not isinstance(content, dict):
        raise LineageError(f"{path} is damaged: it is no record. Fetch it again: `dvc checkout {path}`.")
    return content


def _job(record: OutputRecord, outputs: list[str], circumstances: Mapping[str, Mapping[str, Any]]) -> Job:
    known = next((circumstances[path] for path in outputs if path in circumstances), {})
    md5s = known.get("outputs", {})
    code = next((path for path in record.inputs if path.startswith(f"{paths.CODE}/")), "")
    named = dict.fromkeys(word for word in record.command.split() if word in outputs)  # in the rule's order
    return Job(
        rule=record.rule,
        outputs={path: md5s.get(path, "") for path in dict.fromkeys((*named, *outputs))},
        inputs={path: sha256 for path, sha256 in record.inputs.items() if path != code},
        code=code,
        code_sha256=record.inputs.get(code, ""),
        params=record.params,
        command=record.command,
        template=record.template,
        declared_environment=record.environment,
        started=record.started,
        ended=record.ended,
        circumstances=known,
    )
