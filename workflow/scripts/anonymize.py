"""Anonymize the test split of one dataset with one variant of one method."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

<<<<<<< HEAD
    method = program.build_method(given)
    batch = given.params["measure.batch"]
    anonymization.anonymize(
        FaceArchive(given.faces), given.outputs[0], method, given.variant, "test", given.seed, batch
    )
    program.record_sample(run, given, method)
=======
    method, archive = program.method(given), FaceArchive(given.faces)
    plan = anonymization.Plan(given.variant, given.seed, given.params["measure.batch"])
    anonymization.anonymize(archive, given.outputs[0], method, archive.select("test", status=None), plan)
    program.show_anonymized(run, given, method)
>>>>>>> 30559ea2 (anonymize, measure, KeyAttacks and learn_and_test take at most seven parameters: what travels together is Plan, GivenKeys, Recognition; batching is part of anonymization)


if __name__ == "__main__":
    program.main(f"anonymize {given.method}/{given.variant} seed {given.seed}", given, work)
