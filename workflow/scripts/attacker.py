"""Train one attacker who knows the method, on the pictures of its own people."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__,
    files=("faces", "anonymized", "state"),
    lists=("backbones",),
    words=("attacker", "method", "variant", "seed", "trial"),
)


def work(run) -> None:
    from masquerade.core import discovery, files
    from masquerade.core.images import FaceArchive
    from masquerade.pipeline import informed
    from masquerade.training.job import TrainingJob

    checkpoint, quality = given.outputs
    originals, anonymized = FaceArchive(given.faces), FaceArchive(given.anonymized)
    lesson = informed.lesson_of(originals, anonymized, informed.settings(given.params, given.method, given.variant))
    backbones = {path.stem: path for path in given.backbones}
    job = TrainingJob(
        faces=given.faces,
        people="attackers",
        backbones=backbones,
        checkpoint=checkpoint,
        state=given.state,
        seed=informed.seed_of(int(given.seed), int(given.trial)),
        threads=given.threads,
        log=run.log,
        picture=run.picture,
    )
    cls = discovery.load("attackers", given.attacker)
    figures = cls(cls.Params(**given.params[f"attackers.{given.attacker}"]), backbones).train(lesson, job)
    run.log(0, {f"quality/{name}": value for name, value in figures.items()})
    files.write_json(quality, {"attacker": given.attacker, "learnt_from": len(lesson.learn), "quality": figures})
    given.state.unlink(missing_ok=True)


if __name__ == "__main__":
    program.main(f"attacker {given.attacker} of {given.method}/{given.variant} seed {given.seed}", given, work)
