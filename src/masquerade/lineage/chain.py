"""The chain behind a number: from the table's cell, job by job, to raw data; for people and for machines."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from masquerade.lineage.address import Asked
from masquerade.lineage.history import History, Job

BUILT = ("data/", "checkpoints/", "results/")
"""Folders that only jobs write: a file there that no record explains is no raw source."""
CROWD = 4
"""More raw files than these in one folder are one link."""


@dataclass(frozen=True)
class Link:
    """One job of a chain, or (``job`` None) raw files that no job here made."""

    number: int
    name: str
    job: Job | None
    files: Mapping[str, str]
    """Path -> its hash, ``md5:...`` of what was written or ``sha256:...`` of what was read; '' where unknown."""
    made_from: tuple[int, ...] = ()
    raw: str = ""
    """What kind of raw data ends the chain here; '' for a link in its middle."""


def follow(history: History, scale: str, asked: Asked) -> list[Link]:
    """Every link behind ``asked``, consumers before what they were made from, numbered from 1.

    The fingerprints of code are no links but facts of a job; so is the environment.
    """
    nodes: dict[str, Link] = {}
    needs: dict[str, list[str]] = {}
    waiting = [asked.file]
    while waiting:
        path = waiting.pop()
        job = history.maker(path)
        if job is None or job.key in nodes:
            continue
        nodes[job.key] = Link(0, job.rule, job, _written(job), raw="drawn by the code" if job.drawn else "")
        read = [p for p in job.inputs if path != asked.file or asked.depends(p, scale)]
        made = {history.maker(p).key for p in read if history.maker(p)}
        raw = _raw({p: job.inputs[p] for p in read if history.maker(p) is None})
        nodes |= raw
        needs[job.key] = [*raw, *sorted(made, key=lambda key, job=job: (_shared(key, job.key), key))]
        waiting += made
    order = _ordered(needs, history.maker(asked.file).key)
    numbers = {key: number for number, key in enumerate(order, 1)}
    return [
        replace(nodes[key], number=numbers[key], made_from=tuple(sorted(numbers[need] for need in needs.get(key, ()))))
        for key in order
    ]


def _shared(path: str, other: str) -> int:
    """How many last parts two paths share: a cell's own measurements are closer to its metrics than the source's."""
    pairs = zip(*(reversed(PurePosixPath(one).with_suffix("").parts) for one in (path, other)), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _written(job: Job) -> dict[str, str]:
    return {path: f"md5:{md5}" if md5 else "" for path, md5 in job.outputs.items()}


def _raw(read: Mapping[str, str]) -> dict[str, Link]:
    """Links of the files that a job read and no job here made; many files of one folder are one."""
    folders: dict[str, dict[str, str]] = {}
    for path, sha in read.items():
        folders.setdefault(str(PurePosixPath(path).parent), {})[path] = f"sha256:{sha}" if sha else ""
    links = {}
    for folder, files in folders.items():
        if len(files) > CROWD:
            together = hashlib.sha256("".join(f"{path} {sha}\n" for path, sha in files.items()).encode()).hexdigest()
            name = f"{folder}/ ({len(files)} files)"
            links[name] = Link(0, "files", None, {name: f"sha256:{together}"}, raw="files from outside")
        else:
            links |= {path: Link(0, "file", None, {path: sha}, raw=_kind(path)) for path, sha in files.items()}
    return links


def _kind(path: str) -> str:
    if path.startswith(BUILT):
        return "of unknown origin: no record tells how it was made"
    return "declared in the repository" if path.startswith("reference/") else "a file from outside"


def _ordered(needs: Mapping[str, Iterable[str]], first: str) -> list[str]:
    """Every key, each behind all that need it; the last of what a link needs, the main line, comes first."""
    needed = Counter(need for found in needs.values() for need in found)
    ready, order = [first], []
    while ready:
        key = ready.pop()
        order.append(key)
        for need in needs.get(key, ()):
            needed[need] -= 1
            if not needed[need]:
                ready.append(need)
    return order


def tree(asked: Asked, scale: str, links: Iterable[Link], runs: Mapping[str, str]) -> dict[str, Any]:
    """The chain as JSON. ``runs``: the MLflow run of each job's record, where the store knows it."""
    links = list(links)
    told = [link.job.told for link in links if link.job]
    environments = {t["environment"]["sha256"]: t["environment"] for t in told if "environment" in t}
    return {
        "address": asked.address,
        "scale": scale,
        "file": asked.file,
        "cells": [
            {"item": cell.item, "title": cell.title, "value": cell.value, **cell.facts,
             "of": [dict(zip(("dataset", "method", "variant"), place, strict=True)) for place in cell.cells]}
            for cell in asked.cells
        ],
        "links": [_plain(link, runs) for link in links],
        "environments": environments,
    }  # fmt: skip


def _plain(link: Link, runs: Mapping[str, str]) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "number": link.number, "name": link.name, "files": dict(link.files), "made_from": list(link.made_from),
        "raw": link.raw,
    }  # fmt: skip
    job = link.job
    if job is None:
        return plain
    told = job.told
    return plain | {
        "about": job.words,
        "read": {path: f"sha256:{sha}" if sha else "" for path, sha in job.inputs.items()},
        "code": {"file": job.code, "sha256": job.code_sha256},
        "commit": told.get("commit", ""),
        "environment": told.get("environment", {}).get("sha256", ""),
        "run": told.get("run", ""),
        "mlflow_run": runs.get(told.get("run", ""), ""),
        "started": told.get("started", ""),
        "seconds": told.get("seconds", round(job.ended - job.started, 3)),
        "threads": told.get("threads", 0),
        "machine": told.get("machine", {}),
        "params": job.params,
        "command": job.command,
    }
