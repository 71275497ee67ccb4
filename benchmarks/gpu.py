"""The speed and memory of FALCO and of one step of every training on this machine's GPU; benchmarks/gpu.sh runs it.

`measure` appends a row for each to FOLDER/rows.jsonl as soon as it is known; `write` joins them with the outputs of the
tests, and writes benchmarks/gpu.md. Without a GPU it measures the processor and writes no page.
"""

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import falco
import torch
from pages import MACHINE, ROOT, table, write

from masquerade.cli import gpu_driver
from masquerade.core import determinism, fingerprints
from masquerade.networks.inputs import device
from masquerade.params import loading
from masquerade.params.parameters import Parameters
from masquerade.pipeline.costs import attackers, pictures, trainings
from masquerade.pipeline.costs.builder import Builder
from masquerade.pipeline.costs.gpus import GPUS
from masquerade.pipeline.costs.measured import SHARE, STEP, WHAT
from masquerade.pipeline.costs.meta import Cost
from masquerade.pipeline.costs.timed import FlopCounter, Timed, TimedExecution
from masquerade.pipeline.costs.workload import Workload

ROWS = "rows.jsonl"
HEAD = (STEP, WHAT, "seconds", "TFLOP", "TFLOP/s", SHARE, "memory, GiB", "planned, GiB", "remark")
FEW, SOME, MANY = (1, 2), (0, 8), (0, falco.PICTURES)
"""FALCO: pictures at once (0: as many as fit), and pictures that are measured."""
REDUCED = {"channels_last": True, "compile": False}
BFLOAT16 = {"precision": "bfloat16", **REDUCED}
MODES = {
    "falco, deterministic": (True, None, (SOME,)),
    "falco": (False, BFLOAT16, (FEW, SOME, MANY)),
    "falco, TF32": (False, {"precision": "tf32", **REDUCED}, (SOME,)),
    "falco, compiled": (False, {**BFLOAT16, "compile": True}, (MANY,)),  # the last: compiling takes a minute or two
}
"""What is measured -> `compute.deterministic`, `arithmetic` of the optimization, and numbers of pictures."""


class TimedBuilder(Builder):
    """Measures instead of counting. ``until``: the `time.monotonic` after which nothing more is begun."""

    def __init__(self, parameters: Parameters, folder: Path, until: float):
        super().__init__(parameters, TimedExecution(), folder, ROOT, lambda name: print(f"  {name}", flush=True))
        self.until, self.last = until, Timed()

    def counted(self, name, work) -> tuple[Cost, str]:
        if time.monotonic() > self.until:
            self.last = Timed()
            return self.last, "not counted: the time was up"
        cost, reason = super().counted(name, work)
        self.last = cost if isinstance(cost, Timed) else Timed()
        return cost, reason


def falco_rows(size: int = 1024) -> Iterator[dict]:
    """FALCO at its published size, in each mode and for some numbers of pictures. Seconds and FLOPs are of a face."""
    usual = os.environ.get(determinism.VARIABLE, "1") != "0"
    with tempfile.TemporaryDirectory() as folder:
        resources, faces, knobs, variant = falco.published(Path(folder), size)
        flops = {}
        for name, (deterministic, arithmetic, numbers) in MODES.items():
            determinism.declare(deterministic)  # a new method prepares the GPU for it
            params = type(knobs)(**{**knobs.model_dump(), "arithmetic": arithmetic})
            case = resources, faces, params, variant
            if deterministic not in flops:  # in 32 bits the generator computes in another way
                with FlopCounter() as counter:
                    falco.measured(*case, 1, 1, warm=False)
                flops[deterministic] = counter.flops
            for batch, count in numbers:
                together, speed, memory = falco.measured(*case, batch, count)
                yield {
                    STEP: "anonymize", WHAT: f"{name}, {batch} side by side" if batch else name, "seconds": 1 / speed,
                    "flops": flops[deterministic], "memory": memory * 2**30,
                    "remark": f"{together or count} side by side, {size} pixels",
                }  # fmt: skip
    determinism.declare(usual)


def training_rows(scale: str, until: float) -> Iterator[dict]:
    """One step of every training at the batch sizes of a scale. Seconds and FLOPs are means over its steps."""
    parameters = alone(loading.load(ROOT, scale))
    with tempfile.TemporaryDirectory() as folder:
        builder = TimedBuilder(parameters, Path(folder), until)
        work = Workload(parameters, ROOT), builder
        pictures.write(builder.archive, parameters.image.size, 1)
        with builder.meta:
            for part in (trainings.backbones, trainings.methods, attackers.trained, attackers.twins):
                for step in part(*work):
                    timed, name = builder.last, step.name.partition("/")[0]
                    tasks = parameters.compute.submission("training", name).tasks
                    row = {STEP: step.rule, WHAT: step.name, "remark": step.note}
                    if timed.rounds:
                        row |= {"seconds": timed.seconds / timed.rounds, "flops": timed.repeated / timed.rounds}
                        row |= {
                            "memory": timed.peak,
                            "remark": f"1/{tasks} of the batch; planned: the whole" if tasks > 1 else "",
                        }
                    yield row


def alone(parameters: Parameters) -> Parameters:
    """The parameters with the share of each batch that one of the processes of a training has."""
    methods = {}
    for name, block in parameters.methods.items():
        tasks = parameters.compute.submission("training", name).tasks
        if tasks > 1 and hasattr(block.params, "batch"):
            knobs = block.params.model_copy(update={"batch": block.params.batch // tasks})
            methods[name] = block.model_copy(update={"params": knobs})
    typed = parameters.typed.methods.model_copy(update=methods)
    return Parameters(parameters.typed.model_copy(update={"methods": typed}))


def test_rows(folder: Path) -> Iterator[dict]:
    """What the contract tests and the rehearsals have said so far, from what they wrote into ``folder``."""
    log = folder / "contract.log"
    if log.is_file():
        text = log.read_text(errors="replace")
        tests = re.findall(r"^\[gw\d+\] \[ *\d+%\] (PASSED|FAILED|ERROR) \S+::(\S+)", text, re.MULTILINE)
        failed = sorted({name for result, name in tests if result != "PASSED"})
        remark = f"{sum(result == 'PASSED' for result, _ in tests)} passed, {len(failed)} failed"
        cut_off = "" if re.search(r"^=+ .* in [\d.]+s", text, re.MULTILINE) else "; cut off"
        yield {STEP: "test", WHAT: "contract", "remark": remark + f": {', '.join(failed)}" * bool(failed) + cut_off}
    for path in sorted(folder.glob("rehearsal/**/.snakemake/log/*.snakemake.log")):
        text = path.read_text(errors="replace")
        done, scale = re.findall(r"^(\d+) of (\d+) steps", text, re.MULTILINE), re.search(r"logs/(rehearsal\w*)/", text)
        if done and scale:
            failed = len(re.findall(r"^Error in rule", text, re.MULTILINE))
            yield {STEP: "test", WHAT: scale[1], "remark": f"{' of '.join(done[-1])} jobs, {failed} failed"}


def planned(folder: Path) -> dict[tuple[str, str], float]:
    """Step -> bytes, of the plan, if it was finished in time."""
    try:
        steps = json.loads((folder / "plan.json").read_text())["steps"]
    except (OSError, ValueError):
        return {}
    return {(step["rule"], step["name"]): step["peak"] for step in steps}


def page(folder: Path, peak: float | None) -> None:
    """Print the table, and write it into benchmarks/gpu.md if there is a GPU."""
    rows = [json.loads(line) for line in (folder / ROWS).read_text().splitlines()] if (folder / ROWS).is_file() else []
    peak, memory = peak or peak_of(card()), planned(folder)
    lines = [cells(row, peak, memory) for row in (*rows, *test_rows(folder))]
    now, count = datetime.now(UTC).strftime("%d %B %Y"), len(os.sched_getaffinity(0))
    about = f"{now}, commit {fingerprints.commit()}, {count} CPU cores, {MACHINE}, {software()}."
    parts = f"# {card()}", f"Measured by `benchmarks/gpu.sh`: {about}", explained(peak), table(HEAD, lines)
    if torch.cuda.is_available():
        write("gpu", *parts)
    else:
        print(*parts, sep="\n\n")


def explained(peak: float | None) -> str:
    """What the columns of the table are."""
    share = f"`{SHARE}`: of {peak:g} TFLOP/s (TF32); `masquerade plan` reads it. " if peak else ""
    return (
        "`seconds` and `TFLOP`: of one step of a training, with random weights and the batch of scale `paper`, or of "
        f"one face. {share}`memory`: the most that PyTorch held. `planned`: the same by `masquerade plan`."
    )


def cells(row: dict, peak: float | None, planned: dict[tuple[str, str], float]) -> list[str]:
    """A row of the table as text."""
    seconds, flops = row.get("seconds", 0), row.get("flops", 0)
    speed = flops / seconds / 1e12 if seconds else 0
    share = speed / peak if peak and "," not in row[WHAT] else 0  # the plan has no step "falco, 8 side by side"
    expected = planned.get((row[STEP], row[WHAT]), 0)
    numbers = seconds, flops / 1e12, speed, share, row.get("memory", 0) / 2**30, expected / 2**30
    return [row[STEP], row[WHAT], *map(digits, numbers), row.get("remark", "")]


def digits(number: float) -> str:
    """Three digits; '' for zero."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}" if number else ""


def card() -> str:
    """The name of the GPU, or of what stands for it."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "No GPU: one processor"


def peak_of(name: str) -> float | None:
    """The peak of a card by its data sheet, in TFLOP/s; None for another card than those of `GPUS`."""
    return next((gpu.tf32 for key, gpu in GPUS.items() if key.upper() in name), None)


def software() -> str:
    """The versions of torch and of NVIDIA's driver, and whether PyTorch computes deterministically."""
    device()
    mode = "deterministic" if torch.are_deterministic_algorithms_enabled() else "not deterministic"
    _, version = gpu_driver.installed()
    return ", ".join(part for part in (f"torch {torch.__version__}", version and f"driver {version}", mode) if part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("falco", "trainings", "write"))
    parser.add_argument("folder", type=Path, help="for the rows, and with the outputs of the tests")
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--seconds", type=float, default=600, help="after which no other training is begun")
    parser.add_argument("--peak", type=float, help="TFLOP/s in TF32, of a card that is not listed")
    given = parser.parse_args()
    if given.what == "write":
        page(given.folder, given.peak)
        return
    until = time.monotonic() + given.seconds
    with (given.folder / ROWS).open("a") as file:
        for row in falco_rows() if given.what == "falco" else training_rows(given.scale, until):
            file.write(f"{json.dumps(row)}\n")
            file.flush()


if __name__ == "__main__":
    main()
