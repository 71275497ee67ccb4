"""The cost of trainings: backbones, the latent codes that methods need, methods and their ablations."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from masquerade import assets
from masquerade.core import discovery
from masquerade.core.images import FaceArchive
from masquerade.core.own_weights import name_of
from masquerade.core.settings import Settings
from masquerade.methods import Method
from masquerade.methods.latent import SetOfFakes
from masquerade.params import parameters as params
from masquerade.pipeline.costs import pictures
from masquerade.pipeline.costs.builder import Builder, ordered
from masquerade.pipeline.costs.meta import Cost
from masquerade.pipeline.costs.step import Step
from masquerade.pipeline.costs.workload import Workload
from masquerade.training import cards

FAKES = 512
"""Fakes that are drawn to count the cost of one: enough to form groups of them."""


def backbones(workload: Workload, builder: Builder) -> Iterator[Step]:
    """One training of each backbone. A published one costs nothing but its disk space: that of weights/ is read."""
    parameters = workload.parameters
    for name in ordered(parameters.backbones, "backbones"):
        backbone = discovery.load("backbones", name)(parameters.backbones[name])
        checkpoint = builder.path(name)
        work = partial(backbone.train, builder.job(checkpoint, backbone.needs, seed=parameters.data_seed))
        if backbone.weights:
            fits = backbone.architecture, backbone.params, backbone.needs
            work = partial(builder.adopt, backbone.weights, *fits, checkpoint)
        cost, reason = builder.counted(name, work)
        if backbone.published:
            cost, reason = Cost(), reason or f"published: {backbone.published.name}"
        yield step(workload, builder, "backbone", name, 1, cost, checkpoint, reason,
                   workload.learned_by(backbone.people), precision(parameters.backbones[name]))  # fmt: skip


def codes(workload: Workload, builder: Builder) -> Iterator[Step]:
    """The fakes of the generator, and the latent codes of each dataset whose cells need them."""
    from masquerade.methods.latent import codes, fakes
    from masquerade.methods.latent.space import LatentSpace

    able = {cell.method: discovery.load("methods", cell.method).capabilities for cell in workload.cells}
    backbones = {name: builder.path(name) for name in ("generator", "inversion", "semantics")}
    seed, settings = workload.parameters.data_seed, workload.parameters.fakes
    if any(capabilities.fakes for capabilities in able.values()):
        file, weights = builder.path("fakes"), name_of(settings.published)
        few = settings.count if weights else min(settings.count, FAKES)

        def draw() -> None:
            files = {name: backbones[name] for name in SetOfFakes.needs}
            fakes.write(LatentSpace(files), file, few, settings.psi, seed)

        adopt = partial(builder.adopt, weights, SetOfFakes.architecture, settings, SetOfFakes.needs, file)
        cost, reason = builder.counted("fakes", adopt if weights else draw)
        share = settings.count / few
        note = reason or (f"published: {cards.weights_path(weights).name}" if weights else "")
        yield Step("fakes", "", 1, settings.count, "pictures", round(cost.flops * share), cost.peak,
                   builder.size(file, share), note=note)  # fmt: skip
    datasets = sorted({cell.dataset for cell in workload.cells if workload.parameters.takes_codes(cell.method)})
    if datasets:
        archive, file = FaceArchive(builder.archive), builder.path("latents")
        cost, reason = builder.counted("latents", lambda: codes.write(LatentSpace(backbones), archive, file))
        for name in datasets:
            total = workload.test(name) + workload.learned_by("attackers") * (
                name == workload.parameters.matrix.train_on
            )
            share = total / len(codes.anonymized(archive))
            yield Step("latents", name, 1, total, "pictures", round(cost.flops * share), cost.peak,
                       builder.size(file, share), note=reason)  # fmt: skip


def methods(workload: Workload, builder: Builder) -> Iterator[Step]:
    """The trainings of each method, one for each seed, and those of its ablations, which start from its checkpoint.

    An adopted network costs nothing but its disk space.
    """
    parameters = workload.parameters
    classes = {cell.method: discovery.load("methods", cell.method) for cell in workload.cells}
    classes = {name: cls for name, cls in classes.items() if parameters.trains(name)}
    for name in sorted(classes, key=lambda name: bool(classes[name].kin)):
        cls, knobs = classes[name], parameters.methods[name].params
        cells = [cell for cell in workload.cells if cell.method == name]
        ablations = parameters.ablations(name)
        kin = builder.path(f"method.{cls.kin}") if cls.kin in classes else None
        jobs = len({cell.seed for cell in cells})
        yield _trained(workload, builder, "method", name, cls, knobs, jobs, builder.path(f"method.{name}"), kin)
        for variant in dict.fromkeys(cell.variant for cell in cells if cell.variant in ablations):
            jobs = len({cell.seed for cell in cells if cell.variant == variant})
            altered = params.trained_with(cls, knobs.model_dump(mode="json"), ablations[variant])
            checkpoint, base = builder.path(f"method.{name}.{variant}"), builder.path(f"method.{name}")
            yield _trained(workload, builder, "ablation", f"{name}/{variant}", cls, altered, jobs, checkpoint, base)


def _trained(
    workload: Workload, builder: Builder, rule: str, name: str, cls: type[Method], knobs: Settings, jobs: int,
    checkpoint: Path, base: Path | None,
) -> Step:  # fmt: skip
    needs, weights = cls.needed(knobs), workload.parameters.weights(*name.split("/"))
    work = partial(cls.train, knobs, builder.job(checkpoint, needs, base))
    if weights:
        work = partial(builder.adopt, weights, cls.architecture, knobs, needs, checkpoint)
    cost, reason = builder.counted(name, work)
    if weights:
        cost, reason = Cost(), reason or f"published: {cards.weights_path(weights).name}"
    if rule == "method" and (role := workload.parameters.official(name)):
        cost, reason = Cost(), reason or f"published: {assets.path(role).name}"
    known = workload.learned_by(cls.people)
    return step(workload, builder, rule, name, jobs, cost, checkpoint, reason, known, precision(knobs))


def step(
    workload: Workload, builder: Builder, rule: str, name: str, jobs: int, cost: Cost, checkpoint: Path, reason: str,
    known: float, precision: str,
) -> Step:  # fmt: skip
    """The row of ``jobs`` trainings of ``cost`` each. ``known``: number of pictures that one learns from (mean)."""
    steps = sum(count for count, _ in cost.kinds)
    # work before the first step is done once for each picture
    flops = jobs * round(cost.repeated + cost.once * known / pictures.TRAIN)
    tasks = workload.parameters.compute.submission("training", name.partition("/")[0]).tasks
    shared = f"{tasks} processes share the batch, and most of the peak" if tasks > 1 and not reason else ""
    disk = jobs * builder.size(checkpoint)
    set_to = precision if flops else ""
    return Step(
        rule, name, jobs, jobs * steps, "steps", flops, cost.peak, disk, precision=set_to, note=reason or shared
    )


def precision(knobs: Settings) -> str:
    """The precision that the parameters of a training or an optimization set; '' if they set none."""
    arithmetic = getattr(getattr(knobs, "recognition", knobs), "arithmetic", None)
    return arithmetic.precision if arithmetic else ""
