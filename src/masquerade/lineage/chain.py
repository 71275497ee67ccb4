"""The chain behind a number: from the cell of a table, job by job, to raw data.

A link stands before the links that it was made from::

    1  table    results/mini/tables/falco/table1.csv                    <- 2
    2  metrics  results/mini/metrics/synthetic_hq/falco/m_0/0.json      <- 3, 4
    3  measure  data/mini/measurements/synthetic_hq/falco/m_0/0.parquet <- ...
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from masquerade.core import weight_names
from masquerade.lineage.address import ResolvedAddress
from masquerade.lineage.history import History, Job
from masquerade.params.paths import BUILT

GROUPED_ABOVE = 4
"""If a job read more raw files of one folder than this, they are one link."""


@dataclass(frozen=True)
class Link:
    """One job of a chain, or raw files that no recorded job made (``job`` is None)."""

    number: int
    name: str
    job: Job | None
    files: Mapping[str, str]
    """Path -> hash: ``md5:...`` of a written file, ``sha256:...`` of a read file, '' if unknown."""
    made_from: tuple[int, ...] = ()
    raw: str = ""
    """The kind of raw data at the end of the chain, or '' for a link in the middle."""


def follow(history: History, address: ResolvedAddress) -> list[Link]:
    """Every link behind ``address``, numbered from 1. A link comes before the links that it was made from.

    The fingerprints of code and the environment are not links: they are facts of a job.
    """
    nodes: dict[str, Link] = {}
    needs: dict[str, list[str]] = {}
    waiting = [address.file]
    while waiting:
        path = waiting.pop()
        job = history.find_job(path)
        if job is None or job.key in nodes:
            continue
        nodes[job.key] = Link(
            0, job.rule, job, _list_outputs(job), raw="drawn by the code" if job.reads_no_files else ""
        )
        read = [p for p in job.inputs if path != address.file or address.depends(p, history.scale)]
        makers = {maker.key for p in read if (maker := history.find_job(p))}
        raw = _link_raw_files({p: job.inputs[p] for p in read if history.find_job(p) is None})
        nodes |= raw
        needs[job.key] = [*raw, *sorted(makers, key=lambda key, job=job: (_count_common_parts(key, job.key), key))]
        waiting += makers
    last = history.find_job(address.file)
    assert last is not None  # an address names a file that a job wrote
    order = _sort_links(needs, last.key)
    numbers = {key: number for number, key in enumerate(order, 1)}
    return [
        replace(nodes[key], number=numbers[key], made_from=tuple(sorted(numbers[need] for need in needs.get(key, ()))))
        for key in order
    ]


def _count_common_parts(path: str, other: str) -> int:
    """How many parts at their ends two paths share.

    The measurements of a cell share more with its metrics than the measurements of the originals do.
    """
    pairs = zip(*(reversed(PurePosixPath(one).with_suffix("").parts) for one in (path, other)), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _list_outputs(job: Job) -> dict[str, str]:
    return {path: f"md5:{md5}" if md5 else "" for path, md5 in job.outputs.items()}


def _link_raw_files(read: Mapping[str, str]) -> dict[str, Link]:
    """Links for the files that a job read and no recorded job made. Many files of one folder become one link."""
    folders: dict[str, dict[str, str]] = {}
    for path, sha in read.items():
        folders.setdefault(str(PurePosixPath(path).parent), {})[path] = f"sha256:{sha}" if sha else ""
    links = {}
    for folder, files in folders.items():
        if len(files) > GROUPED_ABOVE:
            total = hashlib.sha256("".join(f"{path} {sha}\n" for path, sha in files.items()).encode()).hexdigest()
            name = f"{folder}/ ({len(files)} files)"
            links[name] = Link(0, "files", None, {name: f"sha256:{total}"}, raw="files from outside")
        else:
            links |= {path: Link(0, "file", None, {path: sha}, raw=_describe_kind(path)) for path, sha in files.items()}
    return links


def _describe_kind(path: str) -> str:
    if path.startswith(BUILT):  # only jobs write there, so it is not raw data
        return "of unknown origin: there is no record of the job that made it"
    if path.startswith(f"{weight_names.FOLDER}/"):
        return "published in the repository: its card states its training"
    return "declared in the repository" if path.startswith("reference/") else "a file from outside"


def _sort_links(needs: Mapping[str, Iterable[str]], first: str) -> list[str]:
    """Every key, after all keys that need it. Of the needs of a key, the last one (the main line) comes first."""
    needed = Counter(need for keys in needs.values() for need in keys)
    ready, order = [first], []
    while ready:
        key = ready.pop()
        order.append(key)
        for need in needs.get(key, ()):
            needed[need] -= 1
            if not needed[need]:
                ready.append(need)
    return order


def chain_to_json(
    address: ResolvedAddress, scale: str, links: Iterable[Link], runs: Mapping[str, str]
) -> dict[str, Any]:
    """The chain as JSON values. ``runs``: record of a job -> its MLflow run, if the store has it.

    A job refers to its environment, which many jobs share, by the hash.
    """
    environments: dict[str, Any] = {}
    plain_links = []
    for link in links:
        plain = dict(vars(link))
        if link.job:
            circumstances = dict(link.job.circumstances)
            if environment := circumstances.get("environment"):
                environments[environment["sha256"]] = environment
                circumstances["environment"] = environment["sha256"]
            plain["job"] = {**vars(link.job), "circumstances": circumstances, "subject": link.job.words}
            del plain["job"]["declared_environment"]
            plain["mlflow_run"] = runs.get(circumstances.get("run", ""), "")
        plain_links.append(plain)
    return {
        "address": address.address, "scale": scale, "file": address.file,
        "cells": [vars(cell) for cell in address.cells], "links": plain_links, "environments": environments,
    }  # fmt: skip
