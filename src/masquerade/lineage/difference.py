"""Why a number differs between two commits: the parameter, code, data or environment that changed.

The records of each commit are followed from the cell to raw data. A job is a cause if its own parameters, rule, code or
raw files differ. It is no cause if it differs only because an earlier job differs::

    Cause(job="checkpoints/mini/methods/falco/0.safetensors", kind="parameter",
          what="methods.falco.params.steps: 50 -> 60", effect=True)
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from masquerade.lineage.address import ResolvedAddress, resolve
from masquerade.lineage.history import History, Job


@dataclass(frozen=True)
class Change:
    """One value that changed. None: the key is absent."""

    key: str
    old: Any
    new: Any

    def __str__(self) -> str:
        old, new = (
            "absent" if value is None else json.dumps(value, ensure_ascii=False) for value in (self.old, self.new)
        )
        return f"{self.key}: {old} -> {new}"


@dataclass(frozen=True)
class Cause:
    """One change in one job.

    ``kind``: parameter, rule, code, data, environment, chance or job. ``effect``: whether the job wrote other bytes.
    """

    job: str
    """The first file that the job wrote."""
    kind: str
    what: str
    effect: bool


@dataclass(frozen=True)
class Difference:
    """The result of `compare`. ``values``: (title, old value, new value) of every cell, '' for no value."""

    address: str
    old: str
    new: str
    values: tuple[tuple[str, str, str], ...]
    causes: tuple[Cause, ...]


def list_changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[Change]:
    """Every leaf in which two trees differ, by its dotted key."""
    differing: list[Change] = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            differing += list_changes(before, after, f"{prefix}{key}.")
        elif before != after or (key in old) != (key in new):
            differing.append(Change(f"{prefix}{key}", before, after))
    return differing


def compare(old: History, new: History, address: str) -> Difference:
    """Why ``address`` differs between two builds. Raises LineageError if one of them does not have it."""
    before, after = resolve(address, old), resolve(address, new)
    causes: list[Cause] = []
    if old.scale != new.scale:  # all paths differ, too
        causes.append(Cause("params.yaml", "parameter", str(Change("scale", old.scale, new.scale)), True))
    else:
        old_jobs, new_jobs = _list_jobs_behind(old, before), _list_jobs_behind(new, after)
        for key in dict.fromkeys((*new_jobs, *old_jobs)):
            if key in old_jobs and key in new_jobs:
                causes += _find_causes((old, old_jobs[key]), (new, new_jobs[key]))
            else:
                causes.append(Cause(key, "job", "is new" if key in new_jobs else "is gone", True))
    old_values, new_values = ({cell.title: cell.value for cell in target.cells if cell.title != address}
                              for target in (before, after))  # fmt: skip
    titles = dict.fromkeys((*old_values, *new_values))
    values = tuple((title, old_values.get(title, ""), new_values.get(title, "")) for title in titles)
    return Difference(address, str(old), str(new), values, tuple(causes))


def _list_jobs_behind(build: History, target: ResolvedAddress) -> dict[str, Job]:
    """Key -> every job behind ``target``, each after the jobs that it was made from."""
    ordered: dict[str, Job | None] = {}

    def visit(path: str) -> None:
        job = build.find_job(path)
        if job is None or job.key in ordered:
            return
        ordered[job.key] = None  # entered
        for earlier in job.inputs:
            if path != target.file or target.depends(earlier, build.scale):
                visit(earlier)
        del ordered[job.key]
        ordered[job.key] = job

    visit(target.file)
    return {key: job for key, job in ordered.items() if job}


def _find_causes(old: tuple[History, Job], new: tuple[History, Job]) -> Iterator[Cause]:
    """What changed in one job itself, and in its circumstances if it wrote other bytes."""
    jobs = old[1], new[1]
    before, after = jobs
    effect, found = before.outputs != after.outputs, False
    closures = [build.closure(job) for build, job in (old, new)]
    if not all(closures):  # one of the lists of source files is not known
        closures = [{job.code: job.code_sha256} for job in jobs]
    trees = {
        "parameter": [job.params for job in jobs],
        "rule": [{"the command of the rule": job.template} for job in jobs],
        "code": closures,
        "data": [_list_raw_files(build, job) for build, job in (old, new)],
        "environment": [_list_circumstances(job) if effect else {} for job in jobs],
    }
    for kind, (one, other) in trees.items():
        changes = list_changes(one, other)
        if kind == "environment":  # a job that did not load torch did not record the kernels
            changes = [change for change in changes if change.key != "machine.kernels" or (change.old and change.new)]
        for change in changes:
            found = True
            yield Cause(before.key, kind, str(change) if kind in ("parameter", "environment") else change.key, effect)
    if effect and not found and before.inputs == after.inputs:
        what = "other bytes from the same code, parameters and inputs; the circumstances are the same"
        yield Cause(before.key, "chance", what, True)


def _list_raw_files(build: History, job: Job) -> dict[str, str]:
    """The hashes of the files that no job made; '' for the others, of which only the presence is a cause."""
    return {path: "" if build.find_job(path) else sha256 for path, sha256 in job.inputs.items()}


def _list_circumstances(job: Job) -> dict[str, Any]:
    environment = job.circumstances["environment"]
    return {"Python": environment["python"], **environment["packages"], "machine": job.circumstances["machine"]}
