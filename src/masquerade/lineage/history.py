"""What the records say: every job that wrote something here, as it ran. Nothing is run and nothing is hashed.

Snakemake's record of an output (``.snakemake/metadata/``, format 6 of 9.27) gives its rule, command, parameters and the
sha256 of every input as the job read it; `provenance` gives the md5 of every output as the job wrote it, and the
circumstances. Both come with ``dvc pull``.
"""

import ast
import json
import shlex
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masquerade.errors import MasqueradeError
from masquerade.lineage import provenance

RECORDS = Path(".snakemake/metadata")
CODE = ".masquerade/code/"
WORDS = ("name", "dataset", "method", "ablation", "variant", "seed", "split")
"""Arguments of a step's program that say what it was about."""


class LineageError(MasqueradeError):
    """What was asked for has no lineage here, or cannot be named so."""


@dataclass(frozen=True)
class Job:
    """One job as it ran. What the records do not say is '' or empty."""

    rule: str
    outputs: Mapping[str, str]
    """Path -> md5 of what the job wrote."""
    inputs: Mapping[str, str]
    """Path -> sha256 of what the job read, the fingerprints of its code left out."""
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
    """Seconds since 1970, by Snakemake, as is ``ended``."""
    ended: float
    told: Mapping[str, Any]
    """The circumstances, as `provenance.write` left them."""

    @property
    def key(self) -> str:
        """The first output, which names the job."""
        return next(iter(self.outputs))

    @property
    def words(self) -> dict[str, str]:
        """What the job was about: method, variant, seed, ..."""
        given = shlex.split(self.command)
        pairs = zip(given, given[1:], strict=False)
        said = {option[2:]: value for option, value in pairs if option.startswith("--") and value[:1] not in "->"}
        return {word: said[word] for word in WORDS if said.get(word)}

    @property
    def drawn(self) -> bool:
        """Whether nothing but code and parameters went in: raw data that was drawn."""
        return not self.inputs


class History:
    """The jobs of a repository, by what they wrote."""

    def __init__(self, root: Path = Path()):
        self.root = root
        self._made: dict[str, Job] = {}
        told = {path: text for text in self._told() for path in text["outputs"]}
        found: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for output, record in self._records():
            found.setdefault(record["shellcmd"] or output, (record, []))[1].append(output)
        for record, outputs in found.values():
            job = _job(record, outputs, told)
            self._made |= dict.fromkeys(job.outputs, job)

    def maker(self, path: str) -> Job | None:
        """The job that wrote a file; None where nobody here did."""
        return self._made.get(path)

    def outputs(self) -> list[str]:
        """Every file that a job wrote, in the order of names."""
        return sorted(self._made)

    def read(self, path: str) -> str:
        """The text of a file. Raises LineageError where it is not there."""
        file = self.root / path
        if not file.is_file():
            raise LineageError(f"{path} is missing. Build it with `snakemake {path}`, or fetch it with `dvc pull`.")
        return file.read_text(encoding="utf-8")

    def _records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        folder = self.root / RECORDS
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            name = "".join(part.removeprefix("@") for part in path.relative_to(folder).parts)
            if path.is_file() and not name.startswith("."):
                yield urlsafe_b64decode(name).decode(), _read(path)

    def _told(self) -> Iterator[dict[str, Any]]:
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


def _job(record: Mapping[str, Any], outputs: list[str], told: Mapping[str, Mapping[str, Any]]) -> Job:
    circumstances = next((told[path] for path in outputs if path in told), {})
    md5s = circumstances.get("outputs", {})
    sha256s = record["input_checksums"] or {}
    inputs = {path: sha256s.get(path, "").removeprefix("sha256:") for path in sorted(set(record["input"]))}
    code = next((path for path in inputs if path.startswith(CODE)), "")
    said = dict.fromkeys(word for word in (record["shellcmd"] or "").split() if word in outputs)  # in the rule's order
    return Job(
        rule=record["rule"],
        outputs={path: md5s.get(path, "") for path in dict.fromkeys((*said, *outputs))},
        inputs={path: sha for path, sha in inputs.items() if path != code},
        code=code,
        code_sha256=inputs.get(code, ""),
        params=_slice(record["params"]),
        command=record["shellcmd"] or "",
        template=record["code"] or "",
        declared_environment=record["conda_env"] or "",
        started=record["starttime"],
        ended=record["endtime"],
        told=circumstances,
    )


def _slice(params: list[str]) -> dict[str, Any]:
    """The job's slice of the parameters, among what the rule calls params; Snakemake keeps them as Python literals."""
    for text in params:
        value = ast.literal_eval(text)
        if isinstance(value, str) and value.startswith("{"):
            return json.loads(value)
    return {}
