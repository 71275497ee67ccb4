"""Collect every number of every cell for `dvc metrics diff` and `dvc exp show`."""

import json

from masquerade import scores, steps

given = steps.arguments(__doc__, lists=("metrics",))


def work(_) -> None:
    cells = [json.loads(path.read_text(encoding="utf-8")) for path in given.metrics]
    steps.write_json(given.outputs[0], scores.collected(cells))


if __name__ == "__main__":
    steps.main("scores", given, work)
