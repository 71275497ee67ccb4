"""What a paper prints, rebuilt: tables and figures, the printed value beside the measured one."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from masquerade import lineage, rehearsal

if TYPE_CHECKING:
    from masquerade.papers.measured import Context
    from masquerade.papers.reference import Need


def context(params: Mapping[str, Any]) -> "Context":
    """What a reader must know of a run, from the slice of the parameters that a table or figure gets.

    Raises RehearsalError in a rehearsal, which has neither.
    """
    rehearsal.refuse_tables()
    from masquerade.papers.measured import Context
    from masquerade.params import StandIns

    return Context(
        scale=params["scale"],
        seeds=tuple(params["seeds"]),
        stand_ins=StandIns(**params["stand_ins"]),
        commit=lineage.commit(),
        caution=params["caution"],
    )


def skipped(text: str) -> "dict[Need, str]":
    """(dataset, method, variant) -> why it was not run, from the JSON that the graph passes."""
    return {tuple(cell): reason for *cell, reason in json.loads(text)}
