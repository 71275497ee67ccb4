"""Extract features of the test faces of one dataset with one variant of one method."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(_) -> None:
    import torch

    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import measuring

    torch.set_num_threads(given.threads)
    cell = {"method": given.method, "variant": given.variant, "seed": given.seed}
    batch = given.params["measure.batch"]
    method = program.build_method(given)
    measuring.write_features(FaceArchive(given.faces), given.outputs[0], method, "test", batch, cell)


if __name__ == "__main__":
    program.main(f"features {given.method}/{given.variant} seed {given.seed}", given, work)
