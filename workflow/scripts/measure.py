"""Measure every image of one set with every judge, once."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__, files=("faces",), optional=("source",), named=("backbones",), words=("block", "parts")
)


def work(_) -> None:
    from masquerade.pipeline import measuring

    params = arguments.params
    names = params[f"{arguments.block}.judges"]
    judges = {name: params.build("judges", name, arguments.backbones) for name in names}
    most = params["target.pictures"] if arguments.block == "target" else 0
    measuring.measure(
        arguments.faces,
        arguments.outputs[0],
        judges,
        arguments.parts.split(","),
        params["measure.batch"],
        arguments.source,
        most,
    )


if __name__ == "__main__":
    program.main(f"measure {arguments.outputs[0]}", arguments, work)
