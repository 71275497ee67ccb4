"""Learn attributes from one anonymized set, and predict the attributes of real faces."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("anonymized", "faces", "pseudo"), words=("split", "seed"))


def work(_) -> None:
    import pandas as pd
    import torch

    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import AttributeSettings
    from masquerade.pipeline import attributes

    torch.set_num_threads(arguments.threads)
    pseudo = pd.read_parquet(arguments.pseudo)
    predictions = attributes.evaluate_attributes(
        FaceArchive(arguments.anonymized),
        FaceArchive(arguments.faces),
        arguments.split == "train",
        pseudo[pseudo["dataset"] == arguments.faces.stem],
        arguments.params.settings("attributes", AttributeSettings),
        arguments.seed,
    )
    attributes.write_predictions(predictions, arguments.outputs[0])


if __name__ == "__main__":
    program.main(f"attributes {arguments.outputs[0]}", arguments, work)
