"""Computes every hash of a build again, from raw data to tables, and compares it with the records.

A link is a job. Its code, parameters and inputs must be the recorded ones. Its outputs must have the recorded bytes. A
link that is broken only because an earlier link is broken is not reported.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from masquerade.core.errors import ParameterError
from masquerade.core.fingerprints import fingerprint_source
from masquerade.lineage import records
from masquerade.lineage.difference import list_changes
from masquerade.lineage.history import History, Job, LineageError, read_working_copy
from masquerade.lineage.local_records import Build
from masquerade.lineage.snakemake_internals import record_path
from masquerade.params import loading
from masquerade.params import parameters as params


@dataclass(frozen=True)
class Break:
    """One broken link: the file, what is wrong with it, what to do, and the files that depend on it."""

    path: str
    what: str
    todo: str
    rests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The result of `verify`: the broken links, from raw data to tables, and how many jobs and files were compared."""

    breaks: tuple[Break, ...]
    jobs: int
    files: int
    notes: tuple[str, ...]


class Hashes:
    """md5 and sha256 of files, each file read once."""

    def __init__(self, root: Path):
        self.root, self._hashes = root, {}

    def of(self, path: str) -> tuple[str, str]:
        """(md5, sha256), or ('', '') if the file is missing."""
        if path not in self._hashes:
            self._hashes[path] = self._read(self.root / path)
        return self._hashes[path]

    def __len__(self) -> int:
        return sum(1 for md5, _ in self._hashes.values() if md5)

    @staticmethod
    def _read(path: Path) -> tuple[str, str]:
        if not path.is_file():
            return "", ""
        md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                md5.update(block)
                sha256.update(block)
        return md5.hexdigest(), sha256.hexdigest()


def verify(root: Path = Path()) -> Verdict:
    """Check the whole build of the scale in params.yaml. Raises LineageError if nothing was built."""
    history, parameters = read_working_copy(root), loading.load(root)
    jobs = history.jobs()
    if not jobs:
        raise LineageError(f"There is no build of scale {parameters.scale}. Run `snakemake all`, or check out a commit "
                           "with its records and run `dvc pull`.")  # fmt: skip
    needs = {job.key: {m.key for path in job.inputs if (m := history.find_job(path))} for job in jobs.values()}
    checker = _Checker(parameters, Hashes(root), history, Build(history.scale, root))
    breaks: list[Break] = [
        Break(path, "it has no record of the job that made it", f"remove it, or make it: `snakemake --force {path}`.")
        for path in sorted(checker.build.files.keys())
        if history.find_job(path) is None
    ]
    for key in TopologicalSorter({key: sorted(needs[key]) for key in sorted(needs)}).static_order():
        breaks += checker.check(jobs[key])
    dependent = _find_dependents(jobs, needs)
    breaks = [Break(b.path, b.what, b.todo, dependent.get(b.path, ())) for b in breaks]
    text = records.text_path(history.scale)
    notes = () if (root / text).is_file() else (f"{text} is missing: the files are compared with the records of the "
                                                "jobs only.",)  # fmt: skip
    return Verdict(tuple(breaks), len(jobs), len(checker.hashes), notes)


def _find_dependents(jobs: Mapping[str, Job], needs: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """File -> every file of a job that depends on it, directly or through other jobs."""
    users: dict[str, set[str]] = {key: set() for key in jobs}
    for key, sources in needs.items():
        for source in sources:
            users[source].add(key)

    @cache
    def find_users(key: str) -> frozenset[str]:
        return frozenset(users[key]).union(*map(find_users, users[key]))

    files = {key: tuple(sorted(path for k in find_users(key) for path in jobs[k].outputs)) for key in jobs}
    return {path: files[key] for key, job in jobs.items() for path in job.outputs}


class _Checker:
    def __init__(self, parameters: params.Parameters, hashes: Hashes, history: History, build: Build):
        self.parameters, self.hashes, self.history, self.build = parameters, hashes, history, build
        self.text = records.text_path(history.scale)
        self.reported: set[str] = set()
        self._fingerprint = cache(self._fingerprint)

    def check(self, job: Job) -> Iterator[Break]:
        """The broken links of one job. The jobs that it depends on must have been checked before."""
        rebuild = f"`snakemake --force {job.key}` makes it again"
        for what in (*self._check_code(job), *self._check_params(job)):
            yield Break(
                job.key, f"it is out of date: {what}", f"{rebuild}; `snakemake all` then rebuilds what depends on it."
            )
        for path, sha256 in job.inputs.items():
            current = self.hashes.of(path)[1]
            if current != sha256 and path not in self.reported:
                self.reported.add(path)
                made_from = f"sha256 {sha256[:12]}; {_describe_digest(current)}"
                yield Break(path, f"{job.key} was made from other bytes ({made_from})",
                            f"restore them with `dvc checkout --force {path}`, or run `snakemake all`.")  # fmt: skip
        for path, written in job.outputs.items():
            what = self._check_bytes(path, written, job)
            if what and path not in self.reported:
                self.reported.add(path)
                yield Break(path, what, f"restore it with `dvc checkout --force {path}`, or {rebuild}.")
        yield from self._check_record(job)

    def _check_bytes(self, path: str, written: str, job: Job) -> str:
        """What is wrong with an output of a job, or '' if nothing is. ``written``: the md5 as the job wrote it."""
        current = self.hashes.of(path)[0]
        recorded = self.build.text_records.makers.get(path)
        if not current:
            return "the file is missing"
        if written != current:
            return f"these are not the bytes that {job.rule} wrote (md5 {written[:12]}; {_describe_digest(current)})"
        if recorded and recorded.outputs[path] != current:
            digest = recorded.outputs[path][:12]
            return f"these are not the bytes in {self.text} (md5 {digest}; {_describe_digest(current)})"
        return ""

    def _check_record(self, job: Job) -> Iterator[Break]:
        """The record of a job in ``.snakemake``, which Snakemake reads, if it is not the one in the text."""
        local, recorded = self.build.job_records.get(job.key), self.build.text_records.jobs.get(job.key)
        if local and recorded and local.outputs == recorded.outputs and local != recorded:
            yield Break(record_path(job.key), f"this record of {job.key} is not the one in {self.text}",
                        "remove it: Snakemake takes the one in the text at its next start. If the job ran since, "
                        "`snakemake all` records it.")  # fmt: skip

    def _check_code(self, job: Job) -> Iterator[str]:
        if not job.code:
            return
        closure = self.history.closure(job)
        changed = [source for source, was in closure.items() if was != self._fingerprint(source)]
        if changed:
            yield f"its code changed: {', '.join(changed)}"
        elif not closure:
            yield f"its code changed: {job.code} is not the list of source files that ran"

    def _fingerprint(self, source: str) -> str:
        try:
            return fingerprint_source((self.hashes.root / source).read_text(encoding="utf-8"))
        except (OSError, SyntaxError):
            return ""

    def _check_params(self, job: Job) -> Iterator[str]:
        try:
            now: Mapping[str, Any] = self.parameters.slice(tuple(job.params))
        except ParameterError as error:
            yield f"{error}".rstrip(".")
            return
        changed = list_changes(job.params, now)
        if changed:
            yield f"its parameters changed: {', '.join(map(str, changed))}"


def _describe_digest(digest: str) -> str:
    return f"now {digest[:12]}" if digest else "it is missing"
