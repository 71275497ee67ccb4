"""Anonymize the test split of one dataset with one variant of one method."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

    method, archive = program.build_method(given), FaceArchive(given.faces)
    plan = anonymization.Plan(given.variant, given.seed, given.params["measure.batch"])
    anonymization.anonymize(archive, given.outputs[0], method, archive.select("test", status=None), plan)
    program.record_sample(run, given, method)


if __name__ == "__main__":
    program.main(f"anonymize {given.method}/{given.variant} seed {given.seed}", given, work)
