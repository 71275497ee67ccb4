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
<<<<<<< HEAD
    own = informed.own_pictures(archive, method, people, given.seed, one_key)
    anonymization.anonymize(
        archive, given.outputs[0], method, given.variant, None, given.seed, params["measure.batch"],
        own.keys_of, rows=own.rows, key_id=f"experiment {given.seed}, one key",
    )  # fmt: skip
    program.record_sample(run, given, method)
=======
    rows, keys = informed.select_own_images(archive, method, people, given.seed, one_key)
    plan = anonymization.Plan(given.variant, given.seed, params["measure.batch"])
    anonymization.anonymize(archive, given.outputs[0], method, rows, plan, keys)
    program.show_anonymized(run, given, method)
>>>>>>> 30559ea2 (anonymize, measure, KeyAttacks and learn_and_test take at most seven parameters: what travels together is Plan, GivenKeys, Recognition; batching is part of anonymization)


if __name__ == "__main__":
    program.main(f"anonymize attackers' faces with {given.method}/{given.variant} seed {given.seed}", given, work)
