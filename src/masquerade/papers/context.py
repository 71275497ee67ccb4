"""What tables, figures and pages state about their run, from the parameters that the graph passes to a job."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from masquerade.core import fingerprints, rehearsal
from masquerade.papers.declarations import Named
from masquerade.papers.figure_declarations import Figure
from masquerade.papers.reference import stand_in
from masquerade.params.blocks import StandIns
from masquerade.params.matrix import Setting
from masquerade.params.slices import Slice


@dataclass(frozen=True)
class Context:
    """What a reader must know of a run beside its numbers.

    ``caution`` stands above every table; '' if there is none. ``commit`` is the code that made the numbers.
    ``latent_stand_ins``: method that does not run as published -> what runs in its place.
    """

    scale: str
    seeds: tuple[int, ...]
    stand_ins: StandIns
    commit: str
    caution: str = ""
    latent_stand_ins: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, params: Slice) -> "Context":
        """The context of a job, from its slice of the parameters and the commit of the code.

        Raises RehearsalError in a rehearsal, which has no tables and no figures.
        """
        rehearsal.refuse_tables()
        return cls(
            scale=params["scale"],
            seeds=tuple(params["seeds"]),
            stand_ins=params.settings("stand_ins", StandIns),
            commit=fingerprints.describe_commit(),
            caution=params["caution"],
            latent_stand_ins=params["latent_stand_ins"],
        )

    def dataset(self, named: Named) -> str:
        """The dataset that takes the place of the paper's."""
        return stand_in(named, self.stand_ins.datasets)

    def judge(self, named: Named | None) -> str:
        """The judge that takes the place of the paper's; '' for a metric without a judge."""
        return stand_in(named, self.stand_ins.judges) if named else ""

    def is_replaced(self, named: Named | None) -> bool:
        """Whether another judge than the paper's gives the measured value."""
        return named is not None and self.judge(named) != named.role

    def about(self, figure: Figure) -> str:
        """The note below a figure: scale, dataset, commit of the code, and caution."""
        dataset = self.dataset(figure.dataset)
        replaced = dataset != figure.dataset.role
        faces = f"{dataset} instead of {figure.dataset.name}" if replaced else figure.dataset.name
        return f"Scale {self.scale}, {faces}, commit {self.commit}. {self.caution}".rstrip()


def skip_reasons(text: str) -> dict[Setting, str]:
    """(dataset, method, variant) -> why it was not run, from the JSON that the graph passes."""
    return {tuple(setting): reason for *setting, reason in json.loads(text)}
