"""Anonymize the pictures that attackers who know the method make for themselves."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces",), method=True)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.params.paths import Paths
    from masquerade.params.protocols import AttackedPeople
    from masquerade.pipeline import anonymization, informed

    method, archive, params = program.build_method(given), FaceArchive(given.faces), given.params
    people = params.settings("informed", AttackedPeople, given.method, given.variant)
    one_key = Paths.parse("attackers_faces", given.outputs[0])["key_kind"] == "shared"
    rows, keys = informed.select_own_images(archive, method, people, given.seed, one_key)
    plan = anonymization.Plan(given.variant, given.seed, params["measure.batch"])
    anonymization.anonymize(archive, given.outputs[0], method, rows, plan, keys)
    program.record_sample(run, given, method)


if __name__ == "__main__":
    program.main(f"anonymize attackers' faces with {given.method}/{given.variant} seed {given.seed}", given, work)
