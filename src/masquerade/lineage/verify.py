"""Computes every hash of a build again, from raw data to tables, and compares it with the records.

A link is a job. Its code, parameters and inputs must be the recorded ones. Its outputs must have the recorded bytes,
which are also the bytes in dvc.lock. A link that is broken only because an earlier link is broken is not reported.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from masquerade.core.errors import ParameterError
from masquerade.core.fingerprints import fingerprint_of
from masquerade.lineage import provenance, stage_files
from masquerade.lineage.difference import changes
from masquerade.lineage.history import History, Job, LineageError
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
        self.root, self._known = root, {}

    def of(self, path: str) -> tuple[str, str]:
        """(md5, sha256), or ('', '') if the file is missing."""
        if path not in self._known:
            self._known[path] = self._read(self.root / path)
        return self._known[path]

    def __len__(self) -> int:
        return sum(1 for md5, _ in self._known.values() if md5)

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
    history, parameters = History(root), loading.load(root)
    declared = _declared(root)
    jobs = {job.key: job for path in declared if (job := history.maker(path))}
    if not jobs:
        raise LineageError(f"There is no build of scale {parameters.scale}. Run `snakemake all` or `dvc pull`.")
    needs = {
        job.key: {m.key for path in job.inputs if (m := history.maker(path))} & jobs.keys() for job in jobs.values()
    }
    locked, notes = _locked(root)
    checker = _Checker(parameters, Hashes(root), locked, declared)
    breaks: list[Break] = [
        Break(path, "it has no record of the job that made it", f"run `dvc checkout`, or make it: `snakemake {path}`.")
        for path in declared
        if history.maker(path) is None
    ]
    for key in TopologicalSorter({key: sorted(needs[key]) for key in sorted(needs)}).static_order():
        breaks += checker.check(jobs[key])
    dependent = _dependent(jobs, needs)
    breaks = [Break(b.path, b.what, b.todo, dependent.get(b.path, ())) for b in breaks]
    return Verdict(tuple(breaks), len(jobs), len(checker.hashes), tuple(notes))


def _declared(root: Path) -> dict[str, str]:
    """Every file that a job of the graph writes -> the hash of the job's rule. Read from dvc.yaml."""
    if not (root / stage_files.DVC_YAML).is_file():
        raise LineageError(f"{stage_files.DVC_YAML} is missing. Run this in the repository, or give --root.")
    rules = {}
    for stage in stage_files.read(stage_files.DVC_YAML, root).values():
        rule = re.search(r"# rule (\w+)$", stage["cmd"])
        outs = (next(iter(out)) if isinstance(out, dict) else out for out in stage["outs"])
        rules |= {path: rule[1] for path in outs if rule and not path.startswith(".")}
    return rules


def _locked(root: Path) -> tuple[dict[str, str], list[str]]:
    """(path -> md5 of every file that DVC recorded, notes on that record for the user)."""
    if not (root / stage_files.LOCK).is_file():
        return {}, [f"{stage_files.LOCK} is missing: the hashes are compared with the records of the jobs only."]
    stages = stage_files.read(stage_files.LOCK, root)
    return {out["path"]: out["md5"] for stage in stages.values() for out in stage.get("outs", ())}, []


def _dependent(jobs: Mapping[str, Job], needs: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """File -> every file of a job that depends on it, directly or through other jobs."""
    users: dict[str, set[str]] = {key: set() for key in jobs}
    for key, sources in needs.items():
        for source in sources:
            users[source].add(key)

    @cache
    def after(key: str) -> frozenset[str]:
        return frozenset(users[key]).union(*map(after, users[key]))

    files = {key: tuple(sorted(path for k in after(key) for path in jobs[k].outputs)) for key in jobs}
    return {path: files[key] for key, job in jobs.items() for path in job.outputs}


class _Checker:
    def __init__(self, parameters: params.Parameters, hashes: Hashes, locked: Mapping[str, str],
                 declared: Mapping[str, str]):  # fmt: skip
        self.parameters, self.hashes, self.locked, self.declared = parameters, hashes, locked, declared
        self.reported: set[str] = set()
        self._fingerprints: dict[str, str] = {}
        self._closures: dict[str, list[str]] = {}

    def check(self, job: Job) -> Iterator[Break]:
        """The broken links of one job. The jobs that it depends on must have been checked before."""
        rebuild = f"`snakemake --force {job.key}` makes it again"
        for what in (*self._code(job), *self._rule(job), *self._params(job)):
            yield Break(
                job.key, f"it is out of date: {what}", f"{rebuild}; `snakemake all` then rebuilds what depends on it."
            )
        for path, sha256 in job.inputs.items():
            current = self.hashes.of(path)[1]
            if current != sha256 and path not in self.reported:
                self.reported.add(path)
                yield Break(path, f"{job.key} was made from other bytes (sha256 {sha256[:12]}; {_now(current)})",
                            f"restore them with `dvc checkout {path}`, or run `snakemake all`.")  # fmt: skip
        records = dict.fromkeys((*map(record_path, job.outputs), provenance.path_of(job.key).as_posix()))
        for path, written in (*job.outputs.items(), *dict.fromkeys(records, None).items()):
            what = self._bytes(path, written, job)
            if what and path not in self.reported:
                self.reported.add(path)
                yield Break(path, what, f"restore it with `dvc checkout {path}`, or {rebuild}.")

    def _bytes(self, path: str, written: str | None, job: Job) -> str:
        """What is wrong with an output or a record of a job, or '' if nothing is.

        ``written``: the md5 of the output as the job wrote it, '' if the job recorded none. None: the file is a record.
        """
        current = self.hashes.of(path)[0]
        if not current:
            return "the file is missing" if written is not None else f"this record of {job.key} is missing"
        if written and written != current:
            return f"these are not the bytes that {job.rule} wrote (md5 {written[:12]}; {_now(current)})"
        if self.locked.get(path, current) != current:
            what = "these are not the bytes" if written is not None else f"this record of {job.key} is not the one"
            return f"{what} in dvc.lock (md5 {self.locked[path][:12]}; {_now(current)})"
        return ""

    def _code(self, job: Job) -> Iterator[str]:
        if not job.code:
            return
        changed = self._edited(job.code)
        if changed:
            yield f"its code changed: {', '.join(changed)}"
        elif self.hashes.of(job.code)[1] != job.code_sha256:
            yield f"its code changed: {job.code} is not the closure that ran"

    def _edited(self, code: str) -> list[str]:
        """The source files of a closure whose fingerprints changed since planning wrote them."""
        if code not in self._closures:
            known = _fingerprints(self.hashes.root / code)
            self._closures[code] = [source for source, was in known.items() if was != self._fingerprint(source)]
        return self._closures[code]

    def _fingerprint(self, source: str) -> str:
        if source not in self._fingerprints:
            try:
                self._fingerprints[source] = fingerprint_of((self.hashes.root / source).read_text(encoding="utf-8"))
            except (OSError, SyntaxError):
                self._fingerprints[source] = ""
        return self._fingerprints[source]

    def _rule(self, job: Job) -> Iterator[str]:
        known = self.declared.get(job.key)
        if known and known != hashlib.sha256(job.template.encode()).hexdigest()[:8]:
            yield f"the command of rule {job.rule} changed"

    def _params(self, job: Job) -> Iterator[str]:
        try:
            now: Mapping[str, Any] = self.parameters.slice(tuple(job.params))
        except ParameterError as error:
            yield f"{error}".rstrip(".")
            return
        changed = changes(job.params, now)
        if changed:
            yield f"its parameters changed: {', '.join(map(str, changed))}"


def _now(digest: str) -> str:
    return f"now {digest[:12]}" if digest else "it is missing"


def _fingerprints(code: Path) -> dict[str, str]:
    """Source file -> its fingerprint, as planning wrote them."""
    try:
        return json.loads(code.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
