"""The number of CPU threads of the libraries that compute."""

import os
import sys

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Libraries read these environment variables when they are loaded."""


def limit(number: int) -> None:
    """Let the libraries use ``number`` threads: those that are loaded later, and those that are loaded already."""
    os.environ |= dict.fromkeys(VARIABLES, str(number))
    if "numpy" in sys.modules:
        import threadpoolctl

        threadpoolctl.threadpool_limits(number)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(number)
