"""Invert every face of a dataset, and write the codes and features to one file."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("faces",), named=("backbones",))


def work(run) -> None:
    import numpy as np
    import torch

    from masquerade.core.images import FaceArchive, to_uint8
    from masquerade.methods.latent import codes
    from masquerade.methods.latent.space import LatentSpace

    torch.set_num_threads(arguments.threads)
    space = LatentSpace(arguments.backbones)
    samples = codes.write_codes(space, FaceArchive(arguments.faces), arguments.outputs[0])
    run.log_image("reconstructions", np.concatenate([program.join_images(to_uint8(part)) for part in samples]))


if __name__ == "__main__":
    program.main(f"invert {arguments.faces.stem}", arguments, work)
