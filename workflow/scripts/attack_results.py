"""Attack one anonymized set with every attacker who knows the method, and write what they found out."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__,
    files=("faces", "anonymized", "attackers_faces"),
    lists=("attackers", "shared_key_faces"),
    named=("backbones",),
    words=("names", "method", "variant", "seed"),
)


def work(run) -> None:
    from masquerade.core import face_tables
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import InformedSettings
    from masquerade.pipeline import informed

    settings = arguments.params.settings("informed", InformedSettings, arguments.method, arguments.variant)
    originals, anonymized = FaceArchive(arguments.faces), FaceArchive(arguments.anonymized)
    own = FaceArchive(arguments.attackers_faces)
    training_set = informed.read_training_set(originals, own, settings)
    scenes = {"per_image": informed.make_scene(originals, anonymized, own, training_set)}
    if arguments.shared_key_faces:
        shared = FaceArchive(arguments.shared_key_faces[0])
        training_set = informed.read_training_set(originals, shared, settings)
        scenes["shared"] = informed.make_scene(originals, shared, shared, training_set)
    attacks = informed.build_attackers(
        arguments.names.split(","), arguments.params, arguments.backbones, arguments.attackers
    )
    clear = informed.build_recognizers(settings.judges, arguments.params, arguments.backbones)
    results = informed.run_attacks(attacks, scenes, clear, settings.far)
    face_tables.write_table(results, arguments.outputs[0])
    run.log(0, informed.share_identified(results))
    for name, picture in informed.draw_samples(attacks, scenes).items():
        run.log_image(name, picture)


if __name__ == "__main__":
    program.main(f"attack {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work)
