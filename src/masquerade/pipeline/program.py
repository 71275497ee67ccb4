"""Code that all programs of workflow/scripts/ share: arguments, the tracked run, and the format of errors.

A program declares the files that it reads and writes. It gets its slice of the parameters as one JSON string, so it
cannot read a knob that its rule did not declare. At its top a program imports this module alone, and this module at its
top imports little: a program that hands its job to the fork server needs nothing else.
"""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.core import rehearsal, threads
from masquerade.core.errors import MasqueradeError
from masquerade.pipeline import forked_job

if TYPE_CHECKING:
    import numpy as np

    from masquerade.lineage.tracking import Run
    from masquerade.methods import Method


def arguments(
    description: str,
    files: Sequence[str] = (),
    lists: Sequence[str] = (),
    words: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Namespace:
    """Parse ``--params JSON``, ``--threads N``, ``--code FILE``, ``--outputs FILE ...``, and the named arguments.

    ``files``: one path each. ``lists``: any number of paths each. ``words``: one string each. ``options``: words that
    may be left out. ``inputs`` of the result: every file among ``files`` and ``lists`` that exists.

    In a build with a fork server, a fork of it runs the program, and this call does not return.
    """
    forked_job.delegate()
    parser = ArgumentParser(description=description)
    parser.add_argument("--params", type=json.loads, required=True, help="the step's slice of the parameters, JSON")
    parser.add_argument("--code", type=Path, help="fingerprints of the code of this step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--outputs", type=Path, nargs="+", required=True)
    for name in files:
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in lists:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    for name in words:
        parser.add_argument(f"--{name}", required=True)
    for name in options:
        parser.add_argument(f"--{name}", nargs="?", default="", const="")
    parsed = parser.parse_args()
    rehearsal.declare(parsed.params.pop(rehearsal.MARK, False))
    parsed.inputs = [path for name in (*files, *lists) for path in _as_list(getattr(parsed, name)) if path.is_file()]
    threads.limit(parsed.threads)
    return parsed


def _as_list(value: Path | list[Path]) -> list[Path]:
    return value if isinstance(value, list) else [value]


def main(name: str, given: Namespace, work: Callable[["Run"], None]) -> None:
    """Run ``work`` as one tracked job and record its circumstances. Of several processes, the first one records.

    A MasqueradeError ends the program with the text of the error and status 1.
    """
    import logging

    from masquerade.core import fingerprints, process
    from masquerade.lineage import provenance, publishing, tracking

    began = time.time()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        with tracking.run(name, given.params, tags(given), publishing.publish) as run:
            work(run)
            if process.current().rank == 0:
                hashes = {str(path): fingerprints.md5(path) for path in given.outputs}
                run.tag({f"output.{path}": md5 for path, md5 in hashes.items()})
                provenance.write(hashes, began, run.id, given.threads)
    except MasqueradeError as error:
        sys.exit(f"{name}: {error}")


def tags(given: Namespace) -> dict[str, str]:
    """The tags of a run: its commit, threads, code and the md5 of every input."""
    from masquerade.core import fingerprints

    values = {"commit": fingerprints.commit(), "threads": str(given.threads)} | (
        {"rehearsal": "true"} if rehearsal.on() else {}
    )
    if given.code:
        values["code"] = fingerprints.md5(given.code)
    return values | {f"input.{path}": fingerprints.md5(path) for path in given.inputs}


def cell(given: Namespace) -> dict[str, Any]:
    """The cell of the arguments ``dataset``, ``method``, ``variant`` and ``seed``."""
    return {"dataset": given.dataset, "method": given.method, "variant": given.variant, "seed": int(given.seed)}


METHOD_FILES = ("checkpoint", "backbones", "gallery", "fakes", "latents")
"""Further ``lists`` of a program that uses a method. `method` reads these files."""


def method(given: Namespace) -> "Method":
    """The method of the arguments ``method`` and ``variant``, built with the files of METHOD_FILES."""
    from masquerade.core import discovery
    from masquerade.core.images import FaceArchive
    from masquerade.methods import Resources
    from masquerade.pipeline import method_builder

    cls, block = discovery.load("methods", given.method), f"methods.{given.method}"
    resources = Resources(
        checkpoint=next(iter(given.checkpoint), None),
        backbones={path.stem: path for path in given.backbones},
        gallery=FaceArchive(given.gallery[0]) if given.gallery else None,
        fakes=next(iter(given.fakes), None),
        latents=next(iter(given.latents), None),
    )
    return method_builder.build(
        cls,
        given.params[f"{block}.params"],
        given.params.get(f"{block}.ablations.{given.variant}"),
        cls.Variant(**given.params[f"{block}.variants.{given.variant}"]),
        resources,
    )


def block(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The knobs ``<prefix>.<knob>`` of a step's slice, as {knob: value}."""
    return {key.removeprefix(f"{prefix}."): value for key, value in params.items() if key.startswith(f"{prefix}.")}


def row(pictures: "np.ndarray", most: int = 8) -> "np.ndarray":
    """The first pictures of uint8 (N, H, W, 3) side by side: uint8 (H, most W, 3)."""
    import numpy as np

    return np.concatenate(list(pictures[:most]), axis=1)
