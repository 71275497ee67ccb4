"""Train one method with one seed, or adopt its network from weights/ or from an official file."""

from masquerade.pipeline import program

given = program.arguments(
    __doc__, files=("faces", "state"), lists=("backbones", "base"), words=("method", "seed"), options=("ablation",)
)


def work(run) -> None:
    from masquerade.core import discovery, own_weights
    from masquerade.params import parameters
    from masquerade.training import adoption, distributed
    from masquerade.training.job import TrainingJob

    cls, block = discovery.load("methods", given.method), f"methods.{given.method}"
    knobs = parameters.trained_with(
        cls, given.params[f"{block}.params"], given.params.get(f"{block}.ablations.{given.ablation}")
    )
    published = f"{block}.published_ablations.{given.ablation}" if given.ablation else f"{block}.published"
    named = given.params.get(published, "")
    weights, role = own_weights.name_of(named), own_weights.role_of(named)
    job = TrainingJob(
        faces=given.faces,
        people=cls.people,
        backbones={path.stem: path for path in given.backbones},
        checkpoint=given.outputs[0],
        state=given.state,
        seed=int(given.seed),
        threads=given.threads,
        log=run.log,
        picture=run.picture,
        base=next(iter(given.base), None),
    )
    with distributed.processes() as first:
        if weights:
            adoption.adopt(weights, cls.architecture, knobs, job.backbones, job.checkpoint)
        elif role:
            cls.adopt(knobs, role, job.checkpoint)
        else:
            cls.train(knobs, job)
    if first:
        given.state.unlink(missing_ok=True)


if __name__ == "__main__":
    program.main(f"train {given.method} {given.ablation} seed {given.seed}".replace("  ", " "), given, work)
