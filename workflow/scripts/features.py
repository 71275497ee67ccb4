"""Extract features of the test faces of one dataset with one variant of one method."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(_) -> None:
    import torch

    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import measuring

    torch.set_num_threads(arguments.threads)
    cell = {"method": arguments.method, "variant": arguments.variant, "seed": arguments.seed}
    batch = arguments.params["measure.batch"]
    method = program.build_method(arguments)
    measuring.write_features(FaceArchive(arguments.faces), arguments.outputs[0], method, "test", batch, cell)


if __name__ == "__main__":
    program.main(f"features {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work)
