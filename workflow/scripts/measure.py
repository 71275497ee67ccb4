"""Measure every picture of one set with every judge, once."""

from masquerade.pipeline import program

given = program.parse_arguments(
    __doc__, files=("faces",), optional=("source",), named=("backbones",), words=("block", "parts")
)


def work(_) -> None:
    from masquerade.pipeline import measuring

    params = given.params
    names = params[f"{given.block}.judges"]
    judges = {name: params.build("judges", name, given.backbones) for name in names}
    most = params["target.pictures"] if given.block == "target" else 0
    measuring.measure(
        given.faces, given.outputs[0], judges, given.parts.split(","), params["measure.batch"], given.source, most
    )


if __name__ == "__main__":
    program.main(f"measure {given.outputs[0]}", given, work)
