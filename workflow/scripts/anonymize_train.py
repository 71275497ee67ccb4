"""Anonymize the pictures of the methods' people from which a classifier of attributes learns."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

<<<<<<< HEAD
    method, params = program.build_method(given), given.params
    anonymization.anonymize(
        FaceArchive(given.faces), given.outputs[0], method, given.variant, "methods", given.seed,
        params["measure.batch"], most=params["attributes.train_pictures"],
    )  # fmt: skip
    program.record_sample(run, given, method)
=======
    method, params, archive = program.method(given), given.params, FaceArchive(given.faces)
    rows = anonymization.subset(archive.select("methods", status=None), params["attributes.train_pictures"])
    plan = anonymization.Plan(given.variant, given.seed, params["measure.batch"])
    anonymization.anonymize(archive, given.outputs[0], method, rows, plan)
    program.show_anonymized(run, given, method)
>>>>>>> 30559ea2 (anonymize, measure, KeyAttacks and learn_and_test take at most seven parameters: what travels together is Plan, GivenKeys, Recognition; batching is part of anonymization)


if __name__ == "__main__":
    program.main(f"anonymize train faces with {given.method}/{given.variant} seed {given.seed}", given, work)
