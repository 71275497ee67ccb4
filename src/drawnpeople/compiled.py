"""How the kernels of the renderer are compiled and kept."""

import hashlib
import os
from pathlib import Path

import numba

_FOLDER = Path(__file__).parent
if not numba.config.CACHE_DIR and os.access(_FOLDER, os.W_OK):  # pyright: ignore[reportAttributeAccessIssue]
    # Numba compiles a kernel again if its own file changes, and not if the file of a kernel that it calls does.
    # So the compiled kernels lie in a folder that is named after the sources of all.
    _digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(_FOLDER.glob("*.py"))))
    _cache = _FOLDER / "__pycache__" / _digest.hexdigest()[:16]
    numba.config.CACHE_DIR = str(_cache)  # pyright: ignore[reportAttributeAccessIssue]

kernel = numba.njit(cache=True, fastmath=False, error_model="numpy")
"""The decorator of every kernel of the renderer."""
