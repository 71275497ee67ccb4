"""Why a number differs between two commits: the parameter, code, data or environment that changed.

The records of each commit are followed from the cell to raw data. A job is a cause if its own parameters, rule, code or
raw files differ. It is no cause if it differs only because an earlier job differs::

    Cause(job="checkpoints/mini/methods/falco/0.safetensors", kind="parameter",
          what="methods.falco.params.steps: 50 -> 60", effect=True)
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from masquerade.lineage.address import ResolvedAddress, resolve
from masquerade.lineage.history import History, Job, LineageError


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
    """Why ``address`` differs between two builds. Raises LineageError if it is in neither of them."""
    resolved = {build: _resolved(build, address) for build in (old, new)}
    if not any(resolved.values()):
        resolve(address, new)  # raises an error that lists the known names
    causes: list[Cause] = []
    if old.scale != new.scale:
        causes.append(Cause("params.yaml", "parameter", str(Change("scale", old.scale, new.scale)), True))
    behind = {build: _behind(build, resolved[build]) for build in (old, new)}
    for key in dict.fromkeys((*behind[new], *behind[old])):
        before, after = behind[old].get(key), behind[new].get(key)
        if before and after:
            causes += _causes(key, (old, before), (new, after))
        elif old.scale == new.scale:
            causes.append(Cause(key, "job", "is new" if after else "is gone", True))
    md5s = [_md5(build, resolved[build]) for build in (old, new)]
    return Difference(
        address, str(old), str(new), _values(resolved[old], resolved[new]), md5s[0] == md5s[1], tuple(causes)
    )


def _resolved(build: History, address: str) -> ResolvedAddress | None:
    try:
        return resolve(address, build)
    except LineageError:
        return None


def _md5(build: History, target: ResolvedAddress | None) -> str:
    job = build.find_job(target.file) if target else None
    return job.outputs[target.file] if job and target else ""


def _values(old: ResolvedAddress | None, new: ResolvedAddress | None) -> tuple[tuple[str, str, str], ...]:
    before, after = ({cell.title: cell.value for cell in target.cells if cell.title != target.address} if target else {}
                     for target in (old, new))  # fmt: skip
    return tuple((title, before.get(title, ""), after.get(title, "")) for title in dict.fromkeys((*before, *after)))


def _behind(build: History, target: ResolvedAddress | None) -> dict[str, Job]:
    """Key -> every job behind ``target``, each after the jobs that it was made from."""
    ordered: dict[str, Job] = {}
    entered: set[str] = set()

    def visit(job: Job, reads: Callable[[str], bool]) -> None:
        entered.add(job.key)
        for path in filter(reads, job.inputs):
            maker = build.find_job(path)
            if maker and maker.key not in entered:
                visit(maker, lambda _: True)
        ordered[job.key] = job

    if target and (last := build.find_job(target.file)):
        visit(last, lambda path: target.depends(path, build.scale))
    return ordered


def _causes(key: str, old: tuple[History, Job], new: tuple[History, Job]) -> Iterator[Cause]:
    before, after = old[1], new[1]
    effect = before.outputs != after.outputs
    own = [Cause(key, "parameter", str(change), effect) for change in list_changes(before.params, after.params)]
    if before.template != after.template:
        own.append(Cause(key, "rule", "the command of the rule changed", effect))
    if before.code_sha256 != after.code_sha256:
        own.append(Cause(key, "code", _sources(old, new), effect))
    for path in sorted(before.inputs.keys() | after.inputs.keys()):
        if path not in before.inputs or path not in after.inputs:
            own.append(Cause(key, "input", f"{path} is {'now' if path in after.inputs else 'no longer'} read", effect))
        elif before.inputs[path] != after.inputs[path] and not any(build.find_job(path) for build, _ in (old, new)):
            own.append(Cause(key, "data", f"{path} has other bytes", effect))
    yield from own
    if effect:
        yield from _circumstances(key, before, after, alone=not own and before.inputs == after.inputs)


def _sources(old: tuple[History, Job], new: tuple[History, Job]) -> str:
    """The source files whose fingerprints differ."""
    before, after = (build.closure(job) for build, job in (old, new))
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return ", ".join(names) if before and after else f"{new[1].code} (one of the lists of source files is not known)"


def _circumstances(key: str, old: Job, new: Job, alone: bool) -> Iterator[Cause]:
    """Causes in the recorded circumstances of the jobs. ``alone``: nothing else explains the other bytes."""
    environments = [job.circumstances["environment"] for job in (old, new)]
    before, after = ({"Python": one["python"], **one["packages"]} for one in environments)
    old_machine, new_machine = _comparable(*(job.circumstances["machine"] for job in (old, new)))
    differing = [*list_changes(before, after), *list_changes(old_machine, new_machine, "machine.")]
    if differing:
        yield Cause(key, "environment", ", ".join(map(str, differing)), True)
    elif alone:
        what = "other bytes from the same code, parameters and inputs; the circumstances are the same"
        yield Cause(key, "chance", what, True)


def _comparable(*machines: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The machines without ``kernels`` if one of the jobs did not load torch, and so did not record it."""
    if all(machine["kernels"] for machine in machines):
        return list(machines)
    return [{key: value for key, value in machine.items() if key != "kernels"} for machine in machines]


def group_causes(causes: Iterable[Cause]) -> list[tuple[str, str, list[str]]]:
    """(kind, what, jobs): the same change in several jobs is one entry."""
    groups: dict[tuple[str, str], list[str]] = {}
    for cause in causes:
        what = cause.what if cause.effect else f"{cause.what} (without effect)"
        groups.setdefault((cause.kind, what), []).append(cause.job)
    return [(kind, what, jobs) for (kind, what), jobs in groups.items()]
