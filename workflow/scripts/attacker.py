"""Train one attacker who knows the method, on the pictures of its own people."""

from masquerade.pipeline import program

given = program.parse_arguments(
    __doc__,
    files=("faces", "anonymized", "state"),
    named=("backbones",),
    words=("attacker", "method", "variant", "seed", "trial"),
)


def work(run) -> None:
    from masquerade.core import files
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import InformedSettings
    from masquerade.pipeline import informed

    settings = given.params.settings("informed", InformedSettings, given.method, given.variant)
    training_set = informed.read_training_set(FaceArchive(given.faces), FaceArchive(given.anonymized), settings)
    job = program.make_job(given, run, "attackers", informed.derive_trial_seed(given.seed, int(given.trial)))
    figures = given.params.build("attackers", given.attacker, given.backbones).train(training_set, job)
    run.log(0, {f"quality/{name}": value for name, value in figures.items()})
    report = {"attacker": given.attacker, "learned_from": len(training_set.learn), "quality": figures}
    files.write_json(given.outputs[1], report)
    given.state.unlink(missing_ok=True)


if __name__ == "__main__":
    program.main(f"attacker {given.attacker} of {given.method}/{given.variant} seed {given.seed}", given, work)
