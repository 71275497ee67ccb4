"""Train one method with one seed, or adopt its network from weights/ or from an official file."""

from masquerade.pipeline import program

given = program.parse_arguments(
    __doc__,
    files=("faces", "state"),
    optional=("base",),
    named=("backbones",),
    words=("method", "ablation", "seed"),
)


def work(run) -> None:
    from masquerade.core import discovery, weight_names
    from masquerade.training import distributed, pretrained

    cls, block = discovery.load("methods", given.method), f"methods.{given.method}"
    knobs = given.params.training_params(given.method, given.ablation)
    published = f"{block}.published_ablations.{given.ablation}" if given.ablation else f"{block}.published"
    named = given.params.get(published, "")
    weights, role = weight_names.parse_weights_name(named), weight_names.parse_asset_role(named)
    job = program.make_job(given, run, cls.people, given.seed, base=given.base)
    with distributed.join_processes() as first:
        if weights:
            pretrained.load_pretrained(weights, cls.architecture, knobs, job.backbones, job.checkpoint)
        elif role:
            cls.convert_official(knobs, role, job.checkpoint)
        else:
            cls.train(knobs, job)
    if first:
        given.state.unlink(missing_ok=True)


if __name__ == "__main__":
    program.main(f"train {given.method} {given.ablation} seed {given.seed}".replace("  ", " "), given, work)
