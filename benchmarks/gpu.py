"""The speed and memory of FALCO at its published size on this machine's GPU; benchmarks/gpu.sh runs it.

`falco` appends a row for each way to compute to FOLDER/rows.jsonl as soon as it is known; `write` joins them with the
outputs of the tests, and writes benchmarks/gpu.md. Without a GPU it measures the processor and writes no page.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import falco
import torch
from pages import MACHINE, table, write

from masquerade.core import fingerprints, seeding
from masquerade.networks.inputs import device
from masquerade.pipeline import plan

ROWS = "rows.jsonl"
HEAD = ("step", "what", "scale", "mode", "seconds", "memory, GiB", "remark")
"""`masquerade plan` reads the rows that have a scale and a mode."""
FEW, SOME, MANY = (1, 2), (0, 8), (0, falco.PICTURES)
"""FALCO: images at once (0: as many as fit), and images that are measured."""
BFLOAT16, TF32 = ({"precision": name, "channels_last": True} for name in ("bfloat16", "tf32"))
MODES = {
    "falco, deterministic": (True, None, (SOME,)),
    "falco": (False, BFLOAT16, (FEW, SOME, MANY)),
    "falco, TF32": (False, TF32, (SOME,)),
}
"""What is measured -> `compute.deterministic`, `arithmetic` of the optimization, and numbers of images."""


def falco_rows(size: int = 1024) -> Iterator[dict]:
    """FALCO at its published size, in each mode and for some numbers of images. Seconds are of a face."""
    usual = os.environ.get(seeding.DETERMINISM_VARIABLE, "1") != "0"
    with tempfile.TemporaryDirectory() as folder:
        resources, faces, knobs, variant = falco.published(Path(folder), size)
        for name, (deterministic, arithmetic, numbers) in MODES.items():
            seeding.declare_determinism(deterministic)  # a new method prepares the GPU for it
            params = type(knobs)(**{**knobs.model_dump(), "arithmetic": arithmetic})
            for batch, count in numbers:
                together, speed, memory = falco.measure(resources, faces, params, variant, batch, count)
                row = {"step": "anonymize", "what": f"{name}, {batch} side by side" if batch else name}
                if not batch and arithmetic != TF32 and size == 1024:  # as scale paper_1024 computes
                    row |= {"what": "falco", "scale": "paper_1024", "mode": plan.MODES[deterministic]}
                yield row | {
                    "seconds": 1 / speed, "memory": memory * 2**30,
                    "remark": f"{together or count} side by side, {size} pixels",
                }  # fmt: skip
    seeding.declare_determinism(usual)


def test_rows(folder: Path) -> Iterator[dict]:
    """What the contract tests and the rehearsals have said so far, from what they wrote into ``folder``."""
    log = folder / "contract.log"
    if log.is_file():
        text = log.read_text(errors="replace")
        tests = re.findall(r"^\[gw\d+\] \[ *\d+%\] (PASSED|FAILED|ERROR) \S+::(\S+)", text, re.MULTILINE)
        failed = sorted({name for result, name in tests if result != "PASSED"})
        remark = f"{sum(result == 'PASSED' for result, _ in tests)} passed, {len(failed)} failed"
        cut_off = "" if re.search(r"^=+ .* in [\d.]+s", text, re.MULTILINE) else "; cut off"
        yield {"step": "test", "what": "contract", "remark": remark + f": {', '.join(failed)}" * bool(failed) + cut_off}
    for path in sorted(folder.glob("rehearsal/**/.snakemake/log/*.snakemake.log")):
        text = path.read_text(errors="replace")
        done, scale = re.findall(r"^(\d+) of (\d+) steps", text, re.MULTILINE), re.search(r"logs/(rehearsal\w*)/", text)
        if done and scale:
            failed = len(re.findall(r"^Error in rule", text, re.MULTILINE))
            yield {"step": "test", "what": scale[1], "remark": f"{' of '.join(done[-1])} jobs, {failed} failed"}


def page(folder: Path) -> None:
    """Print the table, and write it into benchmarks/gpu.md if there is a GPU."""
    rows = [json.loads(line) for line in (folder / ROWS).read_text().splitlines()] if (folder / ROWS).is_file() else []
    lines = [cells(row) for row in (*rows, *test_rows(folder))]
    now, count = datetime.now(UTC).strftime("%d %B %Y"), len(os.sched_getaffinity(0))
    about = f"{now}, commit {fingerprints.describe_commit()}, {count} CPU cores, {MACHINE}, {software()}."
    explained = (
        "`seconds`: of one face. `masquerade plan` reads the rows with a scale and a mode. To add a training, run its "
        "job and write down the seconds of one step from its log. `memory`: the most that PyTorch held."
    )
    parts = f"# {card()}", f"Measured by `benchmarks/gpu.sh`: {about}", explained, table(HEAD, lines)
    if torch.cuda.is_available():
        write("gpu", *parts)
    else:
        print(*parts, sep="\n\n")


def cells(row: dict) -> list[str]:
    """A row of the table as text."""
    numbers = row.get("seconds", 0), row.get("memory", 0) / 2**30
    names = (row.get(name, "") for name in ("step", "what", "scale", "mode"))
    return [*names, *map(digits, numbers), row.get("remark", "")]


def digits(number: float) -> str:
    """Three digits; '' for zero."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}" if number else ""


def card() -> str:
    """The name of the GPU, or of what stands for it."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "No GPU: one processor"


def software() -> str:
    """The versions of torch and of NVIDIA's driver, and whether PyTorch computes deterministically."""
    device()
    mode = "deterministic" if torch.are_deterministic_algorithms_enabled() else "not deterministic"
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False).stdout if shutil.which(query[0]) else ""
    version = answer.strip().split("\n")[0]
    return ", ".join(part for part in (f"torch {torch.__version__}", version and f"driver {version}", mode) if part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("falco", "write"))
    parser.add_argument("folder", type=Path, help="for the rows, and with the outputs of the tests")
    given = parser.parse_args()
    if given.what == "write":
        page(given.folder)
        return
    with (given.folder / ROWS).open("a") as file:
        for row in falco_rows():
            file.write(f"{json.dumps(row)}\n")
            file.flush()


if __name__ == "__main__":
    main()
