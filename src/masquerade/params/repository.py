"""Finds the repository of a call: the folder with params.yaml, scales/, weights/ and what was built."""

import os
from pathlib import Path

from masquerade.core.errors import ParameterError
from masquerade.params.blocks import PARAMS


def find(given: str | os.PathLike[str] | None = None) -> Path:
    """The repository ``given``, else the current folder. Raises ParameterError if it has no params.yaml."""
    root = Path(str(given or ""))
    if not (root / PARAMS).is_file():
        raise ParameterError(f"{root / PARAMS} is missing. Run this in a clone of Masquerade, or name one as its root.")
    return root
