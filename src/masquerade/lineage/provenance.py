"""The circumstances of a job: commit, environment, machine, time and run, and the hashes of its outputs.

Snakemake's record of an output holds its inputs, parameters and command. This record holds the rest. It lies in
``.masquerade/provenance/`` under the name of the job's first output, and DVC keeps it together with the output. No job
reads it and nothing compares it, because two builds of the same bytes may differ in times and machines. An edit of
this file reruns nothing (`fingerprints.RECORDERS`)::

    {"outputs": {"data/mini/faces/synthetic_hq.zip": "4d1a..."}, "commit": "37f496e8...+",
     "environment": {"sha256": ..., "python": "3.11.7", "packages": {"torch": "2.13.0", ...}},
     "machine": {"system": "Linux x86_64", "processor": ..., "cores": 2, "gpu": "", "kernels": "AVX512"},
     "run": "0f3c...", "started": "2026-11-21T20:00:00+00:00", "seconds": 27.1, "threads": 2}
"""

import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from masquerade.core import files, fingerprints

FOLDER = Path(".masquerade/provenance")


def circumstances_path(output: str | Path) -> Path:
    """Where the circumstances of a job lie. ``output``: the first output of the job."""
    return FOLDER / f"{str(output).lstrip('/')}.json"


def write_circumstances(outputs: Mapping[str, str], began: float, run: str, threads: int) -> None:
    """Record a job that this process has finished.

    ``outputs``: path -> md5, in the order of the rule. ``began``: seconds since 1970. ``run``: the id of the job's
    record of `tracking`, which is a tag of its MLflow run.
    """
    started, ended = datetime.fromtimestamp(began, UTC), datetime.now(UTC)
    content = {
        "outputs": dict(outputs),
        "commit": fingerprints.describe_commit(),
        "environment": describe_environment(),
        "machine": describe_machine(),
        "run": run,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((ended - started).total_seconds(), 3),
        "threads": threads,
    }
    files.write_text(circumstances_path(next(iter(outputs))), json.dumps(content, indent=1) + "\n")


def describe_environment() -> dict[str, Any]:
    """Python's version and every package that this process can import, with one hash over all of it.

    The versions are read from the names of the packages' folders (PEP 376). That takes two milliseconds.
    """
    packages: dict[str, str] = {}
    for folder in sys.path:
        for metadata in sorted(Path(folder).glob("*.dist-info")):
            name, _, version = metadata.stem.rpartition("-")
            packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
    content = {"python": platform.python_version(), "packages": dict(sorted(packages.items()))}
    return {"sha256": hashlib.sha256(json.dumps(content).encode()).hexdigest(), **content}


def describe_machine() -> dict[str, Any]:
    """The kind of the machine that this process runs on. It holds no name of a machine.

    ``gpu``: the GPUs that torch used, '' if none, and whether `compute.deterministic` was off. ``kernels``: the
    instruction set that torch's CPU kernels use, '' if torch is not loaded (a fork server has loaded it for all of its
    jobs). All can change the last bits of a training.
    """
    torch: Any = sys.modules.get("torch")
    count = torch.cuda.device_count() if torch and torch.cuda.is_initialized() else 0
    gpus = [torch.cuda.get_device_name(number) for number in range(count)]
    if gpus and not torch.are_deterministic_algorithms_enabled():
        gpus.append("not deterministic")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _describe_processor(),
        "cores": os.cpu_count(),
        "gpu": ", ".join(gpus),
        "kernels": torch.backends.cpu.get_cpu_capability() if torch else "",
    }


def _describe_processor() -> str:
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or "unknown"
    names = re.search(r"^model name\s*: (.+)$", cpuinfo, re.MULTILINE)
    return names[1].strip() if names else platform.processor() or "unknown"
