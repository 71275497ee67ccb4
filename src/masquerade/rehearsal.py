"""Rehearsals: the whole pipeline once, to see that it runs; nothing that comes out of one is ever a result.

Where params.yaml says ``rehearsal: true``, every job is told so, and marks what it writes: checkpoints, archives,
measurements and JSON files. What is marked is read by a rehearsal alone, and numbers for tables, figures, claims,
scores and the report are refused whoever asks. The mark is left out where there is no rehearsal.
"""

import os
from collections.abc import Mapping
from typing import Any

from masquerade.errors import RehearsalError

MARK = "rehearsal"
VARIABLE = "MASQUERADE_REHEARSAL"
"""Of the environment of a job that rehearses; set from its parameters, so that its own processes know as well."""


def declare(rehearsing: bool) -> None:
    """Say whether this process, and those that it starts, rehearse."""
    if rehearsing:
        os.environ[VARIABLE] = "1"
    else:
        os.environ.pop(VARIABLE, None)


def on() -> bool:
    """Whether this process rehearses."""
    return os.environ.get(VARIABLE) == "1"


def marked(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of a file that is about to be written, with the mark in a rehearsal."""
    return {**facts, MARK: True} if on() else dict(facts)


def admit(facts: Mapping[str, Any], path: object) -> None:
    """Raise RehearsalError where ``facts`` of a file are marked and this is no rehearsal."""
    if facts.get(MARK) and not on():
        raise RehearsalError(
            f"{path} was made by a rehearsal, with random weights or after a step of training: it is only there to see "
            "that the pipeline runs. Delete it and build it again at a scale whose `rehearsal` is false."
        )


def refuse_tables() -> None:
    """Raise RehearsalError in a rehearsal: it has no tables, figures, claims or report."""
    if on():
        raise RehearsalError(
            "A rehearsal has no tables, figures, claims or report: its numbers mean nothing. It has done its work when "
            "`snakemake all` ends; for results run a scale whose `rehearsal` is false."
        )


def refuse_numbers(facts: Mapping[str, Any], path: object) -> None:
    """Raise RehearsalError where numbers are marked: those of a rehearsal never reach a table, not even its own."""
    if facts.get(MARK):
        raise RehearsalError(
            f"{path} holds numbers of a rehearsal. They mean nothing, and no table, figure, claim, score or report is "
            "made of them. Delete the file and build it again at a scale whose `rehearsal` is false."
        )
