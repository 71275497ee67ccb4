"""The blocks of params.yaml that belong to the pipeline. The other blocks are defined by the modules of the rooms."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from masquerade.core import people
from masquerade.core.settings import Name, Settings
from masquerade.core.weight_names import WeightsName
from masquerade.params.compute import ComputeSettings
from masquerade.params.protocols import (
    AttackProtocol,
    AttributeProtocol,
    InformedProtocol,
    RecoveryProtocol,
    UtilitySettings,
)

PARAMS, SCALES = "params.yaml", "scales"


class ImageSettings(Settings):
    """The images of every dataset."""

    size: Annotated[int, Field(ge=32, le=1024)]
    """Side of every image in pixels (256: identitydp, section V.A)."""


class MatrixSettings(Settings):
    """What is trained and what is evaluated."""

    train_on: Name
    """The dataset whose train split trains every backbone and method, each on the people of its group."""
    calibrate_on: Literal["validation"]
    """The split whose identities set the verification thresholds; disjoint from the test split."""
    evaluate: dict[Name, list[str]]
    """Dataset -> patterns ``method/variant`` (``*`` allowed) of what anonymizes its test split and is measured."""


class PeopleSettings(Settings):
    """Shares of the people of a train split that each group learns from; no person is in two groups."""

    backbones: Annotated[float, Field(ge=0, le=1)]
    """Share of the networks that stand in losses: identity, semantics, generator, inversion, parsing, landmarks."""
    judges: Annotated[float, Field(ge=0, le=1)]
    """Share of the networks that only judge: the recognizers, each on its own part, and the attribute classifier."""
    methods: Annotated[float, Field(ge=0, le=1)]
    """Share of the methods, of the galleries of other people, and of what learns attributes from anonymized faces."""
    attackers: Annotated[float, Field(ge=0, le=1)]
    """Share of the attackers who know the method."""

    @model_validator(mode="after")
    def _shares_fit(self) -> "PeopleSettings":
        total = round(sum(getattr(self, group) for group in people.GROUPS), 9)
        if total > 1:
            shares = ", ".join(f"{group} {getattr(self, group):g}" for group in people.GROUPS)
            raise ValueError(
                f"the shares add up to {total:g} ({shares}), so a person would be in two groups. Together they may be "
                "at most 1: lower one of them"
            )
        return self


class FakesSettings(Settings):
    """The generated faces from which some methods choose a new identity."""

    published: WeightsName = ""
    """Weights to take instead of drawing them: ``weights:photo/fakes``; '': drawn here."""

    count: Annotated[int, Field(ge=2)]
    """Number of generated faces; more than the faces of any set that is anonymized with them (falco section 3.2)."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation psi: 1 leaves W as it is, less moves it towards its mean."""


class MeasureSettings(Settings):
    """The measurements of every set of images."""

    batch: Annotated[int, Field(ge=1)]
    """Images that are in memory and measured at a time."""
    judges: list[Name]
    """The judges that measure every set."""


class TargetSettings(Settings):
    """The set that Frechet distances to a target compare with: images of the people that methods learn from."""

    judges: list[Name]
    """The judges whose features are compared."""
    pictures: Annotated[int, Field(ge=0)]
    """Its number of images, the same for every cell; 0: all."""


class StandIns(Settings):
    """What replaces the datasets and judges of the papers at this scale."""

    datasets: dict[str, Name]
    """A paper's dataset -> the dataset that replaces it at this scale."""
    judges: dict[str, Name]
    """A paper's judge -> the judge that replaces it at this scale."""


class BootstrapSettings(Settings):
    """How the intervals of all numbers are computed."""

    draws: Annotated[int, Field(ge=20)]
    """Bootstrap samples of the people (Efron and Tibshirani 1993: 200 for a standard error, 1,000 for exact ends)."""


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ImportedSet(Settings):
    """The images of one variant and one dataset."""

    sha256: Sha256
    """SHA-256 of the file ``imported/<scale>/<dataset>/<method>/<variant>.zip``."""
    originals: Sha256
    """SHA-256 of the faces that the program received (`pictures.digest`); other faces need another import."""
    near: Annotated[float, Field(ge=0)]
    """An image counts as an original if their mean absolute difference, in gray levels of 255, is at most this."""


class ImportedMethod(Settings):
    """A method whose images another program made."""

    title: str
    """The method's name in its paper."""
    source: str
    """The paper (authors and year), and the program with its version."""
    variants: dict[Name, dict[Name, ImportedSet]]
    """Variant -> dataset -> the images of its test faces."""


class Common(Settings):
    """The keys of params.yaml except the blocks of the rooms."""

    scale: Name
    """The overlay of scales/ that applies."""
    seeds: Annotated[list[int], Field(min_length=1)]
    """Each seed has its own training and anonymization; tables give mean and spread over the seeds."""
    data_seed: int
    """Seed of the rendered faces, the splits and the backbones."""
    people: PeopleSettings
    share_originals: list[Name]
    """Datasets of real people whose faces may leave this machine: with `dvc push`, MLflow, the report and the crate."""
    rehearsal: bool
    """Whether the build only tests that everything runs: every file is marked, and no table is made."""
    collection: str = ""
    """Folder below weights/ of the networks that this scale exports and adopts; '' = weights/ itself."""
    caution: str = ""
    """The caution that every table and figure of this scale carries; '' = none. Terms of use are added to it."""
    fakes: FakesSettings
    image: ImageSettings
    matrix: MatrixSettings
    measure: MeasureSettings
    target: TargetSettings
    attributes: AttributeProtocol
    recovery: RecoveryProtocol
    attacks: AttackProtocol
    informed: InformedProtocol
    downstream_utility: UtilitySettings
    bootstrap: BootstrapSettings
    stand_ins: StandIns
    papers: list[Name]
    """The papers whose tables and figures are built, and our own tables (folders of reference/)."""
    imported: dict[Name, ImportedMethod] = {}
    """Name -> a method whose images another program made; written by `masquerade import-method`."""
    compute: ComputeSettings
