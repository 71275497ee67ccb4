"""Build one dataset: its faces, with everything that is known about them, in one archive."""

from masquerade import discovery, faces, steps

given = steps.arguments(__doc__, words=("dataset",))


def work(_) -> None:
    source = discovery.load("faces", given.dataset)
    params = source.Params(**given.params[f"datasets.{given.dataset}"])
    faces.build(source(params), given.outputs[0], given.params["image.size"], given.params["data_seed"], given.threads)


if __name__ == "__main__":
    steps.main(f"data {given.dataset}", given, work)
