"""Learn attributes from one anonymized set, and predict the attributes of real faces."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("anonymized", "faces", "pseudo"), words=("split", "seed"))


def work(_) -> None:
    import pandas as pd
    import torch

    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import AttributeSettings
    from masquerade.pipeline import attributes

    torch.set_num_threads(given.threads)
    pseudo = pd.read_parquet(given.pseudo)
    predictions = attributes.evaluate_attributes(
        FaceArchive(given.anonymized),
        FaceArchive(given.faces),
        given.split == "train",
        pseudo[pseudo["dataset"] == given.faces.stem],
        given.params.settings("attributes", AttributeSettings),
        given.seed,
    )
    attributes.write_predictions(predictions, given.outputs[0])


if __name__ == "__main__":
    program.main(f"attributes {given.outputs[0]}", given, work)
