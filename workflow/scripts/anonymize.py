"""Anonymize the test split of one dataset with one variant of one method."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization

    method, archive = program.build_method(arguments), FaceArchive(arguments.faces)
    plan = anonymization.Plan(arguments.variant, arguments.seed, arguments.params["measure.batch"])
    anonymization.anonymize(archive, arguments.outputs[0], method, archive.select("test", status=None), plan)
    program.record_sample(run, arguments, method)


if __name__ == "__main__":
    program.main(f"anonymize {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work)
