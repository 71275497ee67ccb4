"""Adds a row for each imported method to the tables of anonymized faces, if the paper has no such row."""

import json
from collections.abc import Mapping

from masquerade.papers.declarations import Row, Table
from masquerade.papers.figure_declarations import Reference
from masquerade.papers.reference import stand_in
from masquerade.params.blocks import ImportedMethod, StandIns


def blocks(text: str) -> dict[str, ImportedMethod]:
    """The blocks ``imported.<name>`` of params.yaml, by their names, from the JSON that the graph passes."""
    return {key.removeprefix("imported."): ImportedMethod(**block) for key, block in json.loads(text).items()}


def add(item: Reference, imported: Mapping[str, ImportedMethod], stand_ins: StandIns) -> Reference:
    """``item`` with one more row for each imported (method, variant) on one of its datasets.

    A row of the paper that names the pair is filled instead. Three kinds of items stay as they are: figures, tables
    that the paper does not print, and tables that also show recovered faces.
    """
    if not isinstance(item, Table) or not _shows_anonymized(item):
        return item
    named = {(row.method, row.variant) for row in item.rows}
    datasets = {stand_in(dataset, stand_ins.datasets) for dataset in item.datasets}
    rows = [
        Row(
            title=method.title if variant == "default" else f"{method.title} ({variant})",
            method=name,
            variant=variant,
            note="images that another program made, imported",
        )
        for name, method in imported.items()
        for variant, sets in method.variants.items()
        if (name, variant) not in named and datasets & sets.keys()
    ]
    return item.model_copy(update={"rows": (*item.rows, *rows)})


def _shows_anonymized(table: Table) -> bool:
    """Whether the paper prints the table and every row and column is of anonymized images."""
    return not (table.ours or any(part.attempt for part in (*table.rows, *table.columns)))
