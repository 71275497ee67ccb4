"""Every hash of a build computed again, from raw data to tables, and compared with what its records say.

A link is a job: the code, parameters and inputs that it says it used must be those that are here, and its outputs the
bytes that it says it wrote, which are also those of dvc.lock. What is wrong only because something before it is wrong
is not told again.
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

import yaml

from masquerade import params
from masquerade.errors import ParameterError
from masquerade.lineage import provenance
from masquerade.lineage.difference import changes
from masquerade.lineage.fingerprints import fingerprint_of
from masquerade.lineage.history import History, Job, LineageError
from masquerade.versioning import DVC_YAML, record_of

LOCK = Path("dvc.lock")


@dataclass(frozen=True)
class Break:
    """One broken link: which file, what is wrong with it, what to do, and which files rest on it."""

    path: str
    what: str
    todo: str
    rests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What `verify` found: the broken links from raw data to tables, and how much was compared."""

    breaks: tuple[Break, ...]
    jobs: int
    files: int
    notes: tuple[str, ...]


class Hashes:
    """md5 and sha256 of files, each file read once."""

    def __init__(self, root: Path):
        self.root, self._known = root, {}

    def of(self, path: str) -> tuple[str, str]:
        """(md5, sha256), or ('', '') of a file that is not there."""
        if path not in self._known:
            self._known[path] = self._read(self.root / path)
        return self._known[path]

    def __len__(self) -> int:
        return sum(1 for found in self._known.values() if found[0])

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
    """Check the whole build of the scale that params.yaml names. Raises LineageError where nothing was built."""
    history, parameters = History(root), params.load(root)
    declared = _declared(root)
    jobs = {job.key: job for path in declared if (job := history.maker(path))}
    if not jobs:
        raise LineageError(f"Nothing of scale {parameters.scale} was built here: `snakemake all`, or `dvc pull`.")
    needs = {
        job.key: {m.key for path in job.inputs if (m := history.maker(path))} & jobs.keys() for job in jobs.values()
    }
    locked, notes = _locked(root)
    checker = _Checker(parameters, Hashes(root), locked, declared)
    breaks: list[Break] = [
        Break(path, "no record says how it was made", f"`dvc checkout`, or make it: `snakemake {path}`.")
        for path in declared
        if history.maker(path) is None
    ]
    for key in TopologicalSorter({key: sorted(needs[key]) for key in sorted(needs)}).static_order():
        breaks += checker.check(jobs[key])
    resting = _resting(jobs, needs)
    breaks = [Break(b.path, b.what, b.todo, resting.get(b.path, ())) for b in breaks]
    return Verdict(tuple(breaks), len(jobs), len(checker.hashes), tuple(notes))


def _declared(root: Path) -> dict[str, str]:
    """Every file that a job of the graph writes -> the hash of its rule, from dvc.yaml."""
    if not (root / DVC_YAML).is_file():
        raise LineageError(f"{DVC_YAML} is missing: run this in the repository, or give --root.")
    stages = yaml.load((root / DVC_YAML).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["stages"]
    found = {}
    for stage in stages.values():
        rule = re.search(r"# rule (\w+)$", stage["cmd"])
        outs = (next(iter(out)) if isinstance(out, dict) else out for out in stage["outs"])
        found |= {path: rule[1] for path in outs if rule and not path.startswith(".")}
    return found


def _locked(root: Path) -> tuple[dict[str, str], list[str]]:
    """Path -> md5 of every file that DVC recorded, and what a person must know of that record."""
    if not (root / LOCK).is_file():
        return {}, [f"{LOCK} is missing: hashes are compared with the records of the jobs alone."]
    stages = yaml.load((root / LOCK).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader).get("stages", {})
    return {out["path"]: out["md5"] for stage in stages.values() for out in stage.get("outs", ())}, []


def _resting(jobs: Mapping[str, Job], needs: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """File -> every file of a job that depends on it, directly or through others."""
    users: dict[str, set[str]] = {key: set() for key in jobs}
    for key, found in needs.items():
        for need in found:
            users[need].add(key)

    @cache
    def after(key: str) -> frozenset[str]:
        return frozenset(users[key]).union(*map(after, users[key]))

    files = {key: tuple(sorted(path for k in after(key) for path in jobs[k].outputs)) for key in jobs}
    return {path: files[key] for key, job in jobs.items() for path in job.outputs}


class _Checker:
    def __init__(self, parameters: params.Parameters, hashes: Hashes, locked: Mapping[str, str],
                 declared: Mapping[str, str]):  # fmt: skip
        self.parameters, self.hashes, self.locked, self.declared = parameters, hashes, locked, declared
        self.told: set[str] = set()
        self._fingerprints: dict[str, str] = {}
        self._closures: dict[str, list[str]] = {}

    def check(self, job: Job) -> Iterator[Break]:
        """The broken links of one job whose predecessors were checked before."""
        again = f"`snakemake --force {job.key}` makes it anew"
        for what in (*self._code(job), *self._rule(job), *self._params(job)):
            yield Break(
                job.key, f"{what}; it was made otherwise", f"{again}, and what rests on it with `snakemake all`."
            )
        for path, sha256 in job.inputs.items():
            found = self.hashes.of(path)[1]
            if found != sha256 and path not in self.told:
                self.told.add(path)
                yield Break(path, f"{job.key} was made from other bytes (sha256 {sha256[:12]}; {_now(found)})",
                            f"bring them back with `dvc checkout {path}`, or run `snakemake all`.")  # fmt: skip
        records = dict.fromkeys((*map(record_of, job.outputs), provenance.path_of(job.key).as_posix()))
        for path, told in (*job.outputs.items(), *dict.fromkeys(records, None).items()):
            what = self._bytes(path, told, job)
            if what and path not in self.told:
                self.told.add(path)
                yield Break(path, what, f"bring it back with `dvc checkout {path}`, or {again}.")

    def _bytes(self, path: str, told: str | None, job: Job) -> str:
        """What is wrong with a file that a job wrote, or that tells of the job.

        ``told``: its md5 by the job, '' where the job left no word, None of a file that tells.
        """
        found = self.hashes.of(path)[0]
        if not found:
            return "the file is missing" if told is not None else f"this record of {job.key} is missing"
        if told and told != found:
            return f"these are not the bytes that {job.rule} wrote (md5 {told[:12]}; {_now(found)})"
        if self.locked.get(path, found) != found:
            what = "these are not the bytes" if told is not None else f"this record of {job.key} is not the one"
            return f"{what} that dvc.lock names (md5 {self.locked[path][:12]}; {_now(found)})"
        return ""

    def _code(self, job: Job) -> Iterator[str]:
        if not job.code:
            return
        changed = self._edited(job.code)
        if changed:
            yield f"its code changed since: {', '.join(changed)}"
        elif self.hashes.of(job.code)[1] != job.code_sha256:
            yield f"its code changed since: {job.code} is not the closure that ran"

    def _edited(self, code: str) -> list[str]:
        """The source files of a closure that do something else than when the fingerprints were written."""
        if code not in self._closures:
            known = _fingerprints(self.hashes.root / code)
            self._closures[code] = [source for source, found in known.items() if found != self._fingerprint(source)]
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
            yield f"the command of rule {job.rule} changed since"

    def _params(self, job: Job) -> Iterator[str]:
        try:
            now: Mapping[str, Any] = self.parameters.slice(tuple(job.params))
        except ParameterError as error:
            yield f"{error}".rstrip(".")
            return
        found = changes(job.params, now)
        if found:
            yield f"its parameters changed since: {', '.join(map(str, found))}"


def _now(found: str) -> str:
    return f"now {found[:12]}" if found else "it is missing"


def _fingerprints(code: Path) -> dict[str, str]:
    """Source file -> its fingerprint, as planning wrote them."""
    try:
        return json.loads(code.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
