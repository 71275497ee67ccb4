"""Why a number differs between two commits: the parameter, code, data or environment that changed.

The records of each commit are followed from the cell to raw data. A job is a cause if its own parameters, rule, code or
raw files differ. It is no cause if it differs only because an earlier job differs::

    Cause(job="checkpoints/mini/methods/falco/0.safetensors", kind="parameter",
          what="methods.falco.params.steps: 50 -> 60", effect=True)
"""

import json
from collections.abc import Callable, Iterable, Mapping
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

    ``kind``: parameter, code, rule, data, input, environment, chance or job. ``effect``: whether the job wrote other
    bytes.
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
    same_bytes: bool
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
    if old.scale != new.scale:
        causes.append(Cause("params.yaml", "parameter", str(Change("scale", old.scale, new.scale)), True))
    old_jobs, new_jobs = _list_jobs_behind(old, before), _list_jobs_behind(new, after)
    for key in dict.fromkeys((*new_jobs, *old_jobs)):
        if key in old_jobs and key in new_jobs:
            causes += _find_causes(key, (old, old_jobs[key]), (new, new_jobs[key]))
        elif old.scale == new.scale:
            causes.append(Cause(key, "job", "is new" if key in new_jobs else "is gone", True))
    values = _pair_values(before, after)
    return Difference(
        address, str(old), str(new), values, _find_md5(old, before) == _find_md5(new, after), tuple(causes)
    )


def _find_md5(build: History, target: ResolvedAddress) -> str:
    job = build.find_job(target.file)
    return job.outputs[target.file] if job else ""


def _pair_values(old: ResolvedAddress, new: ResolvedAddress) -> tuple[tuple[str, str, str], ...]:
    before, after = ({cell.title: cell.value for cell in target.cells if cell.title != target.address}
                     for target in (old, new))  # fmt: skip
    return tuple((title, before.get(title, ""), after.get(title, "")) for title in dict.fromkeys((*before, *after)))


def _list_jobs_behind(build: History, target: ResolvedAddress) -> dict[str, Job]:
    """Key -> every job behind ``target``, each after the jobs that it was made from."""
    ordered: dict[str, Job] = {}
    entered: set[str] = set()

    def visit(job: Job, reads: Callable[[str], bool]) -> None:
        entered.add(job.key)
        for path in filter(reads, job.inputs):
            earlier = build.find_job(path)
            if earlier and earlier.key not in entered:
                visit(earlier, lambda _: True)
        ordered[job.key] = job

    if last := build.find_job(target.file):
        visit(last, lambda path: target.depends(path, build.scale))
    return ordered


def _find_causes(key: str, old: tuple[History, Job], new: tuple[History, Job]) -> list[Cause]:
    """What changed in the job ``key`` itself, and in its circumstances if it wrote other bytes."""
    before, after = old[1], new[1]
    effect = before.outputs != after.outputs
    causes = [Cause(key, "parameter", str(change), effect) for change in list_changes(before.params, after.params)]
    if before.template != after.template:
        causes.append(Cause(key, "rule", "the command of the rule changed", effect))
    if before.code_sha256 != after.code_sha256:
        causes.append(Cause(key, "code", _list_changed_sources(old, new), effect))
    for path in sorted(before.inputs.keys() | after.inputs.keys()):
        if path not in before.inputs or path not in after.inputs:
            reads = "now" if path in after.inputs else "no longer"
            causes.append(Cause(key, "input", f"{path} is {reads} read", effect))
        elif before.inputs[path] != after.inputs[path] and not any(build.find_job(path) for build, _ in (old, new)):
            causes.append(Cause(key, "data", f"{path} has other bytes", effect))
    if not effect:
        return causes
    if changes := _compare_circumstances(before.circumstances, after.circumstances):
        causes.append(Cause(key, "environment", ", ".join(map(str, changes)), True))
    elif not causes and before.inputs == after.inputs:
        what = "other bytes from the same code, parameters and inputs; the circumstances are the same"
        causes.append(Cause(key, "chance", what, True))
    return causes


def _list_changed_sources(old: tuple[History, Job], new: tuple[History, Job]) -> str:
    """The source files whose fingerprints differ."""
    before, after = (build.closure(job) for build, job in (old, new))
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return ", ".join(names) if before and after else f"{new[1].code} (one of the lists of source files is not known)"


def _compare_circumstances(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Other versions of Python and of packages, and another machine."""
    before, after = ({"Python": one["environment"]["python"], **one["environment"]["packages"]} for one in (old, new))
    machine = list_changes(old["machine"], new["machine"], "machine.")
    # a job that did not load torch did not record the kernels
    machine = [change for change in machine if change.key != "machine.kernels" or (change.old and change.new)]
    return [*list_changes(before, after), *machine]


def group_causes(causes: Iterable[Cause]) -> list[tuple[str, str, list[str]]]:
    """(kind, what, jobs): the same change in several jobs is one entry."""
    groups: dict[tuple[str, str], list[str]] = {}
    for cause in causes:
        what = cause.what if cause.effect else f"{cause.what} (without effect)"
        groups.setdefault((cause.kind, what), []).append(cause.job)
    return [(kind, what, jobs) for (kind, what), jobs in groups.items()]
