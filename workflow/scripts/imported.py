"""Import the pictures that another program made of the test split of one dataset."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces", "pictures"), words=("dataset", "method", "variant", "seed"))


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.params.blocks import ImportedSet
    from masquerade.pipeline.imported import pictures

    block = f"imported.{given.method}"
    knobs = given.params.settings(f"{block}.variants.{given.variant}.{given.dataset}", ImportedSet)
    cell = {"method": given.method, "variant": given.variant, "seed": given.seed}
    pictures.import_cell(
        FaceArchive(given.faces), given.pictures, given.outputs[0], knobs, given.params[f"{block}.source"], cell
    )
    program.record_sample(run, given)
    run.tag({"imported": f"sha256:{knobs.sha256}"})


if __name__ == "__main__":
    program.main(f"import {given.method}/{given.variant}", given, work)
