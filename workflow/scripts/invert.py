"""Invert every face of a dataset: its codes and features, in one file."""

from masquerade import steps
from masquerade.images import FaceArchive, to_uint8

given = steps.arguments(__doc__, files=("faces",), lists=("backbones",))


def work(run) -> None:
    import numpy as np
    import torch

    from masquerade.latent import codes
    from masquerade.latent.world import World

    torch.set_num_threads(given.threads)
    world = World({path.stem: path for path in given.backbones})
    shown = codes.write(world, FaceArchive(given.faces), given.outputs[0])
    run.picture("reconstructions", np.concatenate([steps.row(to_uint8(part)) for part in shown]))


if __name__ == "__main__":
    steps.main(f"invert {given.faces.stem}", given, work)
