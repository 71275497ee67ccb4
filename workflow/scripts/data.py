"""Build one dataset: its faces with their annotations, in one archive."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, words=("dataset",))


def work(_) -> None:
    from masquerade import faces

    source = arguments.params.build("datasets", arguments.dataset)
    size, seed, shares = (arguments.params[name] for name in ("image.size", "data_seed", "people"))
    faces.build(source, arguments.outputs[0], size, seed, shares, arguments.threads)


if __name__ == "__main__":
    program.main(f"data {arguments.dataset}", arguments, work)
