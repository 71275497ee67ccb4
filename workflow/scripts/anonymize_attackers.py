"""Anonymize the images that attackers who know the method make for themselves."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.params.paths import Paths
    from masquerade.params.protocols import AttackedPeople
    from masquerade.pipeline import anonymization, informed

    method, archive, params = program.build_method(arguments), FaceArchive(arguments.faces), arguments.params
    people = params.settings("informed", AttackedPeople, arguments.method, arguments.variant)
    one_key = Paths.parse("attackers_faces", arguments.outputs[0])["key_kind"] == "shared"
    rows, keys = informed.select_keyed_images(archive, method, people, arguments.seed, one_key)
    plan = anonymization.Plan(arguments.variant, arguments.seed, params["measure.batch"])
    anonymization.anonymize(archive, arguments.outputs[0], method, rows, plan, keys)
    program.record_sample(run, arguments, method)


if __name__ == "__main__":
    program.main(
        f"anonymize attackers' faces with {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work
    )
