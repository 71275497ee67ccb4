"""Anonymize a split, or people of the train split, of one dataset with one variant of one method."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__,
    files=("faces",),
    lists=program.METHOD_FILES,
    words=("split", "method", "variant", "seed"),
    options=("attacker_keys",),
)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import anonymization, informed

    method, archive, seed = program.method(given), FaceArchive(given.faces), int(given.seed)
    pictures = informed.Own(rows=None, keys_of=None)
    if given.attacker_keys:
        people = informed.people(given.params, given.method, given.variant)
        pictures = informed.own_pictures(archive, method, people, seed, one_key=given.attacker_keys == "one")
    anonymization.anonymize(
        archive, given.outputs[0], method, given.variant, given.split, seed, given.params["measure.batch"],
        pictures.keys_of, most=given.params.get("attributes.train_pictures", 0), rows=pictures.rows,
        key_id=f"experiment {seed}, one key",
    )  # fmt: skip
    sample = anonymization.sample(given.faces, given.outputs[0])
    if sample is not None:
        run.picture("sample", sample)
    run.tag({f"statement.{key}": str(value) for key, value in method.statement().items()})


if __name__ == "__main__":
    program.main(f"anonymize {given.method}/{given.variant} seed {given.seed}", given, work)
