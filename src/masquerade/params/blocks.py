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
    """The size of the images of every dataset."""

    size: Annotated[int, Field(ge=32, le=1024)]
    """Side of every image in pixels (256: identitydp, section V.A)."""


class MatrixSettings(Settings):
    """What is trained, and which method variants are evaluated on which dataset."""

    train_on: Name
    """The dataset whose train split trains all backbones and methods; each of them learns from the people of its group
    (see `people`)."""
    calibrate_on: Literal["validation"]
    """The split whose people set the verification thresholds. It shares no person with the test split."""
    evaluate: dict[Name, list[str]]
    """For each dataset, the patterns ``method/variant`` of what anonymizes its test split and is measured; ``*`` stands
    for any name."""


class PeopleSettings(Settings):
    """The shares of the people of the train split from whom each group of networks learns. No person is in two
    groups.
    """

    backbones: Annotated[float, Field(ge=0, le=1)]
    """Share of the people for the networks that appear in losses: identity, semantics, generator, inversion, parsing
    and landmarks."""
    judges: Annotated[float, Field(ge=0, le=1)]
    """Share of the people for the networks that only evaluate: the recognizers, each with its own part of these people,
    and the attribute classifier."""
    methods: Annotated[float, Field(ge=0, le=1)]
    """Share of the people for the methods, for their galleries of other people, and for the networks that learn
    attributes from anonymized faces."""
    attackers: Annotated[float, Field(ge=0, le=1)]
    """Share of the people for the attackers, who know the method."""

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
    """The generated faces of no real person, among which some methods choose a new identity."""

    published: WeightsName = ""
    """The latent codes that replace the sampling of new ones, such as ``weights:photo/fakes``. An empty text means that
    they are sampled here."""

    count: Annotated[int, Field(ge=2)]
    """Number of generated faces. It must exceed the number of faces in any set that is anonymized with them (falco
    section 3.2)."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation psi of the generator: at 1 the latent codes stay as they are, and smaller values move them towards the
    mean of W."""


class DistractorSettings(Settings):
    """Generated faces of no real person that enlarge a gallery, to see whom a recognizer finds among many."""

    published: WeightsName = ""
    """Their embeddings that replace the drawing of new ones, such as ``weights:photo/distractors``. An empty text means
    that they are drawn here."""

    count: Annotated[int, Field(ge=0)]
    """Number of generated faces; 0: the gallery is not enlarged."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation psi of the generator, as in `fakes`."""
    judges: list[Name]
    """The recognizers that describe them."""


class MeasureSettings(Settings):
    """How every set of images is measured."""

    batch: Annotated[int, Field(ge=1)]
    """Number of images that are held in memory and measured at a time."""
    judges: list[Name]
    """The evaluators that measure every set of images."""


class TargetSettings(Settings):
    """The set of images that the Frechet distance to a target compares with: images of the people from whom the methods
    learn.
    """

    judges: list[Name]
    """The evaluators whose features are compared."""
    pictures: Annotated[int, Field(ge=0)]
    """Number of images in the target set, which is the same for every method; 0 takes all."""


class StandIns(Settings):
    """The datasets and evaluators that replace those of the papers at this scale."""

    datasets: dict[str, Name]
    """For each dataset of a paper, the dataset that replaces it at this scale."""
    judges: dict[str, Name]
    """For each evaluator of a paper, the evaluator that replaces it at this scale."""


class BootstrapSettings(Settings):
    """How the confidence intervals of all numbers are computed."""

    draws: Annotated[int, Field(ge=20)]
    """Number of bootstrap resamples of the tested people (DiCiccio and Efron 1996: 2,000 for BCa intervals)."""


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ImportedImages(Settings):
    """What one program made."""

    title: str
    """The name of the method in its paper, or of the program."""
    source: str
    """The paper (authors and year), and the program with its version."""
    near: Annotated[float, Field(ge=0)]
    """An image counts as an unchanged original if their mean absolute difference is at most this many gray levels of
    255."""
    images: dict[Name, Sha256]
    """For each dataset, the SHA-256 of the file ``imported/<scale>/<dataset>/<variant>.zip``."""
    recovers: bool
    """Whether these files also hold what the program recovered from its own images."""


class Common(Settings):
    """The keys of params.yaml except the blocks of the rooms."""

    scale: Name
    """The scale, which names the overlay of scales/ that applies."""
    seeds: Annotated[list[int], Field(min_length=1)]
    """The random seeds. Each has its own training and its own anonymization, and tables give the mean and the spread
    over the seeds."""
    data_seed: int
    """The random seed of the rendered faces, of the splits and of the backbones."""
    people: PeopleSettings
    share_originals: list[Name]
    """The datasets of real people whose faces may leave this machine by `dvc push`, MLflow, the report or an exported
    crate (docs/sharing.md)."""
    rehearsal: bool
    """Whether the build only tests that everything runs. Every file is then marked, and no table is made."""
    collection: str = ""
    """The folder below weights/ to which this scale exports its networks and from which it loads them. An empty text
    means weights/ itself."""
    caution: str = ""
    """The caution that is printed below every table and figure of this scale; an empty text prints none. The terms of
    use of its networks are added to it."""
    fakes: FakesSettings
    distractors: DistractorSettings
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
    """The papers whose tables and figures are built, and our own tables (`attackers`): folders of reference/."""
    compute: ComputeSettings
