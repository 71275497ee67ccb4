"""Train one attacker who knows the method, on the images of its own people."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
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

    settings = arguments.params.settings("informed", InformedSettings, arguments.method, arguments.variant)
    training_set = informed.read_training_set(FaceArchive(arguments.faces), FaceArchive(arguments.anonymized), settings)
    job = program.make_job(
        arguments, run, "attackers", informed.derive_trial_seed(arguments.seed, int(arguments.trial))
    )
    figures = arguments.params.build("attackers", arguments.attacker, arguments.backbones).train(training_set, job)
    run.log(0, {f"quality/{name}": value for name, value in figures.items()})
    report = {"attacker": arguments.attacker, "learned_from": len(training_set.learn), "quality": figures}
    files.write_json(arguments.outputs[1], report)
    arguments.state.unlink(missing_ok=True)


if __name__ == "__main__":
    program.main(
        f"attacker {arguments.attacker} of {arguments.method}/{arguments.variant} seed {arguments.seed}",
        arguments,
        work,
    )
