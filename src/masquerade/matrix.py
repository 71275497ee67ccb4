"""Parameters -> cells (dataset, method, variant, seed), each runnable or skipped with a reason. Never imports torch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from masquerade import discovery
from masquerade.errors import ParameterError
from masquerade.params import Parameters


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
    def path(self) -> str:
        """Its place below every output folder."""
        return f"{self.dataset}/{self.method}/{self.variant}/{self.seed}"


def cells(parameters: Parameters) -> list[Cell]:
    """Every cell that ``matrix.evaluate`` asks for, in a fixed order; then every imported one, which needs no pattern.

    Raises ParameterError for a pattern that matches nothing.
    """
    found = []
    for dataset, patterns in parameters.matrix.evaluate.items():
        offered = [(name, variant) for name, block in parameters.methods.items() for variant in block.variants]
        for pattern in patterns:
            if not any(fnmatchcase(f"{name}/{variant}", pattern) for name, variant in offered):
                raise ParameterError(
                    f"params.yaml: matrix.evaluate.{dataset} asks for '{pattern}', which matches no method/variant. "
                    f"There are: {', '.join('/'.join(pair) for pair in offered)}."
                )
        found += [
            Cell(dataset, name, variant, seed, reason(parameters, dataset, name))
            for name, variant in offered
            if any(fnmatchcase(f"{name}/{variant}", pattern) for pattern in patterns)
            for seed in _seeds(parameters, name)
        ]
    return found + [
        Cell(dataset, name, variant, parameters.seeds[0], _unavailable(parameters, dataset))
        for name, block in parameters.imported.items()
        for variant, sets in block.variants.items()
        for dataset in sets
    ]


def matching(planned: Iterable[Cell], patterns: Mapping[str, Iterable[str]]) -> list[Cell]:
    """The cells that dataset -> patterns ``method/variant`` asks for."""
    return [
        cell
        for cell in planned
        if any(fnmatchcase(f"{cell.method}/{cell.variant}", pattern) for pattern in patterns.get(cell.dataset, ()))
    ]


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


def reason(parameters: Parameters, dataset: str, method: str) -> str:
    """Why ``method`` cannot run on ``dataset`` here; '' where it can."""
    if why := _unavailable(parameters, dataset):
        return why
    cls = discovery.load("methods", method)
    missing = [name for name in cls.needs if name not in parameters.backbones]
    if missing:
        return f"needs the backbone {', '.join(missing)}, which params.yaml does not define"
    if cls.capabilities.gallery and "train" not in discovery.load("faces", parameters.matrix.train_on).splits:
        return f"needs a gallery of other people, and {parameters.matrix.train_on} has no train split"
    return ""


def _unavailable(parameters: Parameters, dataset: str) -> str:
    """Why there are no faces of ``dataset`` here; '' where there are."""
    there, why = discovery.load("faces", dataset)(parameters.datasets[dataset]).available()
    return "" if there else why


def skipped(
    parameters: Parameters, wanted: Iterable[tuple[str, str, str]], planned: Iterable[Cell]
) -> dict[tuple[str, str, str], str]:
    """For each wanted (dataset, method, variant) that no runnable cell gives: the reason, for the table's cell."""
    known = {(cell.dataset, cell.method, cell.variant): cell.reason for cell in planned}
    reasons = {}
    for dataset, method, variant in wanted:
        if (dataset, method, variant) in known:
            why = known[dataset, method, variant]
        elif method in parameters.imported:
            why = f"no pictures of {method}/{variant} were imported for {dataset}"
        elif method not in discovery.names("methods"):
            why = f"{method} is not built yet"
        else:
            why = f"not in the matrix at scale {parameters.scale}"
        if why:
            reasons[dataset, method, variant] = why
    return reasons
