"""Rows of imported methods: every table of anonymized faces has one of each that its paper does not name."""

import json
from collections.abc import Mapping

from masquerade.imported.settings import ImportedMethod
from masquerade.papers.reference import Reference, Row, Table, stand_in
from masquerade.params import StandIns


def read(text: str) -> dict[str, ImportedMethod]:
    """The blocks ``imported.<name>`` of params.yaml, by their names, from the JSON that the graph passes."""
    return {key.removeprefix("imported."): ImportedMethod(**block) for key, block in json.loads(text).items()}


def seated(item: Reference, imported: Mapping[str, ImportedMethod], stand_ins: StandIns) -> Reference:
    """``item``, a table with a row of ours for each imported (method, variant) of one of its datasets.

    A row of the paper that names the pair is filled, and no other is added. A table that also shows faces that were
    brought back, one that no paper prints, and all that is no table stay as they are.
    """
    if not isinstance(item, Table) or not _of_anonymized(item):
        return item
    named = {(row.method, row.variant) for row in item.rows}
    here = {stand_in(dataset, stand_ins.datasets) for dataset in item.datasets}
    added = [
        Row(
            title=method.title if variant == "default" else f"{method.title} ({variant})",
            method=name,
            variant=variant,
            note="pictures that another program made, imported",
        )
        for name, method in imported.items()
        for variant, sets in method.variants.items()
        if (name, variant) not in named and here & sets.keys()
    ]
    return item.model_copy(update={"rows": (*item.rows, *added)})


def _of_anonymized(table: Table) -> bool:
    return not (table.ours or any(shown.attempt for shown in (*table.rows, *table.columns)))
