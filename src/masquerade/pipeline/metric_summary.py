"""Summarizes the metrics of all cells in one tree, for `dvc metrics diff` and `dvc exp show`."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any


def summarize(cells: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """dataset -> method/variant -> metric.judge -> the mean over the seeds with a number.

    ``cells``: the trees of `evaluation.row`. Spreads and denominators are in the file of each cell.
    """
    values_of_cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    for tree in cells:
        cell = tree["cell"]
        numbers = values_of_cells.setdefault((cell["dataset"], f"{cell['method']}/{cell['variant']}"), {})
        for metric, values in tree["metrics"].items():
            for judge, value in values.items():
                if value["value"] is not None:
                    numbers.setdefault(f"{metric}.{judge}".rstrip("."), []).append(value["value"])
    summary: dict[str, dict[str, dict[str, float]]] = {}
    for (dataset, name), numbers in sorted(values_of_cells.items()):
        summary.setdefault(dataset, {})[name] = {metric: fmean(values) for metric, values in numbers.items()}
    return summary
