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
    backbones = {path.stem: path for path in given.backbones}
    training = launch.Training(
        "methods", given.method, given.params[f"methods.{given.method}.params"], given.faces, backbones, given.outputs[0],
        None, given.state, int(given.seed), given.threads, run.id,
    )  # fmt: skip
    launch.run(training, given.launcher, json.loads(given.resources), given.logs)


if __name__ == "__main__":
    steps.main(f"train {given.method} seed {given.seed}", given, work)
