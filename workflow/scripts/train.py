"""Train one method with one seed, or adopt its network from weights/ or from an official file."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__,
    files=("faces", "state"),
    optional=("base",),
    named=("backbones",),
    words=("method", "ablation", "seed"),
)


def work(run) -> None:
    from masquerade.core import discovery, weight_names
    from masquerade.training import distributed, pretrained

    cls, block = discovery.load("methods", arguments.method), f"methods.{arguments.method}"
    knobs = arguments.params.training_params(arguments.method, arguments.ablation)
    published = f"{block}.published_ablations.{arguments.ablation}" if arguments.ablation else f"{block}.published"
    named = arguments.params.get(published, "")
    weights, role = weight_names.parse_weights_name(named), weight_names.parse_asset_role(named)
    job = program.make_job(arguments, run, cls.people, arguments.seed, base=arguments.base)
    with distributed.join_processes() as first:
        if weights:
            pretrained.load_pretrained(weights, cls.architecture, knobs, job.backbones, job.checkpoint)
        elif role:
            cls.convert_official(knobs, role, job.checkpoint)
        else:
            cls.train(knobs, job)
    if first:
        arguments.state.unlink(missing_ok=True)


if __name__ == "__main__":
    program.main(
        f"train {arguments.method} {arguments.ablation} seed {arguments.seed}".replace("  ", " "), arguments, work
    )
