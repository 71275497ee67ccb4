"""Import the images that another program made of the test split of one dataset."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__, files=("faces", "pictures"), words=("dataset", "method", "variant", "seed")
)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.params.blocks import ImportedSet
    from masquerade.pipeline.imported import pictures

    block = f"imported.{arguments.method}"
    knobs = arguments.params.settings(f"{block}.variants.{arguments.variant}.{arguments.dataset}", ImportedSet)
    cell = {"method": arguments.method, "variant": arguments.variant, "seed": arguments.seed}
    pictures.import_cell(
        FaceArchive(arguments.faces),
        arguments.pictures,
        arguments.outputs[0],
        knobs,
        arguments.params[f"{block}.source"],
        cell,
    )
    program.record_sample(run, arguments)
    run.tag({"imported": f"sha256:{knobs.sha256}"})


if __name__ == "__main__":
    program.main(f"import {arguments.method}/{arguments.variant}", arguments, work)
