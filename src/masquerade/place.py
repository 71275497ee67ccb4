"""Which of the processes of one training this is. Needs no torch: whoever writes a record asks."""

import os
from typing import NamedTuple

from masquerade.errors import MasqueradeError


class Place(NamedTuple):
    """Where a process stands among the ``count`` of its training; ``local``: among those of its node."""

    rank: int
    count: int
    local: int
    address: str
    """Of the first, by which the others find it."""
    port: int


LOST = "another process of this training has ended"
"""How an error begins that is not the cause; that one is in the log of the other process."""
ALONE = Place(0, 1, 0, "", 0)


def here() -> Place:
    """As submitit's environment says inside one of its jobs, else as torchrun's; else alone.

    SLURM's own variables are not asked: an interactive session of several tasks has them too, and in one of these a
    person trains alone. Raises MasqueradeError where torchrun's are incomplete.
    """
    if "SUBMITIT_EXECUTOR" in os.environ:
        from submitit.helpers import JobEnvironment, TorchDistributedEnvironment

        if JobEnvironment().num_tasks == 1:
            return ALONE
        found = TorchDistributedEnvironment()
        one_node = found.local_world_size == found.world_size
        address = "127.0.0.1" if one_node else found.master_addr  # a node need not find itself by its name
        return Place(found.rank, found.world_size, found.local_rank, address, found.master_port)
    if "WORLD_SIZE" in os.environ:
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "MASTER_ADDR")
        missing = [name for name in names if name not in os.environ]
        if missing:
            raise MasqueradeError(
                f"WORLD_SIZE is set, and {', '.join(missing)} not: start this with torchrun, or unset it."
            )
        rank, total, local, port = (int(os.environ[name]) for name in names[:4])
        return Place(rank, total, local, os.environ["MASTER_ADDR"], port)
    return ALONE
