"""The jobs of a build, as they ran, from the text ``records/<scale>.jsonl``. Nothing is run, and no file is changed.

A record gives the rule, the command, the parameters and the sha256 of every input as the job read it, the md5 of every
output as the job wrote it, and the circumstances. The text comes with git, so a clone has the history of every number.
The build of another commit is read through git; nothing is checked out.
"""

import logging
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from masquerade.core import fingerprints
from masquerade.core.errors import MasqueradeError
from masquerade.lineage import records
from masquerade.lineage.local_records import Build
from masquerade.lineage.records import Closures, Record, Records
from masquerade.lineage.snakemake_internals import OutputRecord, parse_output_record
from masquerade.params import blocks, overlays

logger = logging.getLogger(__name__)

WORDS = ("name", "dataset", "method", "ablation", "variant", "seed", "split")
"""Arguments of a step's program that identify its subject."""


class LineageError(MasqueradeError):
    """A name that has no lineage here, or a damaged record."""


@dataclass(frozen=True, kw_only=True)
class Job(OutputRecord):
    """One job as it ran. A field that the records do not give is '' or empty."""

    outputs: Mapping[str, str]
    """Path -> md5 of the file as the job wrote it."""
    circumstances: Mapping[str, Any]
    """What `provenance.write_circumstances` recorded."""

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
    def reads_no_files(self) -> bool:
        """Whether the job read nothing but code and parameters, so that its outputs are raw data."""
        return not self.inputs


class History:
    """The jobs of a build of one scale, by the files that they wrote.

    ``title``: of the build, for a person. ``read_content``: path and md5 -> the bytes of a file, None without them.
    """

    def __init__(
        self, title: str, scale: str, makers: Mapping[str, Record], closures: Iterable[Closures],
        read_content: Callable[[str, str], bytes | None],
    ):  # fmt: skip
        self.title, self.scale, self._closures, self._read_content = title, scale, list(closures), read_content
        jobs = {id(record): _make_job(record) for record in makers.values()}
        self._jobs = {path: jobs[id(record)] for path, record in makers.items()}

    def __str__(self) -> str:
        return self.title

    def find_job(self, path: str) -> Job | None:
        """The job that wrote a file, or None if no job did."""
        return self._jobs.get(path)

    def outputs(self) -> list[str]:
        """Every file that a job wrote, sorted by name."""
        return sorted(self._jobs)

    def jobs(self) -> dict[str, Job]:
        """Key -> every job."""
        return {job.key: job for job in self._jobs.values()}

    def read(self, path: str) -> str | None:
        """The text of a file that a job wrote, None if its bytes are not on this machine."""
        content = self._read_content(path, self._jobs[path].outputs[path])
        return None if content is None else content.decode()

    def closure(self, job: Job) -> Mapping[str, str]:
        """The source files of a job's code with their fingerprints. Empty if the closure that ran is not known."""
        candidates = (closures.get(Path(job.code).stem, {}) for closures in self._closures)
        return next((closure for closure in candidates if fingerprints.closure_sha256(closure) == job.code_sha256), {})


def read_working_copy(root: Path = Path(), scale: str | None = None) -> History:
    """The history of the files of a scale (default: that of params.yaml) in the working copy at ``root``.

    A file that a job made after the text was written has the record of that job. Raises `records.DamagedText`.
    """
    scale = scale or str(overlays.read_yaml(root / blocks.PARAMS)["scale"])
    build = Build(scale, root)
    recorded = build.text_records
    claimed = {path: record for path, record in build.job_records.items() if path in build.files}
    newer = {path: record for path, record in build.records_by_file.items() if record}
    closures = (recorded.closures, records.read_closures(root))

    def read_content(path: str, _: str) -> bytes | None:
        return (root / path).read_bytes() if (root / path).is_file() else _read_from_dvc(path, None, root)

    return History("the working copy", scale, {**claimed, **recorded.makers, **newer}, closures, read_content)


def parse_history(text: str, scale: str, commit: str, root: Path = Path()) -> History:
    """The history in the text of a commit. Bytes come from the working copy if they are the same, else through DVC."""
    recorded = Records.parse(text)

    def read_content(path: str, digest: str) -> bytes | None:
        file = root / path
        same = file.is_file() and fingerprints.md5(file) == digest
        return file.read_bytes() if same else _read_from_dvc(path, commit, root)

    return History(commit[:12], scale, recorded.makers, [recorded.closures], read_content)


def _read_from_dvc(path: str, commit: str | None, root: Path) -> bytes | None:
    """The bytes of a file of a commit (None: of the working copy), from DVC's cache or remote; None if not there."""
    import dvc.api

    try:
        return dvc.api.read(path, repo=str(root), rev=commit, mode="rb")
    except Exception as error:  # noqa: BLE001 - DVC and the file systems of its remotes raise many kinds
        logger.info("%s is not to be had from DVC: %s", path, error)
        return None


def _make_job(record: Record) -> Job:
    return Job(**parse_output_record(record.snakemake), outputs=record.outputs, circumstances=record.circumstances)


def read_revision(name: str, root: Path = Path()) -> History:
    """The history of the commit, branch or tag ``name``.

    Raises LineageError if there is no such revision, or no records in it.
    """
    if reason := explain_refusal(root):
        raise LineageError(reason)
    if not (root / ".git").exists():
        raise LineageError(
            f"{root.resolve()} has no .git, so it has no revisions; those of a repository around it are of other "
            "files. Compare revisions in a clone of Masquerade."
        )
    commit = _run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if commit is None:
        raise LineageError(f"git has no revision '{name}'. Give a commit, a branch, a tag, HEAD~1, ...")
    commit = commit.strip()
    parameters = overlays.parse_yaml(_read_text(root, commit, blocks.PARAMS) or "{}", f"{blocks.PARAMS} of {name}")
    scale = parameters.get("scale", "")
    path = records.text_path(scale).as_posix()
    text = _read_text(root, commit, path)
    if text is None:
        raise LineageError(
            f"{path} is not in {commit[:12]}: no build was committed. Check that commit out, build it with "
            f"`snakemake all`, run `git add dvc.lock {records.FOLDER}` and commit (see docs/sharing.md)."
        )
    return parse_history(text, scale, commit, root)


def explain_refusal(root: Path) -> str:
    """Why git does not read the repository at ``root``, with the remedy that git names; '' if it does, or without one.

    git refuses a repository of another user, as in a container, with sudo, or on a share.
    """
    if not (root / ".git").exists():
        return ""
    done = fingerprints.run_git(root, "rev-parse", "--git-dir")
    if not done.returncode:
        return ""
    lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    command = next((f" Run `{line.strip()}`." for line in lines if line.strip().startswith("git config")), "")
    return f"git does not read this repository ({lines[0]}).{command}"


def _read_text(root: Path, commit: str, path: str) -> str | None:
    """The text of a file of a commit, None if the commit does not have it."""
    return _run_git(root, "cat-file", "blob", f"{commit}:./{path}")


def _run_git(root: Path, *arguments: str) -> str | None:
    """What git prints, None if it fails."""
    try:
        done = fingerprints.run_git(root, *arguments)
    except OSError as error:
        raise LineageError(f"git does not run ({error}), and revisions are read with it. Install git.") from error
    return None if done.returncode else done.stdout
