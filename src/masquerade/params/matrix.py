"""The matrix of cells (dataset, method, variant, seed): which are runnable, and why the others are skipped.

``matrix.evaluate`` of params.yaml selects the cells by patterns::

    evaluate: {synthetic_hq: ["falco/*"]}
    Cell(dataset="synthetic_hq", method="falco", variant="m_0", seed=0)     # .path == "synthetic_hq/falco/m_0/0"
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePath
from typing import Any, Literal

from masquerade.core import discovery
from masquerade.core.discovery import IMPORTED
from masquerade.core.errors import ParameterError
from masquerade.params.parameters import Parameters
from masquerade.params.paths import CELL, Paths

Setting = tuple[str, str, str]
"""(dataset, method, variant). A table combines the cells of all seeds of a setting in one number."""


@dataclass(frozen=True, order=True)
class Cell:
    """One anonymization of one dataset's test split. ``find_obstacle``: why it is skipped, or '' if it is runnable."""

    dataset: str
    method: str
    variant: str
    seed: int
    reason: str = ""

    @classmethod
    def of(cls, kind: str, path: PurePath) -> "Cell":
        """The cell whose file of this kind lies at ``path`` (`Paths.parse`)."""
        names = Paths.parse(kind, path)
        return cls(names["dataset"], names["method"], names["variant"], int(names["seed"]))

    @property
    def runnable(self) -> bool:
        return not self.reason

    @property
    def setting(self) -> Setting:
        return self.dataset, self.method, self.variant

    @property
    def path(self) -> str:
        """The path of the cell below every folder that has one file for each cell."""
        return CELL.format(**vars(self))


def plan_cells(parameters: Parameters, as_if_placed: bool = False) -> list[Cell]:
    """Every cell that matches ``matrix.evaluate``, in a fixed order, and then every imported cell.

    ``as_if_placed``: take the files of every dataset as present. Raises ParameterError if a pattern matches nothing.
    """
    pairs = {
        f"{name}/{variant}": (name, variant)
        for name, block in parameters.methods.items()
        for variant in block.variants
        if name != IMPORTED
    }
    seeds = {name: parameters.seeds[:1] if runs_once(name) else parameters.seeds for name in parameters.methods}
    cells = []
    for dataset, patterns in parameters.matrix.evaluate.items():
        evaluated = set()
        for pattern in patterns:
            matches = [pair for pair in pairs if fnmatchcase(pair, pattern)]
            if not matches:
                raise ParameterError(
                    f"params.yaml: matrix.evaluate.{dataset} has the pattern '{pattern}', which matches no "
                    f"method/variant. Known: {', '.join(pairs)}."
                )
            evaluated.update(matches)
        names = {pairs[pair][0] for pair in evaluated}
        reasons = {name: find_obstacle(parameters, dataset, name, as_if_placed) for name in names}
        cells += [
            Cell(dataset, name, variant, seed, reasons[name])
            for pair, (name, variant) in pairs.items()
            if pair in evaluated
            for seed in seeds[name]
        ]
    return cells + [
        Cell(dataset, IMPORTED, variant, parameters.seeds[0], explain_absence(parameters, dataset))
        for variant, images in list_imported(parameters).items()
        for dataset in images.images
    ]


def list_imported(parameters: Parameters) -> Mapping[str, Any]:
    """What other programs made, by the name of the variant."""
    return parameters.methods[IMPORTED].variants if IMPORTED in parameters.methods else {}


def select_imported(cells: Iterable[Cell]) -> list[Cell]:
    """The cells whose images another program made."""
    return [cell for cell in cells if cell.method == IMPORTED]


def select_matching(cells: Iterable[Cell], patterns: Mapping[str, Iterable[str]]) -> list[Cell]:
    """The cells that match ``patterns``: dataset -> patterns ``method/variant``. Imported cells match none."""

    @cache
    def matches(dataset: str, pair: str) -> bool:
        return any(fnmatchcase(pair, pattern) for pattern in patterns.get(dataset, ()))

    return [
        cell for cell in cells
        if cell.method != IMPORTED and matches(cell.dataset, f"{cell.method}/{cell.variant}")
    ]  # fmt: skip


def select_by_protocol(
    parameters: Parameters, cells: Sequence[Cell], protocol: Literal["attributes", "recovery"]
) -> list[Cell]:
    """The cells to which a protocol applies: those of its patterns, and what other programs made of its datasets.

    The recovery protocol applies only to programs that recovered faces.
    """
    patterns, programs = getattr(parameters, protocol).cells, list_imported(parameters)
    imported = [
        cell for cell in select_imported(cells)
        if cell.dataset in patterns and (protocol != "recovery" or programs[cell.variant].recovers)
    ]  # fmt: skip
    return select_matching(cells, patterns) + imported


def group_by_setting(cells: Iterable[Cell]) -> dict[Setting, list[Cell]]:
    """The cells of each setting, in their order."""
    settings: dict[Setting, list[Cell]] = {}
    for cell in cells:
        settings.setdefault(cell.setting, []).append(cell)
    return settings


def select_settings(cells_of: Mapping[Setting, list[Cell]], settings: Iterable[Setting]) -> list[Cell]:
    """The cells of ``settings``, in the order of ``cells_of``."""
    settings = set(settings)
    return [cell for setting, cells in cells_of.items() if setting in settings for cell in cells]


def runs_once(method: str) -> bool:
    """Whether a method has cells of the first seed only, because the seed changes neither training, key nor result."""
    capabilities = discovery.load("methods", method).capabilities
    return capabilities.deterministic and not (capabilities.trains or capabilities.keys)


def find_obstacle(parameters: Parameters, dataset: str, method: str, as_if_placed: bool = False) -> str:
    """Why ``method`` cannot run on ``dataset``, or '' if it can."""
    if not as_if_placed and (why := explain_absence(parameters, dataset)):
        return why
    cls = discovery.load("methods", method)
    missing = [name for name in parameters.needs(method) if name not in parameters.backbones]
    if missing:
        return f"needs the backbone {', '.join(missing)}, which params.yaml does not define"
    if cls.capabilities.gallery and "train" not in discovery.load("faces", parameters.matrix.train_on).splits:
        return f"needs a gallery of other people, and {parameters.matrix.train_on} has no train split"
    return ""


def explain_absence(parameters: Parameters, dataset: str) -> str:
    """Why the faces of ``dataset`` are not available, or '' if they are."""
    available, why = discovery.load("faces", dataset)(parameters.datasets[dataset]).available()
    return "" if available else why


def explain_skipped(
    parameters: Parameters, settings: Iterable[Setting], cells_of: Mapping[Setting, list[Cell]]
) -> dict[Setting, str]:
    """Setting -> why it has no runnable cell, for the cell of the table. Settings with runnable cells are left out."""
    built, reasons = discovery.list_names("methods"), {}
    for setting in settings:
        if setting in cells_of:
            why = cells_of[setting][0].reason
        elif setting[1] == IMPORTED:
            why = f"no images of {setting[2]} were imported for {setting[0]}"
        elif setting[1] not in built:
            why = f"{setting[1]} is not built yet"
        else:
            why = f"not in the matrix at scale {parameters.scale}"
        if why:
            reasons[setting] = why
    return reasons
