"""Train two attribute classifiers on real faces and label every real face with them."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("train",), named=("faces",))


def work(run) -> None:
    import torch

    from masquerade.core import files
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import AttributeSettings
    from masquerade.pipeline import attributes

    torch.set_num_threads(given.threads)
    settings = given.params.settings("attributes", AttributeSettings)
    datasets = {name: FaceArchive(path) for name, path in given.faces.items()}
    train = datasets[given.train.stem]
    labels, quality = attributes.draw_pseudo_labels(train, datasets, settings, given.params["data_seed"])
    attributes.write_predictions(labels, given.outputs[0])
    files.write_json(given.outputs[1], quality)
    run.log(0, {f"accuracy/{name}": value["accuracy"] for name, value in quality.items()})


if __name__ == "__main__":
    program.main("pseudo-labels", given, work)
