"""Anonymize the images of the methods' people from which a classifier of attributes learns."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

    method, params, archive = program.build_method(arguments), arguments.params, FaceArchive(arguments.faces)
    rows = anonymization.select_subset(archive.select("methods", status=None), params["attributes.train_pictures"])
    plan = anonymization.Plan(arguments.variant, arguments.seed, params["measure.batch"])
    anonymization.anonymize(archive, arguments.outputs[0], method, rows, plan)
    program.record_sample(run, arguments, method)


if __name__ == "__main__":
    program.main(
        f"anonymize train faces with {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work
    )
