"""Train one backbone, and evaluate it on identities that are not in its training set."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("faces", "state"), named=("backbones",), words=("name",))


def work(run) -> None:
    backbone = given.params.build("backbones", given.name)
    job = program.make_job(given, run, backbone.people, given.params["data_seed"])
    backbone.build(job, given.outputs[1])


if __name__ == "__main__":
    program.main(f"backbone {given.name}", given, work)
