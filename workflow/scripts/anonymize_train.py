"""Anonymize the pictures of the methods' people from which a classifier of attributes learns."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

    method, params, archive = program.build_method(given), given.params, FaceArchive(given.faces)
    rows = anonymization.select_subset(archive.select("methods", status=None), params["attributes.train_pictures"])
    plan = anonymization.Plan(given.variant, given.seed, params["measure.batch"])
    anonymization.anonymize(archive, given.outputs[0], method, rows, plan)
    program.record_sample(run, given, method)


if __name__ == "__main__":
    program.main(f"anonymize train faces with {given.method}/{given.variant} seed {given.seed}", given, work)
