"""Learn attributes from one anonymized set and predict those of real faces."""

from masquerade import steps
from masquerade.images import FaceArchive
from masquerade.params import AttributeSettings

given = steps.arguments(__doc__, files=("anonymized", "faces", "pseudo"), words=("split", "seed"))


def work(_) -> None:
    import pandas as pd
    import torch

    from masquerade.attributes import protocol

    torch.set_num_threads(given.threads)
    pseudo = pd.read_parquet(given.pseudo)
    found = protocol.evaluate(
        FaceArchive(given.anonymized),
        FaceArchive(given.faces),
        given.split == "train",
        pseudo[pseudo["dataset"] == given.faces.stem],
        AttributeSettings(**steps.block(given.params, "attributes")),
        int(given.seed),
    )
    protocol.write(found, given.outputs[0])


if __name__ == "__main__":
    steps.main(f"attributes {given.outputs[0]}", given, work)
