"""Collect every number of every cell for `dvc metrics diff` and `dvc exp show`."""

from masquerade import scores, steps

given = steps.arguments(__doc__, lists=("metrics",))


def work(_) -> None:
    cells = steps.read_numbers(given.metrics)
    steps.write_json(given.outputs[0], scores.collected(cells))


if __name__ == "__main__":
    steps.main("scores", given, work)
