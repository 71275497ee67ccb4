"""Build one dataset: its faces with their annotations, in one archive."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, words=("dataset",))


def work(_) -> None:
    from masquerade import faces

    source = given.params.build("datasets", given.dataset)
    size, seed, shares = (given.params[name] for name in ("image.size", "data_seed", "people"))
    faces.build(source, given.outputs[0], size, seed, shares, given.threads)


if __name__ == "__main__":
    program.main(f"data {given.dataset}", given, work)
