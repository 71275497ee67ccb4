"""Code that all programs of workflow/scripts/ share: arguments, the tracked run, and the format of errors.

A program declares the files that it reads and writes. It gets its slice of the parameters, so it cannot read one
that its rule did not declare. At its top a program imports this module alone, and this module at its top imports
little: a program that hands its job to the fork server needs nothing else.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.core import process, rehearsal
from masquerade.core.errors import MasqueradeError
from masquerade.pipeline import forked_job

if TYPE_CHECKING:
    import numpy as np

    from masquerade.lineage.tracking import Run
    from masquerade.methods import Method
    from masquerade.training.settings import TrainingJob


def parse_arguments(
    description: str,
    files: Sequence[str] = (),
    optional: Sequence[str] = (),
    lists: Sequence[str] = (),
    named: Sequence[str] = (),
    words: Sequence[str] = (),
    method: bool = False,
) -> Namespace:
    """Parse ``--params JSON``, ``--threads N``, ``--code FILE``, ``--outputs FILE ...``, and the named arguments.

    ``files``: one path each. ``optional``: one path each, or None. ``lists``: any number of paths each. ``named``: the
    same, as a mapping from the name of each file to its path. ``words``: one string each, which may be empty.
    ``method``: also the arguments that `build_method` needs. In the result, ``params`` is a `Slice`, ``seed`` a number,
    and ``inputs`` are all files that exist.

    In a build with a fork server, a fork of it runs the program, and this call does not return.
    """
    forked_job.delegate()
    from masquerade.params.slices import Slice

    parser = ArgumentParser(description=description)
    parser.add_argument("--params", type=Slice.parse, required=True, help="the step's slice of the parameters, JSON")
    parser.add_argument("--code", type=Path, help="fingerprints of the code of this step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--outputs", type=Path, nargs="+", required=True)
    if method:
        optional, named = (*optional, "checkpoint", "gallery", "fakes", "latents", "images"), (*named, "backbones")
        words = (*words, "method", "variant", "seed")
    for name in files:
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in optional:
        parser.add_argument(f"--{name}", type=Path, nargs="?")
    for name in (*lists, *named):
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    for name in words:
        parser.add_argument(f"--{name}", nargs="?", const="", required=True)
    parsed = parser.parse_args()
    if "seed" in words:
        parsed.seed = int(parsed.seed)
    rehearsal.declare_rehearsal(parsed.params.rehearsal)
    inputs = [path for name in (*files, *optional) if (path := getattr(parsed, name))]
    inputs += [path for name in (*lists, *named) for path in getattr(parsed, name)]
    parsed.inputs = [path for path in inputs if path.is_file()]
    for name in named:
        setattr(parsed, name, {path.stem: path for path in getattr(parsed, name)})
    process.limit_threads(parsed.threads)
    return parsed


def main(name: str, given: Namespace, work: Callable[["Run"], None]) -> None:
    """Run ``work`` as one tracked job and record its circumstances. Of several processes, the first one records.

    The run keeps no image if the job reads a file of a private dataset (`params.sharing`).

    A MasqueradeError ends the program with the text of the error and status 1.
    """
    import logging

    from masquerade.core import fingerprints, process, seeding
    from masquerade.lineage import provenance, publishing, tracking
    from masquerade.params import sharing

    private = sharing.read_declared()
    shows_faces = not any(sharing.is_private(path, private) for path in given.inputs)
    began = time.time()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        with (
            seeding.explain_nondeterminism(),
            tracking.run(name, given.params.values, collect_tags(given), publishing.publish_live, shows_faces) as run,
        ):
            work(run)
            if process.find_current().rank == 0:
                hashes = {str(path): fingerprints.md5(path) for path in given.outputs}
                run.tag({f"output.{path}": md5 for path, md5 in hashes.items()})
                provenance.write_circumstances(hashes, began, run.id, given.threads)
    except MasqueradeError as error:
        sys.exit(f"{name}: {error}")


def collect_tags(given: Namespace) -> dict[str, str]:
    """The tags of a run: its commit, threads, code and the md5 of every input."""
    from masquerade.core import fingerprints

    values = {"commit": fingerprints.describe_commit(), "threads": str(given.threads)} | (
        {"rehearsal": "true"} if rehearsal.is_rehearsing() else {}
    )
    if given.code:
        values["code"] = fingerprints.md5(given.code)
        fingerprints.recall(given.code.with_name(fingerprints.CACHE))  # a training hashes its code
    return values | {f"input.{path}": fingerprints.md5(path) for path in given.inputs}


def select_cell(given: Namespace) -> dict[str, Any]:
    """The cell of the arguments ``dataset``, ``method``, ``variant`` and ``seed``."""
    return {name: getattr(given, name) for name in ("dataset", "method", "variant", "seed")}


def build_method(given: Namespace) -> "Method":
    """The method of a program whose `parse_arguments` are those of a ``method``, built with its files."""
    from masquerade.core import discovery
    from masquerade.core.images import FaceArchive
    from masquerade.methods import Resources

    cls, params = discovery.load("methods", given.method), given.params
    resources = Resources(
        checkpoint=given.checkpoint,
        backbones=given.backbones,
        gallery=FaceArchive(given.gallery) if given.gallery else None,
        fakes=given.fakes,
        latents=given.latents,
        images=given.images,
        originals=FaceArchive(given.faces) if given.images else None,
    )
    variant = cls.Variant(**params[f"methods.{given.method}.variants.{given.variant}"])
    return cls(params.training_params(given.method, given.variant), variant, resources)


def make_job(given: Namespace, run: "Run", people: str, seed: int, **more: Any) -> "TrainingJob":
    """The training of a program with the arguments ``faces``, ``backbones`` and ``state``."""
    from masquerade.training.settings import TrainingJob

    return TrainingJob(
        faces=given.faces,
        people=people,
        backbones=given.backbones,
        checkpoint=given.outputs[0],
        state=given.state,
        seed=seed,
        threads=given.threads,
        log=run.log,
        picture=run.log_image,
        **more,
    )


def record_sample(run: "Run", given: Namespace, method: "Method | None" = None) -> None:
    """Record a sample of the faces and anonymized images of a program, and the statement of its method."""
    from masquerade.pipeline import anonymization

    pictures = anonymization.draw_sample(given.faces, given.outputs[0])
    if pictures is not None:
        run.log_image("sample", pictures)
    if method is not None:
        run.tag({f"statement.{key}": str(value) for key, value in method.statement().items()})


def join_images(pictures: "np.ndarray", most: int = 8) -> "np.ndarray":
    """The first images of uint8 (N, H, W, 3) side by side: uint8 (H, most W, 3)."""
    import numpy as np

    return np.concatenate(list(pictures[:most]), axis=1)
