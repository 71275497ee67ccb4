"""Attack the keys of one anonymized set: guessed and averaged keys, a flipped sign, linked images."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__, files=("faces", "anonymized", "source"), named=("judged",), words=("dataset",), method=True
)


def work(run) -> None:
    from masquerade.core import face_tables, files
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import AttackSettings
    from masquerade.pipeline.key_attacks import KeyAttacks, Recognition

    params = arguments.params
    settings = params.settings("attacks", AttackSettings)
    judge = params.build("judges", settings.judge, arguments.judged)
    recognition = Recognition(judge, face_tables.read(arguments.source), params["matrix.calibrate_on"])
    archives = FaceArchive(arguments.faces), FaceArchive(arguments.anonymized)
    attacks = KeyAttacks(*archives, program.build_method(arguments), recognition, settings, params["bootstrap.draws"])
    results = attacks.results()
    files.write_json(arguments.outputs[0], {"cell": program.select_cell(arguments), "attacks": results})
    shares = {name: each["person"]["value"] for name, each in results["found"].items()}
    run.log(0, {name: value for name, value in shares.items() if value is not None})


if __name__ == "__main__":
    program.main(f"attack the keys of {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work)
