"""The circumstances of a job: commit, environment, machine, time and run, beside the hashes of what it wrote.

Snakemake's record of an output knows its inputs, parameters and command; this one says what Snakemake does not know.
It lies in ``.masquerade/provenance/`` under the name of the job's first output, and DVC keeps it beside the output. No
job reads it and nothing compares it: two builds of the same bytes may differ in times and machines. An edit of this
file reruns nothing (`fingerprints.RECORDERS`).
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

from masquerade.lineage import fingerprints

FOLDER = Path(".masquerade/provenance")


def path_of(output: str | Path) -> Path:
    """Where the circumstances of the job lie that wrote ``output`` first of all."""
    return FOLDER / f"{str(output).lstrip('/')}.json"


def write(outputs: Mapping[str, str], began: float, run: str, threads: int) -> None:
    """Record a job that this process has finished.

    ``outputs``: path -> md5, the first one first; ``began``: seconds since 1970; ``run``: the id of its record of
    `tracking`, a tag of its MLflow run.
    """
    started, ended = datetime.fromtimestamp(began, UTC), datetime.now(UTC)
    content = {
        "outputs": dict(outputs),
        "commit": fingerprints.commit(),
        "environment": environment(),
        "machine": machine(),
        "run": run,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((ended - started).total_seconds(), 3),
        "threads": threads,
    }
    path = path_of(next(iter(outputs)))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def environment() -> dict[str, Any]:
    """Python's version and every package that this process could import, with one hash over all of it.

    Read from the names of the packages' folders (PEP 376), which costs a job two milliseconds.
    """
    packages: dict[str, str] = {}
    for folder in sys.path:
        for found in sorted(Path(folder).glob("*.dist-info")):
            name, _, version = found.stem.rpartition("-")
            packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
    content = {"python": platform.python_version(), "packages": dict(sorted(packages.items()))}
    return {"sha256": hashlib.sha256(json.dumps(content).encode()).hexdigest(), **content}


def machine() -> dict[str, Any]:
    """The kind of machine that this process runs on, not which one.

    ``gpu`` is what torch computed on, '' where it did not; ``kernels`` the instructions that torch's CPU kernels are
    chosen by, '' without torch. Both can change the last bits of a training.
    """
    torch = sys.modules.get("torch")
    gpus = torch.cuda.device_count() if torch and torch.cuda.is_initialized() else 0
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "gpu": ", ".join(torch.cuda.get_device_name(number) for number in range(gpus)),
        "kernels": torch.backends.cpu.get_cpu_capability() if torch else "",
    }


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or "unknown"
    names = re.search(r"^model name\s*: (.+)$", told, re.MULTILINE)
    return names[1].strip() if names else platform.processor() or "unknown"
