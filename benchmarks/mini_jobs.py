"""Processor time of the heavy parts of mini's jobs: another commit and this code. Writes mini_jobs.md.

It needs what `make reproduce` built; `--built` names the folder. A part runs in a process of its own, with the code of
one commit and the parameters of that commit.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from pages import MACHINE, ROOT, best, table, write

GUESSES, ROUNDS = 10, 2
PARTS = {
    "clip2protect/default anonymize": 8,
    "fawkes/default anonymize": 32,
    "falco/m_0 anonymize": 16,
    "ifadit/full attempts": 8,
    "cao21/d_9 attempts": 8,
    "riddle/default attempts": 8,
    "cao21/d_9 guess": 8,
    "riddle/default guess": 8,
}
"""Cell and what is done -> faces. attempts: those of the rule recover. guess: some keys of the rule key_attacks."""


def measured(part: str, built: Path) -> tuple[float, str]:
    """(seconds of processor time a face, MD5 of all images that were made), with the code that Python imports."""
    import hashlib

    import torch

    from masquerade.core import discovery, process
    from masquerade.core.images import FaceArchive, Faces, to_float, to_uint8
    from masquerade.methods import Resources
    from masquerade.params import loading
    from masquerade.pipeline import recovery
    from masquerade.pipeline.anonymization import experiment_keys

    torch.set_num_threads(1)
    process.keep_freed_memory()
    cell, action = part.split()
    name, variant = cell.split("/")
    parameters, method_class = loading.load(Path.cwd(), "mini"), discovery.load("methods", name)
    archive = FaceArchive(built / "data/mini/faces/synthetic_hq.zip")
    faces = archive.load(rows=archive.select("test").head(PARTS[part]))
    backbones = {role: built / f"checkpoints/mini/backbones/{role}.safetensors" for role in method_class.needs}
    checkpoint = built / f"checkpoints/mini/methods/{name}/0.safetensors"
    resources = Resources(checkpoint, backbones, archive, built / "data/mini/fakes.safetensors")
    block = parameters.methods[name]
    kind = method_class.capabilities.keys
    keys = experiment_keys(kind, 0)(faces) if kind else None

    def pictures() -> list:
        method = method_class(block.params, block.variants[variant], resources)  # anew: it remembers images
        if action == "anonymize":
            return [method.anonymize(faces, 0, keys)]
        if action == "attempts":
            return [made for _, made in recovery.try_keys(anonymized, faces, method, 0, parameters.recovery)]
        guesses = (kind.experiment(0, "guess", number) for number in range(GUESSES))
        return [method.recover(anonymized.images, [key] * len(faces)) for key in guesses]

    if action != "anonymize":
        first = method_class(block.params, block.variants[variant], resources).anonymize(faces, 0, keys)
        anonymized = Faces(to_float(to_uint8(first)), faces.index)
    made, seconds = best(pictures, 2, time.process_time)
    return seconds / len(faces), hashlib.md5(b"".join(to_uint8(each).tobytes() for each in made)).hexdigest()


def of_tree(part: str, built: Path, tree: Path) -> tuple[float, str]:
    """`measured` with the code of ``tree``, in a process of its own."""
    command = [sys.executable, __file__, "--part", part, "--built", str(built)]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    return tuple(json.loads(subprocess.check_output(command, cwd=tree, env=environment).splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="HEAD", help="the other commit")
    parser.add_argument("--built", type=Path, default=ROOT, help="a repository in which mini was built")
    parser.add_argument("--part", help="measure this part alone, and print JSON")
    given = parser.parse_args()
    if given.part:
        print(json.dumps(measured(given.part, given.built)))
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.check_output(["git", "archive", given.against], cwd=ROOT)
        with tarfile.open(fileobj=io.BytesIO(packed)) as tree:
            tree.extractall(folder, filter="data")
        rows = []
        for part in PARTS:
            runs = [[of_tree(part, given.built, tree) for tree in (Path(folder), ROOT)] for _ in range(ROUNDS)]
            (before, old), (after, new) = (min(column) for column in zip(*runs, strict=True))
            same = "yes" if old == new else "no"
            rows.append([part, f"{1000 * before:.0f}", f"{1000 * after:.0f}", f"{after / before:.2f}", same])
    write(
        "mini_jobs",
        "# Jobs of mini",
        f"Milliseconds of processor time a face, 1 thread, {MACHINE}; commit {given.against} and this code side by "
        f"side, each with its own parameters of `mini`, the best of {2 * ROUNDS} calls. A guess is {GUESSES} keys.",
        table(("part", "before", "after", "share", "same images"), rows),
    )


if __name__ == "__main__":
    main()
