"""What makes a run give the same bytes each time: seeds, and what PyTorch needs on a GPU (`compute.deterministic`).

Random numbers depend on a seed and a purpose, and not on the order or the batch in which they are drawn. On one kind of
GPU, with one version of PyTorch, a seed gives the same bytes. On a processor it does so anyway, and nothing is set.
`masquerade.networks.deterministic` has the operations that PyTorch cannot compute in that way.
"""

import hashlib
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from masquerade.core.errors import MasqueradeError


def derive_seed(seed: int, *parts: object) -> int:
    """A 63-bit seed for the purpose ``parts``, e.g. ``derive(0, "noise", picture_id)``."""
    text = "\x1f".join([str(seed), *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def make_generator(seed: int, *parts: object) -> np.random.Generator:
    """A NumPy generator with the seed of `derive_seed`."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *parts)))


DETERMINISM_VARIABLE = "MASQUERADE_DETERMINISTIC"
"""Environment variable with the parameter, 0 or 1 (the default). The processes that this one starts inherit it."""
_REFUSED = re.compile(r"(\S+) does not have a deterministic implementation")
_PACKAGE = Path(__file__).parents[1]
_CALLERS = 3
"""So many modules of the traceback are named in the error."""


class NondeterministicError(MasqueradeError):
    """A deterministic run met an operation that PyTorch cannot compute so on a GPU."""


def declare_determinism(deterministic: bool) -> None:
    """Set whether this process, and the processes that it starts, compute deterministically on a GPU."""
    os.environ[DETERMINISM_VARIABLE] = str(int(deterministic))


def prepare_gpu() -> None:
    """Set what PyTorch needs. `masquerade.networks.inputs.device` calls this, before a kernel runs on the GPU.

    A deterministic process takes one algorithm for each operation and raises an error where PyTorch has none, and it
    computes convolutions in 32 bits, because TF32 would make a face depend on its batch.
    """
    import torch

    deterministic = os.environ.get(DETERMINISM_VARIABLE, "1") != "0"
    if deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # of two values that PyTorch accepts, the faster one
    # unlike use_deterministic_algorithms, this does not import the compiler, which takes seconds
    torch.set_deterministic_debug_mode("error" if deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = not deterministic
    torch.backends.cuda.matmul.allow_tf32 = False


@contextmanager
def explain_nondeterminism() -> Iterator[None]:
    """Raises PyTorch's error about an operation without a deterministic version as NondeterministicError."""
    try:
        yield
    except RuntimeError as error:
        if not (refused := _REFUSED.search(str(error))):
            raise
        raise NondeterministicError(
            f"{refused[1]} has no deterministic version on a GPU, and this run is deterministic. It was called by "
            f"{_callers(error)}. Set `compute.deterministic` to false (params.yaml): the run then works, but the same "
            "seed gives other bytes each time."
        ) from error


def _callers(error: BaseException) -> str:
    """Our modules in the traceback of an error, the innermost first, without repetitions."""
    files = (Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__))
    ours = [file for file in files if file.is_relative_to(_PACKAGE) and file != Path(__file__)]
    names = (".".join(file.relative_to(_PACKAGE.parent).with_suffix("").parts) for file in reversed(ours))
    return ", from ".join(list(dict.fromkeys(names))[:_CALLERS]) or "code outside of Masquerade"
