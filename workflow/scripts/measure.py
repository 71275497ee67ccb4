"""Measure every picture of one set with every judge, once."""

from masquerade.pipeline import program

given = program.arguments(__doc__, files=("faces",), lists=("source", "backbones"), words=("parts",))


def work(_) -> None:
    from masquerade.core import discovery
    from masquerade.pipeline import measuring

    backbones = {path.stem: path for path in given.backbones}
    judges = {}
    (names,) = (value for key, value in given.params.items() if key.endswith(".judges"))
    for name in names:
        cls = discovery.load("judges", name)
        judges[name] = cls(cls.Params(**given.params[f"judges.{name}"]), backbones)
    measuring.measure(
        given.faces, given.outputs[0], judges, given.parts.split(","), given.params["measure.batch"],
        next(iter(given.source), None), given.params.get("target.pictures", 0),
    )  # fmt: skip


if __name__ == "__main__":
    program.main(f"measure {given.outputs[0]}", given, work)
