"""Let every judge look at every picture of one set, once."""

from masquerade import discovery, measuring, steps

given = steps.arguments(__doc__, files=("faces",), lists=("source", "backbones"), words=("splits",))


def work(_) -> None:
    backbones = {path.stem: path for path in given.backbones}
    judges = {}
    (asked,) = (names for key, names in given.params.items() if key.endswith(".judges"))
    for name in asked:
        cls = discovery.load("judges", name)
        judges[name] = cls(cls.Params(**given.params[f"judges.{name}"]), backbones)
    measuring.measure(
        given.faces, given.outputs[0], judges, given.splits.split(","), given.params["measure.batch"],
        next(iter(given.source), None),
    )  # fmt: skip


if __name__ == "__main__":
    steps.main(f"measure {given.outputs[0]}", given, work)
