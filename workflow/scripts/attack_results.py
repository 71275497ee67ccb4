"""Attack one anonymized set with every attacker who knows the method, and write what they found out."""

from masquerade.pipeline import program

given = program.parse_arguments(
    __doc__,
    files=("faces", "anonymized", "own"),
    lists=("attackers", "one"),
    named=("backbones",),
    words=("names", "method", "variant", "seed"),
)


def work(run) -> None:
    from masquerade.core import face_tables
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import InformedSettings
    from masquerade.pipeline import informed

    settings = given.params.settings("informed", InformedSettings, given.method, given.variant)
    originals, anonymized = FaceArchive(given.faces), FaceArchive(given.anonymized)
    own = informed.read_training_set(originals, FaceArchive(given.own), settings)
    scenes = {"per_image": informed.make_scene(originals, anonymized, own)}
    if given.one:
        one = FaceArchive(given.one[0])
        scenes["shared"] = informed.make_scene(originals, one, informed.read_training_set(originals, one, settings))
    attacks = informed.build_attackers(given.names.split(","), given.params, given.backbones, given.attackers)
    clear = informed.build_recognizers(settings.judges, given.params, given.backbones)
    results = informed.run_attacks(attacks, scenes, clear, settings.far)
    face_tables.write_table(results, given.outputs[0])
    run.log(0, informed.share_identified(results))
    for name, picture in informed.draw_samples(attacks, scenes).items():
        run.log_image(name, picture)


if __name__ == "__main__":
    program.main(f"attack {given.method}/{given.variant} seed {given.seed}", given, work)
