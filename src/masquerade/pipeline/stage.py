"""The command of a DVC stage: Snakemake makes the one job of the stage.

Importing Snakemake, MLflow and PyTorch takes a stage some seconds. ``dvc repro`` runs its stages one after the other.
The first one runs by itself, and starts a fork server beside. The later ones are forks of it, and so are their jobs.
The server ends with the process of DVC. By hand, the same command runs by itself.
"""

import os
import stat
import sys
import tempfile
from pathlib import Path

from masquerade.lineage.tracking import start_ticks
from masquerade.pipeline import forked_job

OPTIONS = ("--quiet", "rules", "progress", "--cores", "all", "--force", "--rerun-incomplete", "--allowed-rules")
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")
OF_DVC = "DVC_STAGE"
"""DVC sets this variable for the command of a stage."""


def run(rule: str, outputs: list[str]) -> None:
    """Make the files of one job with Snakemake. Does not return."""
    if OF_DVC in os.environ:
        _find_server()
    sys.argv = [str(Path(sys.executable).with_name("snakemake")), *OPTIONS, rule, "--", *outputs]
    forked_job.delegate(pass_on=True)
    os.execv(sys.argv[0], sys.argv)


def _find_server() -> None:
    """Let `forked_job.delegate` find the server of this process of DVC. Start the server if there is none yet."""
    from masquerade.pipeline import fork_server

    process = _user_of_shell(os.getppid())
    folders = Path(tempfile.gettempdir(), f"masquerade-{os.getuid()}")
    if not process or not hasattr(os, "pidfd_open") or not _own(folders):
        return
    address = folders / f"{process}-{start_ticks(process)}" / fork_server.SOCKET
    if address.parent.is_dir():
        os.environ[forked_job.ADDRESS] = str(address)
        return
    address.parent.mkdir()
    lifeline = os.pidfd_open(process)  # can be read when that process has ended
    fork_server.launch(address, lifeline, "workflow")
    os.close(lifeline)


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
