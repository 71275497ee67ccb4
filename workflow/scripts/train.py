"""Train one method with one seed."""

from masquerade import discovery, params, steps
from masquerade.methods import TrainingJob

given = steps.arguments(
    __doc__, files=("faces", "state"), lists=("backbones", "base"), words=("method", "seed"), options=("ablation",)
)


def work(run) -> None:
    from masquerade import distributed  # torch, which must know the threads first

    cls, block = discovery.load("methods", given.method), f"methods.{given.method}"
    knobs = params.trained_with(
        cls, given.params[f"{block}.params"], given.params.get(f"{block}.ablations.{given.ablation}")
    )
    job = TrainingJob(
        faces=given.faces,
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
        cls.train(knobs, job)
    if first:
        given.state.unlink(missing_ok=True)


if __name__ == "__main__":
    steps.main(f"train {given.method} {given.ablation} seed {given.seed}".replace("  ", " "), given, work)
