"""Runs Python programs in processes that have imported their libraries: importing Snakemake or DVC takes a second.

The processes are forked from one that has imported LIBRARIES and nothing of Masquerade. So each program imports the
sources of its own working copy.
"""

import gc
import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NoReturn

BIN = Path(sys.executable).parent
LIBRARIES = ["snakemake.cli", "snakemake.api", "dvc.cli", "dvc.repo", "mlflow.tracking.client", "torch"]
PYTHON = ("python", sys.executable)
NAMES = (*PYTHON, "snakemake", "dvc", "masquerade")


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a program to its end. Returns its status, and what it wrote: first to stdout, then to stderr."""
    with tempfile.TemporaryDirectory() as written:
        files = [Path(written) / name for name in ("stdout", "stderr")]
        process = start(command, folder, environment, *files)
        process.join()
        return process.exitcode, "".join(file.read_text() for file in files)


def start(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    session: bool = False,
) -> BaseProcess:
    """Start a program in ``folder``; it writes to the two files.

    ``command``: one of NAMES with its arguments; Python with ``-c`` and a text, or with a file. ``session``: in a
    session of its own, so that the program and its jobs can be killed together.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    process = context.Process(target=_main, args=(list(command), folder, dict(environment), (stdout, stderr), session))
    process.start()
    return process


def _main(
    command: list[str], folder: Path, environment: dict[str, str], files: tuple[Path, Path], session: bool
) -> None:
    if session:
        os.setsid()
    for number, path in enumerate(files, start=1):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # programs end before they have garbage that matters
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # it may be that of the former environment
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    name, *arguments = command
    if name in PYTHON and arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path.insert(0, "")
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
        return
    sys.argv = arguments if name in PYTHON else [str(BIN / name), *arguments]
    sys.path.insert(0, str(Path(sys.argv[0]).absolute().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


def lacks(what: str) -> NoReturn:
    """Skips the test with a reason. Fails it if ``CI=true`` is in the environment, because CI hides skipped tests."""
    import pytest  # not above: each program that is forked imports this module

    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
