"""The number of CPU threads of the libraries that compute."""

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Libraries read these environment variables when they are loaded."""


_WITH_POOLS = ("numpy", "scipy", "torch", "sklearn", "cv2", "dlib")
"""Packages that load libraries with threads of their own."""


def limit(number: int) -> None:
    """Let the libraries use ``number`` threads: those that are loaded later, and those that are loaded already."""
    os.environ |= dict.fromkeys(VARIABLES, str(number))
    if "numpy" in sys.modules:
        _pools(tuple(name for name in _WITH_POOLS if name in sys.modules)).limit(limits=number)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(number)


@cache
def _pools(_packages: tuple[str, ...]) -> "ThreadpoolController":
    """The libraries that are loaded together with these packages: finding them takes 20 ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
