"""Train one backbone, and evaluate it on identities that are not in its training set."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("faces", "state"), named=("backbones",), words=("name",))


def work(run) -> None:
    backbone = arguments.params.build("backbones", arguments.name)
    job = program.make_job(arguments, run, backbone.people, arguments.params["data_seed"])
    backbone.build(job, arguments.outputs[1])


if __name__ == "__main__":
    program.main(f"backbone {arguments.name}", arguments, work)
