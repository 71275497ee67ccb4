"""The command of a DVC stage: Snakemake makes the one job of the stage.

``dvc repro`` runs its stages one after the other. Where it is to make everything, the first stage therefore lets
Snakemake make every job that is out of date, side by side. The commands of the later stages then find their files made.

Importing Snakemake, MLflow and PyTorch takes some seconds. The stage of the parameters, or the first one after it,
starts a fork server beside. All jobs of this process of DVC are forks of it. With targets or ``--force``, each stage
makes its own job, and the later stages are forks as well. The server ends with the process of DVC. By hand, the same
command runs by itself.
"""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import connection
from pathlib import Path

from masquerade.core import files, fingerprints
from masquerade.lineage import provenance, snakemake_internals
from masquerade.lineage.tracking import start_ticks
from masquerade.pipeline import forked_job

OPTIONS = ("--quiet", "rules", "progress", "--cores", "all", "--rerun-incomplete")
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")
OF_DVC = "DVC_STAGE"
"""DVC sets this variable for the command of a stage."""
EVERYTHING = re.compile(r"(.*[ /])?dvc (repro|exp run)( (-S|--set-param|-n|--name)[ =]\S+)*")
"""The command lines with which DVC makes everything that is out of date."""
BUILD = Path(".masquerade/dvc_build")
"""The process of DVC that made everything last, and the exit status of Snakemake."""


def run(rule: str, outputs: list[str]) -> None:
    """Make the files of one job with Snakemake. Does not return."""
    process, force = _process_of_dvc(), ["--force"]
    server = _find_server(process) if process else None
    if process and _makes_everything(process):
        status, intact = _make_everything(process, server), _intact(outputs)
        if bool(status) != intact:
            sys.exit(status)
        if intact:  # another job failed, perhaps before Snakemake came to this one
            force = []
    sys.argv = [_snakemake(), *OPTIONS, *force, "--allowed-rules", rule, "--", *outputs]
    forked_job.delegate(pass_on=True)
    os.execv(sys.argv[0], sys.argv)


def start_server() -> None:
    """Start the fork server of the process of DVC that runs this program, if DVC does and there is none yet."""
    if process := _process_of_dvc():
        _find_server(process)


def _process_of_dvc() -> int:
    """The process of DVC that runs this program as a stage; 0 if none does."""
    return _user_of_shell(os.getppid()) if OF_DVC in os.environ and hasattr(os, "pidfd_open") else 0


def _snakemake() -> str:
    return str(Path(sys.executable).with_name("snakemake"))


def _makes_everything(process: int) -> bool:
    """Whether this process of DVC was started in this folder, without targets and options that need single stages."""
    words = Path(f"/proc/{process}/cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    return Path(f"/proc/{process}/cwd").resolve() == Path.cwd() and bool(EVERYTHING.fullmatch(" ".join(words)))


def _make_everything(process: int, server: Path | None) -> int:
    """Let Snakemake make everything, once for this process of DVC. Returns Snakemake's exit status.

    ``server``: the socket of the fork server that it uses.
    """
    name = f"{process} {start_ticks(process)}: "
    if not BUILD.is_file() or not BUILD.read_text().startswith(name):
        given = {forked_job.GIVEN: str(server)} if server else {}
        build = subprocess.Popen([_snakemake(), *OPTIONS], env=os.environ | given)
        user = os.pidfd_open(process)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            stopped = user in connection.wait([user, os.pidfd_open(build.pid)])  # DVC was killed
        except KeyboardInterrupt:
            stopped = True
        if stopped:
            build.terminate()
            sys.exit(build.wait())
        files.write_text(BUILD, f"{name}{build.wait()}")
    return int(BUILD.read_text().removeprefix(name))


def _intact(outputs: list[str]) -> bool:
    """Whether the files of a job hold the bytes that it wrote, and its inputs the bytes that it read."""
    circumstances = provenance.path_of(outputs[0])
    records = [Path(snakemake_internals.record_path(path)) for path in outputs]
    if not all(path.is_file() for path in [circumstances, *records]):
        return False
    written = json.loads(circumstances.read_text(encoding="utf-8"))["outputs"]
    read = json.loads(records[0].read_text(encoding="utf-8"))["input_checksums"]
    return _hold(written, fingerprints.md5) and _hold(read, lambda path: f"sha256:{fingerprints.sha256(path)}")


def _hold(hashes: dict[str, str], hash_of: Callable[[Path], str]) -> bool:
    return all(Path(path).is_file() and hash_of(Path(path)) == known for path, known in hashes.items())


def _find_server(process: int) -> Path | None:
    """The socket of the server of this process of DVC; None if there can be none.

    Starts the server if there is none yet. Lets `forked_job.delegate` find one that was started before. A running
    server that DVC was given (`forked_job.GIVEN`) takes its place.
    """
    from masquerade.pipeline import fork_server

    if given := os.environ.get(forked_job.GIVEN):
        os.environ[forked_job.ADDRESS] = given
        return Path(given)
    folders = Path(tempfile.gettempdir(), f"masquerade-{os.getuid()}")
    if not _own(folders):
        return None
    address = folders / f"{process}-{start_ticks(process)}" / fork_server.SOCKET
    if address.parent.is_dir():
        os.environ[forked_job.ADDRESS] = str(address)
        return address
    address.parent.mkdir()
    lifeline = os.pidfd_open(process)  # can be read when that process has ended
    server = fork_server.launch(address, lifeline, "workflow")
    os.close(lifeline)
    files.write_text(address.with_name(fork_server.PROCESS), str(server.pid))
    return address


def _own(folder: Path) -> bool:
    """Whether ``folder``, made if it is missing, belongs to this user, who alone may enter it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077


def _user_of_shell(process: int) -> int:
    """The nearest ancestor, ``process`` or above, that is no shell; 0 if there is none."""
    while process > 1:
        status = Path(f"/proc/{process}/status")
        if not status.is_file():
            return 0
        facts = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        if facts["Name"].strip() not in SHELLS:
            return process
        process = int(facts["PPid"])
    return 0
