"""Why a number differs between two commits: the parameter, code, data or environment that changed.

The dvc.lock of each commit is followed from the cell to raw data. A stage is a cause if its own parameters, rule, code
or raw files differ. It is no cause if it differs only because an earlier stage differs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from masquerade.lineage import provenance
from masquerade.lineage.address import ResolvedAddress, resolve
from masquerade.lineage.history import LineageError
from masquerade.lineage.revision import Revision, is_code, is_slice


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
    """One change in one stage.

    ``kind``: parameter, code, rule, data, input, environment, chance or stage. ``effect``: whether the stage wrote
    other bytes.
    """

    stage: str
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


def changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[Change]:
    """Every leaf in which two trees differ, by its dotted key."""
    differing: list[Change] = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            differing += changes(before, after, f"{prefix}{key}.")
        elif before != after or (key in old) != (key in new):
            differing.append(Change(f"{prefix}{key}", before, after))
    return differing


def compare(old: Revision, new: Revision, address: str) -> Difference:
    """Why ``address`` differs between two revisions. Raises LineageError if it is in neither of them."""
    resolved = {revision: _resolved(revision, address) for revision in (old, new)}
    if not any(resolved.values()):
        resolve(address, new.scale, new.made, new.read)  # raises an error that lists the known names
    causes: list[Cause] = []
    if old.scale != new.scale:
        causes.append(Cause("params.yaml", "parameter", str(Change("scale", old.scale, new.scale)), True))
    behind = {revision: _behind(revision, resolved[revision]) for revision in (old, new)}
    for stage in dict.fromkeys((*behind[new], *behind[old])):
        if stage in behind[old] and stage in behind[new]:
            causes += _causes(stage, old, new)
        elif old.scale == new.scale:
            causes.append(Cause(stage, "stage", "is new" if stage in behind[new] else "is gone", True))
    md5s = {revision.md5s.get(target.file) if target else None for revision, target in resolved.items()}
    return Difference(address, str(old), str(new), _values(resolved[old], resolved[new]), len(md5s) == 1, tuple(causes))


def _resolved(revision: Revision, address: str) -> ResolvedAddress | None:
    try:
        return resolve(address, revision.scale, revision.made, revision.read)
    except LineageError:
        return None


def _values(old: ResolvedAddress | None, new: ResolvedAddress | None) -> tuple[tuple[str, str, str], ...]:
    before, after = ({cell.title: cell.value for cell in target.cells} if target else {} for target in (old, new))
    return tuple((title, before.get(title, ""), after.get(title, "")) for title in dict.fromkeys((*before, *after)))


def _behind(revision: Revision, target: ResolvedAddress | None) -> list[str]:
    """Every stage behind ``target``, each after the stages that it was made from."""
    ordered: dict[str, None] = {}

    def visit(stage: str) -> None:
        if stage in entered:
            return
        entered.add(stage)
        for dep in revision.stages[stage].get("deps", ()):
            path = dep["path"]
            matters = stage != first or (target is not None and target.depends(path, revision.scale))
            if matters and path in revision.made and not (is_code(path) or is_slice(path)):
                visit(revision.made[path])
        ordered[stage] = None

    entered: set[str] = set()
    first = revision.made[target.file] if target else None
    if first:
        visit(first)
    return list(ordered)


def _causes(stage: str, old: Revision, new: Revision) -> Iterator[Cause]:
    written = {revision: _hashes(revision, stage, "outs") for revision in (old, new)}
    effect = written[old] != written[new]
    read = {revision: _hashes(revision, stage, "deps") for revision in (old, new)}
    own = [Cause(stage, "parameter", what, effect) for what in _parameters(read[old], read[new], old, new)]
    if old.rule(stage) != new.rule(stage):
        own.append(Cause(stage, "rule", "the command of the rule changed", effect))
    for path in sorted(read[old].keys() | read[new].keys()):
        before, after = read[old].get(path), read[new].get(path)
        if before == after or is_slice(path):
            continue
        if is_code(path):
            own.append(Cause(stage, "code", ", ".join(_sources(path, old, new)), effect))
        elif before is None or after is None:
            own.append(Cause(stage, "input", f"{path} is {'no longer' if after is None else 'now'} read", effect))
        elif path not in old.made and path not in new.made:
            own.append(Cause(stage, "data", f"{path} has other bytes", effect))
    yield from own
    if effect:
        yield from _circumstances(stage, old, new, alone=not own and read[old] == read[new])


def _hashes(revision: Revision, stage: str, kind: str) -> dict[str, str]:
    """Path -> md5, without the records of jobs."""
    md5s = {item["path"]: item["md5"] for item in revision.stages[stage].get(kind, ())}
    return {path: md5 for path, md5 in md5s.items() if not path.startswith(".") or is_code(path) or is_slice(path)}


def _sources(path: str, old: Revision, new: Revision) -> list[str]:
    """The source files of a closure whose fingerprints differ.

    If only one commit's closure is known, its list of files is used for both.
    """
    kept = [json.loads(content) if (content := revision.content(path)) else None for revision in (old, new)]
    names = dict.fromkeys(name for closure in kept if closure for name in closure)
    before, after = (closure if closure is not None else {name: revision.fingerprint(name) for name in names}
                     for closure, revision in zip(kept, (old, new), strict=True))  # fmt: skip
    changed = [name for name in sorted(names) if before.get(name, "") != after.get(name, "")]
    return changed or [f"{path} (the file is not known; `dvc fetch --all-commits` fetches the lists)"]


def _parameters(read_before: Mapping[str, str], read_now: Mapping[str, str], old: Revision, new: Revision) -> list[str]:
    """The parameters that differ in the slices that a stage read. ``read_...``: path -> md5 of what it read.

    If the slices of only one commit are known, their keys are looked up in params.yaml and the overlay of both commits.
    """
    before, after = ({path: md5 for path, md5 in read.items() if is_slice(path)} for read in (read_before, read_now))
    if before == after:
        return []
    values = [_slice(before, old), _slice(after, new)]
    if None in values:
        keys = dict.fromkeys(key for known in values if known for key in known)
        values = [revision.parameters(keys) for revision in (old, new)]
        unknown = [f"{', '.join(after)} (the file is not known; `dvc fetch --all-commits` fetches the values)"]
    else:
        unknown = []
    return list(map(str, changes(values[0] or {}, values[1] or {}))) or unknown


def _slice(paths: Iterable[str], revision: Revision) -> dict[str, Any] | None:
    """The values in the slices at ``paths``, or None if there are none or DVC's cache lacks one."""
    contents = [revision.content(path) for path in paths]
    if not contents or None in contents:
        return None
    return {key: value for content in contents if content for key, value in json.loads(content).items()}


def _circumstances(stage: str, old: Revision, new: Revision, alone: bool) -> Iterator[Cause]:
    """Causes in the recorded circumstances of the jobs. ``alone``: nothing else explains the other bytes."""
    recorded: list[Any] = [_recorded_circumstances(revision, stage) for revision in (old, new)]
    differing: list[str] = []
    if all(recorded):
        environments = [job["environment"] for job in recorded]
        before, after = ({"Python": one["python"], **one["packages"]} for one in environments)
        differing += map(str, changes(before, after))
        old_machine, new_machine = _comparable(*(job["machine"] for job in recorded))
        differing += map(str, changes(old_machine, new_machine, "machine."))
    if differing:
        yield Cause(stage, "environment", ", ".join(differing), True)
    elif alone:
        why = "the circumstances are the same" if all(recorded) else "the circumstances of one job are missing"
        yield Cause(stage, "chance", f"other bytes from the same code, parameters and inputs; {why}", True)


def _comparable(*machines: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The machines without ``kernels`` if one of the jobs did not load torch, and so did not record it."""
    if all(machine["kernels"] for machine in machines):
        return list(machines)
    return [{key: value for key, value in machine.items() if key != "kernels"} for machine in machines]


def _recorded_circumstances(revision: Revision, stage: str) -> Mapping[str, Any] | None:
    folder = f"{provenance.FOLDER.as_posix()}/"
    paths = [out["path"] for out in revision.stages[stage].get("outs", ()) if out["path"].startswith(folder)]
    content = revision.content(paths[0]) if paths else None
    return json.loads(content) if content else None


def grouped(causes: Iterable[Cause]) -> list[tuple[str, str, list[str]]]:
    """(kind, what, stages): the same change in several stages is one entry."""
    groups: dict[tuple[str, str], list[str]] = {}
    for cause in causes:
        what = cause.what if cause.effect else f"{cause.what} (without effect)"
        groups.setdefault((cause.kind, what), []).append(cause.stage)
    return [(kind, what, stages) for (kind, what), stages in groups.items()]
