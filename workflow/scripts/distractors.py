"""Draw many faces and write what recognizers say of them, or take published embeddings."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, named=("backbones",))


def work(_) -> None:
    from masquerade.params.blocks import DistractorSettings
    from masquerade.pipeline import distractors

    params = arguments.params
    settings = params.settings("distractors", DistractorSettings)
    if settings.published:
        distractors.adopt(settings, {"generator": arguments.backbones["generator"]}, arguments.outputs[0])
        return
    judges = {name: params.build("judges", name, arguments.backbones) for name in settings.judges}
    distractors.write_distractors(arguments.backbones, judges, arguments.outputs[0], settings, params["data_seed"])


if __name__ == "__main__":
    program.main("distractors", arguments, work)
