"""Train one method with one seed."""

import json

from masquerade import launch, steps

given = steps.arguments(
    __doc__,
    files=("faces", "state", "logs"),
    lists=("backbones",),
    words=("method", "seed", "launcher", "resources"),
)


def work(run) -> None:
    training = launch.Training(
        room="methods",
        name=given.method,
        params=given.params[f"methods.{given.method}.params"],
        faces=given.faces,
        backbones={path.stem: path for path in given.backbones},
        checkpoint_file=given.outputs[0],
        quality=None,
        state=given.state,
        seed=int(given.seed),
        threads=given.threads,
        run=run.id,
    )
    launch.run(training, given.launcher, json.loads(given.resources), given.logs)


if __name__ == "__main__":
    steps.main(f"train {given.method} seed {given.seed}", given, work)
