"""Parameters -> cells (dataset, method, variant, seed), each runnable or skipped with a reason. Never imports torch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from masquerade import discovery
from masquerade.errors import ParameterError
from masquerade.params import Parameters

Setting = tuple[str, str, str]
"""(dataset, method, variant): the cells of all seeds, which a table shows as one."""


@dataclass(frozen=True, order=True)
class Cell:
    """One anonymization of one dataset's test split. ``reason`` says why it is skipped; '' where it is runnable."""

    dataset: str
    method: str
    variant: str
    seed: int
    reason: str = ""

    @property
    def runnable(self) -> bool:
        return not self.reason

    @property
    def setting(self) -> Setting:
        return self.dataset, self.method, self.variant

    @property
    def path(self) -> str:
        """Its place below every output folder."""
        return f"{self.dataset}/{self.method}/{self.variant}/{self.seed}"


def cells(parameters: Parameters, as_if_placed: bool = False) -> list[Cell]:
    """Every cell that ``matrix.evaluate`` asks for, in a fixed order; then every imported one, which needs no pattern.

    ``as_if_placed``: as if the files of every dataset were there. Raises ParameterError for a pattern that matches
    nothing.
    """
    offered = {
        f"{name}/{variant}": (name, variant) for name, block in parameters.methods.items() for variant in block.variants
    }
    seeds = {name: _seeds(parameters, name) for name in parameters.methods}
    found = []
    for dataset, patterns in parameters.matrix.evaluate.items():
        wanted = set()
        for pattern in patterns:
            matched = [pair for pair in offered if fnmatchcase(pair, pattern)]
            if not matched:
                raise ParameterError(
                    f"params.yaml: matrix.evaluate.{dataset} asks for '{pattern}', which matches no method/variant. "
                    f"There are: {', '.join(offered)}."
                )
            wanted.update(matched)
        names = {offered[pair][0] for pair in wanted}
        reasons = {name: reason(parameters, dataset, name, as_if_placed) for name in names}
        found += [
            Cell(dataset, name, variant, seed, reasons[name])
            for pair, (name, variant) in offered.items()
            if pair in wanted
            for seed in seeds[name]
        ]
    return found + [
        Cell(dataset, name, variant, parameters.seeds[0], unavailable(parameters, dataset))
        for name, block in parameters.imported.items()
        for variant, sets in block.variants.items()
        for dataset in sets
    ]


def matching(planned: Iterable[Cell], patterns: Mapping[str, Iterable[str]]) -> list[Cell]:
    """The cells that dataset -> patterns ``method/variant`` asks for."""

    @cache
    def asked(dataset: str, pair: str) -> bool:
        return any(fnmatchcase(pair, pattern) for pattern in patterns.get(dataset, ()))

    return [cell for cell in planned if asked(cell.dataset, f"{cell.method}/{cell.variant}")]


def by_setting(planned: Iterable[Cell]) -> dict[Setting, list[Cell]]:
    """The cells of each setting, in their order."""
    found: dict[Setting, list[Cell]] = {}
    for cell in planned:
        found.setdefault(cell.setting, []).append(cell)
    return found


def chosen(planned: Mapping[Setting, list[Cell]], wanted: Iterable[Setting]) -> list[Cell]:
    """The cells of the wanted settings, in the order of the matrix."""
    wanted = set(wanted)
    return [cell for setting, cells in planned.items() if setting in wanted for cell in cells]


def _seeds(parameters: Parameters, method: str) -> Iterable[int]:
    return parameters.seeds[:1] if runs_once(method) else parameters.seeds


def runs_once(method: str) -> bool:
    """Whether the seed changes nothing of a method, neither training nor key nor result: the first stands for all.

    So it is with pictures that were imported.
    """
    if method not in discovery.names("methods"):
        return True
    able = discovery.load("methods", method).capabilities
    return able.deterministic and not (able.trains or able.keys)


def reason(parameters: Parameters, dataset: str, method: str, as_if_placed: bool = False) -> str:
    """Why ``method`` cannot run on ``dataset`` here; '' where it can."""
    if not as_if_placed and (why := unavailable(parameters, dataset)):
        return why
    cls = discovery.load("methods", method)
    missing = [name for name in cls.needs if name not in parameters.backbones]
    if missing:
        return f"needs the backbone {', '.join(missing)}, which params.yaml does not define"
    if cls.capabilities.gallery and "train" not in discovery.load("faces", parameters.matrix.train_on).splits:
        return f"needs a gallery of other people, and {parameters.matrix.train_on} has no train split"
    return ""


def unavailable(parameters: Parameters, dataset: str) -> str:
    """Why there are no faces of ``dataset`` here; '' where there are."""
    there, why = discovery.load("faces", dataset)(parameters.datasets[dataset]).available()
    return "" if there else why


def skipped(
    parameters: Parameters, wanted: Iterable[Setting], planned: Mapping[Setting, list[Cell]]
) -> dict[Setting, str]:
    """For each wanted setting that no runnable cell gives: the reason, for the table's cell."""
    built, reasons = discovery.names("methods"), {}
    for setting in wanted:
        if setting in planned:
            why = planned[setting][0].reason
        elif setting[1] in parameters.imported:
            why = f"no pictures of {setting[1]}/{setting[2]} were imported for {setting[0]}"
        elif setting[1] not in built:
            why = f"{setting[1]} is not built yet"
        else:
            why = f"not in the matrix at scale {parameters.scale}"
        if why:
            reasons[setting] = why
    return reasons
