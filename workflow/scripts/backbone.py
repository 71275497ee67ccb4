"""Train one backbone, and evaluate it on identities that are not in its training set."""

from masquerade.pipeline import program

given = program.arguments(__doc__, files=("faces", "state"), lists=("backbones",), words=("name",))


def work(run) -> None:
    from masquerade.core import discovery
    from masquerade.training.job import TrainingJob

    cls = discovery.load("backbones", given.name)
    checkpoint, report = given.outputs
    job = TrainingJob(
        faces=given.faces,
        people=cls.people,
        backbones={path.stem: path for path in given.backbones},
        checkpoint=checkpoint,
        state=given.state,
        seed=given.params["data_seed"],
        threads=given.threads,
        log=run.log,
        picture=run.picture,
    )
    cls(cls.Params(**given.params[f"backbones.{given.name}"])).build(job, report)


if __name__ == "__main__":
    program.main(f"backbone {given.name}", given, work)
