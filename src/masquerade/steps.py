"""What every program of workflow/scripts/ shares: its arguments, its run, and how its errors look.

A program declares the files it reads and writes; it gets its own slice of the parameters as one JSON string, so that
it cannot read a knob that the rule did not declare.
"""

import json
import logging
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade import lineage, place, rehearsal, tracking
from masquerade.errors import MasqueradeError
from masquerade.lineage import provenance

if TYPE_CHECKING:
    import numpy as np

    from masquerade.methods import Method


def arguments(
    description: str,
    files: Sequence[str] = (),
    lists: Sequence[str] = (),
    words: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Namespace:
    """Parse ``--params JSON``, ``--threads N``, ``--code FILE``, ``--outputs FILE ...``, and what is named here.

    ``options`` are words that may be left out.
    """
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
        parser.add_argument(f"--{name}", default="")
    parsed = parser.parse_args()
    rehearsal.declare(parsed.params.pop(rehearsal.MARK, False))
    parsed.inputs = [path for name in (*files, *lists) for path in _as_list(getattr(parsed, name)) if path.is_file()]
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(parsed.threads)  # before NumPy or torch start their pools
    return parsed


def _as_list(value: Path | list[Path]) -> list[Path]:
    return value if isinstance(value, list) else [value]


def main(name: str, given: Namespace, work: Callable[[tracking.Run], None]) -> None:
    """Run ``work`` as one tracked job, and record its circumstances; of several processes, the first does.

    A MasqueradeError ends the program with its text and status 1.
    """
    began = time.time()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        with tracking.run(name, given.params, tags(given)) as run:
            work(run)
            if place.here().rank == 0:
                hashes = {str(path): lineage.md5(path) for path in given.outputs}
                run.tag({f"output.{path}": md5 for path, md5 in hashes.items()})
                provenance.write(hashes, began, run.id, given.threads)
    except MasqueradeError as error:
        sys.exit(f"{name}: {error}")


def tags(given: Namespace) -> dict[str, str]:
    """What ties a run to its commit, its code and the content of what it read."""
    found = {"commit": lineage.commit(), "threads": str(given.threads)} | (
        {"rehearsal": "true"} if rehearsal.on() else {}
    )
    if given.code:
        found["code"] = lineage.md5(given.code)
    return found | {f"input.{path}": lineage.md5(path) for path in given.inputs}


METHOD_FILES = ("checkpoint", "backbones", "gallery", "fakes", "latents")
"""What a program that uses a method takes beside its own files, as lists: `method` reads them."""


def method(given: Namespace) -> "Method":
    """The method that the arguments ``method`` and ``variant`` and the files METHOD_FILES name, loaded."""
    from masquerade import discovery, params
    from masquerade.images import FaceArchive
    from masquerade.methods import Resources

    cls, knobs = discovery.load("methods", given.method), f"methods.{given.method}"
    return cls(
        params.trained_with(
            cls, given.params[f"{knobs}.params"], given.params.get(f"{knobs}.ablations.{given.variant}")
        ),
        cls.Variant(**given.params[f"{knobs}.variants.{given.variant}"]),
        Resources(
            checkpoint=next(iter(given.checkpoint), None),
            backbones={path.stem: path for path in given.backbones},
            gallery=FaceArchive(given.gallery[0]) if given.gallery else None,
            fakes=next(iter(given.fakes), None),
            latents=next(iter(given.latents), None),
        ),
    )


def block(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The knobs ``<prefix>.<knob>`` of a step's slice, by their last names."""
    return {key.removeprefix(f"{prefix}."): value for key, value in params.items() if key.startswith(f"{prefix}.")}


def row(pictures: "np.ndarray", most: int = 8) -> "np.ndarray":
    """The first pictures of uint8 (N, H, W, 3) side by side: uint8 (H, most W, 3)."""
    import numpy as np

    return np.concatenate(list(pictures[:most]), axis=1)


def write_json(path: Path, tree: Mapping[str, Any]) -> None:
    """Write JSON under a temporary name and rename it; in a rehearsal it is marked."""
    write_text(path, json.dumps(rehearsal.marked(tree), indent=1, sort_keys=True) + "\n")


def read_numbers(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The JSON files of metrics, qualities or guesses, for a table. Raises RehearsalError for one of a rehearsal."""
    trees = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    for path, tree in zip(paths, trees, strict=True):
        rehearsal.refuse_numbers(tree, path)
    return trees


def write_text(path: Path, text: str) -> None:
    """Write text under a temporary name and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
