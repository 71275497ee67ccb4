"""Every number of every cell in one file, for `dvc metrics diff` and `dvc exp show`."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any


def collected(cells: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """dataset -> method/variant -> metric.judge -> the mean over the seeds that gave a number.

    ``cells``: what `evaluation.row` makes of each. Their spreads and denominators stand in their own files.
    """
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for cell in cells:
        where = cell["cell"]
        numbers = found.setdefault((where["dataset"], f"{where['method']}/{where['variant']}"), {})
        for metric, values in cell["metrics"].items():
            for judge, value in values.items():
                if value["value"] is not None:
                    numbers.setdefault(f"{metric}.{judge}".rstrip("."), []).append(value["value"])
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for (dataset, name), numbers in sorted(found.items()):
        scores.setdefault(dataset, {})[name] = {metric: fmean(values) for metric, values in numbers.items()}
    return scores
