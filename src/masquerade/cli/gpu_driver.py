"""Why torch finds no GPU on a machine that has one: its build, or a driver that is too old for it."""

import shutil
import subprocess

OLDEST = {11: 450, 12: 525, 13: 580}
"""CUDA's major version -> the oldest driver for it: NVIDIA, CUDA Compatibility, minor version compatibility."""
ELSEWHERE = "Not needed at the scales tiny and mini."


def reason() -> tuple[str, str]:
    """Why `torch.cuda.is_available` is false, and what to do about it."""
    import torch

    build, cuda = f"torch {torch.__version__}", torch.version.cuda
    card, driver = installed()
    if not card:
        return f"none for {build}", ELSEWHERE
    if not driver:
        return f"nvidia-smi: {card}", "NVIDIA's driver does not work: restart the machine, or install the driver anew."
    here = f"{card} with driver {driver}, and {build}"
    if cuda is None:
        remedy = (
            "That build of torch is for processors: take the CUDA build (docs/installation.md, Two builds of torch)."
        )
        return f"{here} without CUDA", remedy
    oldest = OLDEST.get(int(cuda.split(".")[0]), 0)
    if int(driver.split(".")[0]) < oldest:
        return f"{here} for CUDA {cuda}: the driver is too old", (
            f"Install NVIDIA's driver {oldest} or newer (on a cluster its administrators do), or a build of torch for "
            f"CUDA {fitting(driver)}, which this driver serves."
        )
    try:
        torch.cuda.init()
        why = "it cannot be used"
    except (RuntimeError, AssertionError) as error:
        why = str(error).splitlines()[0]
    remedy = "Is it hidden by CUDA_VISIBLE_DEVICES, or is this a container without access to GPUs (--gpus all, --nv)?"
    return f"{here} for CUDA {cuda}: {why}", remedy


def fitting(driver: str) -> str:
    """The newest major version of CUDA that a driver serves."""
    return str(max((cuda for cuda, oldest in OLDEST.items() if int(driver.split(".")[0]) >= oldest), default="10"))


def installed() -> tuple[str, str]:
    """(name of the first GPU, version of its driver) by nvidia-smi.

    ('', '') without nvidia-smi. If it fails, its first line and ''.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return "", ""
    query = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    first = (done.stdout or done.stderr).strip().split("\n")[0]
    card, _, driver = first.partition(", ")
    return (card, driver) if done.returncode == 0 else (first or "no answer", "")
