"""Train one backbone and judge it on identities that it has not seen."""

import json

from masquerade import launch, steps

given = steps.arguments(__doc__, files=("faces", "state", "logs"), words=("name", "launcher", "resources"))


def work(run) -> None:
    training = launch.Training(
        "backbones", given.name, given.params[f"backbones.{given.name}"], given.faces, {}, given.outputs[0],
        given.outputs[1], given.state, given.params["data_seed"], given.threads, run.id,
    )  # fmt: skip
    launch.run(training, given.launcher, json.loads(given.resources), given.logs)


if __name__ == "__main__":
    steps.main(f"backbone {given.name}", given, work)
