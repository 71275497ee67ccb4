"""Train one backbone and judge it on identities that it has not seen."""

import json

from masquerade import launch, steps

given = steps.arguments(
    __doc__, files=("faces", "state", "logs"), lists=("backbones",), words=("name", "launcher", "resources")
)


def work(run) -> dict:
    training = launch.Training(
        room="backbones",
        name=given.name,
        params=given.params[f"backbones.{given.name}"],
        faces=given.faces,
        backbones={path.stem: path for path in given.backbones},
        checkpoint_file=given.outputs[0],
        quality=given.outputs[1],
        state=given.state,
        seed=given.params["data_seed"],
        threads=given.threads,
        run=run.id,
    )
    return launch.run(training, given.launcher, json.loads(given.resources), given.logs)


if __name__ == "__main__":
    steps.main(f"backbone {given.name}", given, work)
