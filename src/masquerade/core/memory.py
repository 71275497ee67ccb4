"""How the C library treats the memory of freed tensors."""

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h."""
LARGE = 2**31 - 1


def keep_freed() -> None:
    """Keep freed memory for the next tensors, in this process and its forks. Without glibc nothing happens.

    Otherwise glibc gives large tensors back to the kernel, which clears new pages for the next ones. That takes a fifth
    of the time of an optimization of one picture.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGE)
        mallopt(TRIM_THRESHOLD, LARGE)


def give_back() -> None:
    """Give the memory that `keep_freed` kept back to the kernel. Without glibc nothing happens."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
