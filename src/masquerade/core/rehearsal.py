"""Rehearsals: runs of the whole pipeline that only test that it works. No output of a rehearsal is a result.

With ``rehearsal: true`` in params.yaml, every job marks the files that it writes: checkpoints, archives, measurements
and JSON files. Only a rehearsal can read a marked file, and marked numbers never reach a table, figure, claim, score or
report. Other runs write no mark.
"""

import os
from collections.abc import Mapping
from typing import Any

from masquerade.core.errors import RehearsalError

MARK = "rehearsal"
VARIABLE = "MASQUERADE_REHEARSAL"
"""Environment variable of a rehearsing job, set from its parameters. The processes that the job starts inherit it."""


def declare_rehearsal(rehearsing: bool) -> None:
    """Set whether this process, and the processes that it starts, rehearse."""
    if rehearsing:
        os.environ[VARIABLE] = "1"
    else:
        os.environ.pop(VARIABLE, None)


def is_rehearsing() -> bool:
    """Whether this process rehearses."""
    return os.environ.get(VARIABLE) == "1"


def mark(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata for a file to be written, with the mark in a rehearsal."""
    return {**metadata, MARK: True} if is_rehearsing() else dict(metadata)


def admit(metadata: Mapping[str, Any], path: object) -> None:
    """Raises RehearsalError if the ``metadata`` of a file is marked and this is no rehearsal."""
    if metadata.get(MARK) and not is_rehearsing():
        raise RehearsalError(
            f"{path} was made by a rehearsal, with random weights or after a step of training, only to test that the "
            "pipeline runs. Delete it and build it again at a scale whose `rehearsal` is false."
        )


def refuse_tables() -> None:
    """Raises RehearsalError in a rehearsal, which has no tables, figures, claims or report."""
    if is_rehearsing():
        raise RehearsalError(
            "A rehearsal has no tables, figures, claims or report: its numbers mean nothing. It is complete when "
            "`snakemake all` ends. For results run a scale whose `rehearsal` is false."
        )


def refuse_numbers(metadata: Mapping[str, Any], path: object) -> None:
    """Raises RehearsalError if numbers are marked, in a rehearsal too, because no table may use them."""
    if metadata.get(MARK):
        raise RehearsalError(
            f"{path} holds numbers of a rehearsal. They mean nothing, so no table, figure, claim, score or report "
            "may use them. Delete the file and build it again at a scale whose `rehearsal` is false."
        )
