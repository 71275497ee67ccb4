"""Why a number is another one than at an earlier commit: the parameter, code, data or environment that changed.

Both commits' dvc.lock are followed from the cell to raw data. A stage whose own parameters, rule, code or raw files
differ is a cause; one that differs only because something before it differs is not.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from masquerade.lineage import provenance
from masquerade.lineage.address import Asked, resolve
from masquerade.lineage.history import LineageError
from masquerade.lineage.revision import Revision, is_code


@dataclass(frozen=True)
class Change:
    """One value that was another one; ``None`` stands for none at all."""

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
    """One thing that changed in one stage. ``kind``: parameter, code, rule, data, input, environment, chance or
    stage; ``effect``: whether the stage wrote other bytes."""

    stage: str
    kind: str
    what: str
    effect: bool


@dataclass(frozen=True)
class Difference:
    """What `compare` found; ``values``: (title, value then, value now) of every cell, '' where there is none."""

    address: str
    old: str
    new: str
    values: tuple[tuple[str, str, str], ...]
    same_bytes: bool
    causes: tuple[Cause, ...]


def changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[Change]:
    """Every leaf in which two trees differ, by its dotted key."""
    found: list[Change] = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += changes(before, after, f"{prefix}{key}.")
        elif before != after or (key in old) != (key in new):
            found.append(Change(f"{prefix}{key}", before, after))
    return found


def compare(old: Revision, new: Revision, address: str) -> Difference:
    """Why ``address`` differs between two revisions. Raises LineageError where neither of them knows it."""
    asked = {revision: _asked(revision, address) for revision in (old, new)}
    if not any(asked.values()):
        resolve(address, new.scale, new.made, new.read)  # says what there is
    causes: list[Cause] = []
    if old.scale != new.scale:
        causes.append(Cause("params.yaml", "parameter", str(Change("scale", old.scale, new.scale)), True))
    behind = {revision: _behind(revision, asked[revision]) for revision in (old, new)}
    for stage in dict.fromkeys((*behind[new], *behind[old])):
        if stage in behind[old] and stage in behind[new]:
            causes += _causes(stage, old, new)
        elif old.scale == new.scale:
            causes.append(Cause(stage, "stage", "is new" if stage in behind[new] else "is gone", True))
    files = {revision.md5s.get(found.file) if found else None for revision, found in asked.items()}
    return Difference(address, str(old), str(new), _values(asked[old], asked[new]), len(files) == 1, tuple(causes))


def _asked(revision: Revision, address: str) -> Asked | None:
    try:
        return resolve(address, revision.scale, revision.made, revision.read)
    except LineageError:
        return None


def _values(old: Asked | None, new: Asked | None) -> tuple[tuple[str, str, str], ...]:
    before, after = ({cell.title: cell.value for cell in asked.cells} if asked else {} for asked in (old, new))
    return tuple((title, before.get(title, ""), after.get(title, "")) for title in dict.fromkeys((*before, *after)))


def _behind(revision: Revision, asked: Asked | None) -> list[str]:
    """Every stage behind what is asked for, each after those that it was made from."""
    found: dict[str, None] = {}

    def visit(stage: str) -> None:
        if stage in entered:
            return
        entered.add(stage)
        for dep in revision.stages[stage].get("deps", ()):
            path = dep["path"]
            matters = stage != first or asked.depends(path, revision.scale)
            if matters and path in revision.made and not is_code(path):
                visit(revision.made[path])
        found[stage] = None

    entered: set[str] = set()
    first = revision.made[asked.file] if asked else None
    if first:
        visit(first)
    return list(found)


def _causes(stage: str, old: Revision, new: Revision) -> Iterator[Cause]:
    written = {revision: _hashes(revision, stage, "outs") for revision in (old, new)}
    effect = written[old] != written[new]
    read = {revision: _hashes(revision, stage, "deps") for revision in (old, new)}
    own = [Cause(stage, "parameter", str(found), effect)
           for found in changes(old.parameters(stage), new.parameters(stage))]  # fmt: skip
    if old.rule(stage) != new.rule(stage):
        own.append(Cause(stage, "rule", "the command of the rule changed", effect))
    for path in sorted(read[old].keys() | read[new].keys()):
        before, after = read[old].get(path), read[new].get(path)
        if before == after:
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
    """Path -> md5, the records of jobs left out."""
    found = {item["path"]: item["md5"] for item in revision.stages[stage].get(kind, ())}
    return {path: md5 for path, md5 in found.items() if not path.startswith(".") or is_code(path)}


def _sources(path: str, old: Revision, new: Revision) -> list[str]:
    """Which source files of a closure do something else; of a closure that only one commit kept, its own files."""
    kept = [json.loads(found) if (found := revision.content(path)) else None for revision in (old, new)]
    names = dict.fromkeys(name for closure in kept if closure for name in closure)
    before, after = (closure if closure is not None else {name: revision.fingerprint(name) for name in names}
                     for closure, revision in zip(kept, (old, new), strict=True))  # fmt: skip
    changed = [name for name in sorted(names) if before.get(name, "") != after.get(name, "")]
    return changed or [f"{path} (which file is not known here: `dvc fetch --all-commits`)"]


def _circumstances(stage: str, old: Revision, new: Revision, alone: bool) -> Iterator[Cause]:
    """What the jobs say of themselves; ``alone``: nothing else explains the other bytes."""
    told = [_told(revision, stage) for revision in (old, new)]
    found: list[str] = []
    if all(told):
        before, after = ({"Python": t["environment"]["python"], **t["environment"]["packages"]} for t in told)
        found += map(str, changes(before, after))
        found += map(str, changes(*(t["machine"] for t in told), "machine."))
    if found:
        yield Cause(stage, "environment", ", ".join(found), True)
    elif alone:
        why = "the circumstances are the same" if all(told) else "the circumstances of one are not here"
        yield Cause(stage, "chance", f"other bytes from the same code, parameters and inputs; {why}", True)


def _told(revision: Revision, stage: str) -> Mapping[str, Any] | None:
    folder = f"{provenance.FOLDER.as_posix()}/"
    paths = [out["path"] for out in revision.stages[stage].get("outs", ()) if out["path"].startswith(folder)]
    found = revision.content(paths[0]) if paths else None
    return json.loads(found) if found else None


def told(causes: Iterable[Cause]) -> list[tuple[str, str, list[str]]]:
    """(kind, what, stages) of causes: the same change of several stages is told once."""
    found: dict[tuple[str, str], list[str]] = {}
    for cause in causes:
        what = cause.what if cause.effect else f"{cause.what} (without effect)"
        found.setdefault((cause.kind, what), []).append(cause.stage)
    return [(kind, what, stages) for (kind, what), stages in found.items()]
