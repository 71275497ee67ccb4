"""Collect every number of every cell for `dvc metrics diff` and `dvc exp show`."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, lists=("metrics",))


def work(_) -> None:
    from masquerade.core import files
    from masquerade.pipeline import evaluation

    cells = files.read_numbers(arguments.metrics)
    files.write_json(arguments.outputs[0], evaluation.summarize(cells))


if __name__ == "__main__":
    program.main("scores", arguments, work)
