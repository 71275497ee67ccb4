"""Names of the weight files of weights/, which parameters write as ``weights:<name>``.

`masquerade.training.cards` reads the files. This module needs neither torch nor a file.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

FOLDER = "weights"
PREFIX = "weights:"
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)?")


def name_of(published: str) -> str:
    """``generator`` for ``weights:generator``; '' for any other value of a parameter ``published``."""
    return published.removeprefix(PREFIX) if published.startswith(PREFIX) else ""


def _own(published: str) -> str:
    if published and not _NAME.fullmatch(name_of(published)):
        raise ValueError(f"use '{PREFIX}<name>' for a file of {FOLDER}/, such as '{PREFIX}riddle', or '' to train it")
    return published


OwnWeights = Annotated[str, AfterValidator(_own)]
"""A parameter ``published`` that can name weights of weights/ alone: ``weights:<name>``, or '' for a training."""
