"""Train one method with one seed."""

import json

from masquerade import launch, params, steps

given = steps.arguments(
    __doc__,
    files=("faces", "state", "logs"),
    lists=("backbones", "base"),
    words=("method", "seed", "launcher", "resources"),
    options=("ablation",),
)


def work(run) -> dict:
    block = f"methods.{given.method}"
    training = launch.Training(
        room="methods",
        name=given.method,
        params=params.overlay(
            given.params[f"{block}.params"], given.params.get(f"{block}.ablations.{given.ablation}", {})
        ),
        faces=given.faces,
        backbones={path.stem: path for path in given.backbones},
        checkpoint_file=given.outputs[0],
        quality=None,
        state=given.state,
        seed=int(given.seed),
        threads=given.threads,
        run=run.id,
        base=next(iter(given.base), None),
    )
    return launch.run(training, given.launcher, json.loads(given.resources), given.logs)


if __name__ == "__main__":
    steps.main(f"train {given.method} {given.ablation} seed {given.seed}".replace("  ", " "), given, work)
