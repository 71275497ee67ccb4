"""Train two attribute classifiers on real faces and label every real face with them."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("train",), named=("faces",))


def work(run) -> None:
    import torch

    from masquerade.core import files
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import AttributeSettings
    from masquerade.pipeline import attributes

    torch.set_num_threads(arguments.threads)
    settings = arguments.params.settings("attributes", AttributeSettings)
    datasets = {name: FaceArchive(path) for name, path in arguments.faces.items()}
    train = datasets[arguments.train.stem]
    labels, quality = attributes.draw_pseudo_labels(train, datasets, settings, arguments.params["data_seed"])
    attributes.write_predictions(labels, arguments.outputs[0])
    files.write_json(arguments.outputs[1], quality)
    run.log(0, {f"accuracy/{name}": value["accuracy"] for name, value in quality.items()})


if __name__ == "__main__":
    program.main("pseudo-labels", arguments, work)
