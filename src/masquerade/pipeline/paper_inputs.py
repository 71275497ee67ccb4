"""Finds which cells each table, figure and claim of the papers needs, and why other cells are missing."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from masquerade.papers import claims, reference
from masquerade.papers.declarations import Need, Table
from masquerade.papers.figure_declarations import Reference
from masquerade.params import matrix
from masquerade.params.matrix import Cell, Setting
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths


class PaperInputs:
    """The tables, figures and claims of the papers of one scale. ``attempted``: the cells whose faces are recovered.

    Raises ReferenceFileError if a file of reference/ is wrong.
    """

    def __init__(self, parameters: Parameters, paths: Paths, cells: Sequence[Cell], attempted: Sequence[Cell]):
        self.parameters, self.paths = parameters, paths
        self.datasets = parameters.stand_ins.datasets
        declared = [item for paper in parameters.papers for item in reference.find(paper)]
        self.items: dict[str, Any] = {
            item.key: reference.add_imported_rows(item, parameters.imported, parameters.stand_ins) for item in declared
        }
        self.claims = claims.of_papers(claims.load(), parameters.papers)
        self._planned = matrix.group_by_setting(cells)
        self._runnable = matrix.group_by_setting(cell for cell in cells if cell.runnable)
        self._attempted = matrix.group_by_setting(attempted)
        figures = [item for item in self.items.values() if item.kind == "clusters"]
        self.clustered = {setting for item in figures for setting in self.settings(item)}

    def names(self, *kinds: str) -> str:
        """A regular expression for the items of these kinds.

        It includes the paper: Figure 4 is a figure of curves in one paper and a grid of pictures in another.
        """
        matching = [item for item in self.items.values() if item.kind in kinds]
        return "|".join(sorted(f"(?<=/{item.paper}/){item.name}" for item in matching)) or "none"

    def item(self, wildcards: Any) -> Any:
        """The table or figure of the wildcards ``paper`` and ``item``."""
        return self.items[f"{wildcards.paper}/{wildcards.item}"]

    def outputs(self, item: Any) -> list[str]:
        """The files of a table or figure. The report reads the first one."""
        pattern = self.paths.table if item.kind == "table" else self.paths.figure
        return [f"{pattern}.{ending}".format(paper=item.paper, item=item.name) for ending in item.endings]

    def settings(self, item: Reference, needs: Callable[..., list[Need]] = reference.needs) -> list[Setting]:
        """The (dataset, method, variant) that an item shows, with the datasets that stand in at this scale."""
        stand_ins = {named.role: reference.stand_in(named, self.datasets) for named in reference.datasets(item)}
        planned = {
            (method, variant): None for dataset, method, variant in self._planned if dataset in stand_ins.values()
        }
        return [(stand_ins[role], method, variant) for role, method, variant in needs(item, planned)]

    def all_settings(self) -> list[Setting]:
        """The (dataset, method, variant) of every table and figure."""
        return [setting for item in self.items.values() for setting in self.settings(item)]

    def claimed_settings(self) -> list[Setting]:
        """The (dataset, method, variant) of every number that the claims compare."""
        needs = claims.needs(self.claims)
        return [(self.datasets.get(role, role), method, variant) for role, method, variant in needs]

    def files(self, pattern: str, settings: Iterable[Setting], attempts: bool = False) -> list[str]:
        """The files of the cells that have one of ``settings``: runnable cells, or cells with ``attempts``."""
        offered = self._attempted if attempts else self._runnable
        return [pattern.format(**vars(cell)) for cell in matrix.select_settings(offered, settings)]

    def shown(self, pattern: str, attempts: bool = False) -> Callable[[Any], list[str]]:
        """Input function: the files of the cells that the wildcards' table or figure shows."""
        needs = reference.list_attempts if attempts else reference.needs
        return lambda wildcards: self.files(pattern, self.settings(self.item(wildcards), needs), attempts)

    def source(self, pattern: str) -> Callable[[Any], str]:
        """Input function: the file of the dataset that the wildcards' figure shows first."""
        return lambda wildcards: pattern.format(dataset=self.settings(self.item(wildcards))[0][0])

    def if_chosen_by_distance(self, files: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Input function: ``files``, if the wildcards' grid selects its faces by distance; else []."""
        return lambda wildcards: files(wildcards) if self.item(wildcards).choose == "closest_to_mean" else []

    def reasons(self, settings: Iterable[Setting]) -> str:
        """Why some of ``settings`` have no runnable cell: JSON of [dataset, method, variant, reason]."""
        skipped = matrix.explain_skipped(self.parameters, settings, self._planned)
        return json.dumps([[*setting, reason] for setting, reason in sorted(skipped.items())])

    def not_shown(self, wildcards: Any) -> str:
        """The `reasons` for the wildcards' table or figure."""
        return self.reasons(self.settings(self.item(wildcards)))

    def imported(self, tables: Iterable[Table]) -> str:
        """The blocks of the imported methods in the rows of ``tables``, as one JSON string."""
        methods = {row.method for table in tables for row in table.rows}
        keys = tuple(f"imported.{name}" for name in self.parameters.imported if name in methods)
        return json.dumps(self.parameters.slice(keys), sort_keys=True)
