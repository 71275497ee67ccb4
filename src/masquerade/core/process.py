"""The rank of this process among the processes of one training. Imports no torch, so that records can use it too."""

import os
import signal
import subprocess
from typing import NamedTuple

from masquerade.core.errors import MasqueradeError


class Process(NamedTuple):
    """One of the ``count`` processes of a training. ``local_rank``: its rank among the processes of its node."""

    rank: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field hides the method of tuples
    local_rank: int
    address: str
    """Address of the process with rank 0, which the others connect to."""
    port: int


LOST = "another process of this training has ended"
"""The first words of an error that is only a consequence; the cause is in the log of the other process."""
ALONE = Process(0, 1, 0, "", 0)


def current() -> Process:
    """This process: by submitit's environment inside one of its jobs, else by torchrun's, else `ALONE`.

    SLURM's own variables are ignored, because an interactive session with several tasks sets them for a training of one
    process too. Raises MasqueradeError if torchrun's variables are incomplete.
    """
    if "SUBMITIT_EXECUTOR" in os.environ:
        from submitit.helpers import JobEnvironment, TorchDistributedEnvironment

        if JobEnvironment().num_tasks == 1:
            return ALONE
        environment = TorchDistributedEnvironment()
        one_node = environment.local_world_size == environment.world_size
        address = "127.0.0.1" if one_node else environment.master_addr  # a node may not resolve its own name
        return Process(
            environment.rank, environment.world_size, environment.local_rank, address, environment.master_port
        )
    if "WORLD_SIZE" in os.environ:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "MASTER_ADDR")
        missing = [name for name in names if name not in os.environ]
        if missing:
            raise MasqueradeError(
                f"WORLD_SIZE is set, but {', '.join(missing)} not. Start this with torchrun, or unset WORLD_SIZE."
            )
        rank, total, local, port = (int(os.environ[name]) for name in names[:4])
        return Process(rank, total, local, os.environ["MASTER_ADDR"], port)
    return ALONE


REQUEUED = -1
"""The status with which submitit ends a process whose job SLURM has requeued."""


def requeued(error: BaseException | None) -> SystemExit | None:
    """What ends this process if ``error`` comes from submitit, which has requeued its job; otherwise None.

    submitit raises SystemExit in its handler of signals, so wherever the program is. SLURM ends a job as soon as it has
    accepted the request, sometimes before ``scontrol`` returns: then the handler's error is that of ``scontrol``.
    Compiled code that is being imported turns either into an ImportError, so the causes of ``error`` count too.
    """
    while error is not None:
        if isinstance(error, SystemExit) and not isinstance(error.code, str):
            return error
        if (
            isinstance(error, subprocess.CalledProcessError)
            and list(error.cmd[:2]) == ["scontrol", "requeue"]
            and error.returncode == -signal.SIGTERM
        ):
            return SystemExit(REQUEUED)
        error = error.__cause__ or error.__context__
    return None
