"""The blocks of params.yaml for protocols: attributes, recovery, attacks, informed attackers, downstream utility.

The first class of a protocol holds what its jobs read (`slices.PROTOCOLS`); the second one adds the cells to which it
applies, the judges that measure them, and what differs for single methods (``overrides``)::

    informed:
      people: 0
      overrides: {falco: {m_0: {people: 100, pictures: 4}}}
      cells: {synthetic_hq: ["falco/m_0", "k_same/*"]}
"""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from masquerade.core.settings import Name, Settings, SmallScale


class AppliedProtocol(Settings):
    """The cells to which a protocol applies."""

    cells: dict[Name, list[str]]
    """Dataset -> patterns ``method/variant`` (``*`` allowed) of the cells to which the protocol applies."""


class AdjustedProtocol(AppliedProtocol):
    """A protocol of which some numbers may differ for single methods."""

    # The block with these numbers, which the protocol inherits.
    numbers: ClassVar[type[Settings]]

    overrides: dict[Name, dict[Name, dict[str, int]]] = {}
    """Method -> variant -> the numbers that differ for it."""

    @model_validator(mode="after")
    def _overrides_are_valid(self) -> "AdjustedProtocol":
        for method, variants in self.overrides.items():
            for variant in variants:
                self.of(method, variant)
        return self

    def of(self, method: str, variant: str) -> Any:
        """The numbers for one method and variant."""
        shared = self.model_dump(include=set(self.numbers.model_fields))
        return self.numbers(**shared | self.overrides.get(method, {}).get(variant, {}))


class AttributeSmallScale(SmallScale):
    """How the training of FALCO's attribute protocol differs at small scales."""

    frozen_blocks: Annotated[int, Field(ge=0)] = 0
    """Number of the classifier's blocks that keep the weights from ImageNet; 0: all blocks are trained."""


class AttributeSettings(Settings):
    """FALCO's attribute protocol (falco section 4.1): a classifier is trained on anonymized faces."""

    size: Annotated[int, Field(ge=32, multiple_of=32)]
    """Side of the classifier's input in pixels (224: Sandler et al. 2018)."""
    train_pictures: Annotated[int, Field(ge=0)]
    """Faces of the methods' people that are anonymized and trained on, the same for every method; 0: all."""
    labeler_pictures: Annotated[int, Field(ge=0)]
    """Real faces of the methods' people that train the two labelers; 0: all."""
    epochs: Annotated[int, Field(ge=1)]
    """Passes over the faces."""
    batch: Annotated[int, Field(ge=2)]
    """Faces in a batch."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Initial learning rate of Adam; it decreases as a cosine."""
    test_share: Annotated[float, Field(gt=0, lt=1)]
    """Share of the faces that is the test set, for a dataset without a train split (0.2: falco section 4.1)."""
    small_scale: AttributeSmallScale = AttributeSmallScale()
    """How the training differs at small scales."""


class AttributeProtocol(AttributeSettings, AppliedProtocol):
    """FALCO's attribute protocol, and the cells to which it applies."""


class RecoverySettings(Settings):
    """How many images and keys the recovery protocol uses for each cell."""

    pictures: Annotated[int, Field(ge=0)]
    """Faces of the test split, the same for every method; 0: all."""
    wrong_keys: Annotated[int, Field(ge=1)]
    """Wrong keys with which each face is recovered."""
    near_keys: Annotated[int, Field(ge=1)]
    """Keys that differ from the right one in one digit or bit, with which each face is recovered."""
    other_keys: Annotated[int, Field(ge=1)]
    """Other keys, each one for all faces, with which the faces are anonymized (diversity: ifadit section 4.4)."""


class RecoveryProtocol(RecoverySettings, AdjustedProtocol):
    """The recovery protocol, its judges, and the cells whose faces are recovered."""

    numbers = RecoverySettings

    judges: list[Name]
    """The judges that measure the recovered faces."""


class AttackSettings(Settings):
    """The attacks that need no training: guessed keys, averaged wrong keys, a flipped sign, linked images."""

    judge: str
    """The judge that decides whether an image shows the same person; no training may use its embedding."""
    far: Annotated[float, Field(gt=0, lt=1)]
    """False-accept rate of its threshold: how often an attack that shows a random other person would succeed."""
    pictures: Annotated[int, Field(ge=1)]
    """Anonymized images on which keys are tried."""
    guesses: Annotated[int, Field(ge=1)]
    """Different keys that are tried on each image."""
    averaged: Annotated[int, Field(ge=1)]
    """Wrong keys whose recovered faces are averaged: the first of the guesses."""

    @model_validator(mode="after")
    def _averages_guesses(self) -> "AttackSettings":
        if self.averaged > self.guesses:
            raise ValueError(f"averaged is at most the number of guesses ({self.guesses}), not {self.averaged}")
        return self


class AttackProtocol(AttackSettings, AppliedProtocol):
    """The attacks that need no training, and the cells to which they apply."""


class AttackedPeople(Settings):
    """How many images an attacker who knows the method anonymizes for itself."""

    people: Annotated[int, Field(ge=0)]
    """People of the attackers' group, the first by a hash of their names; 0: all."""
    pictures: Annotated[int, Field(ge=0)]
    """Images of each of them; 0: all."""


class InformedSettings(AttackedPeople):
    """Attackers who know the method and learn from its images of their own people."""

    held_out: Annotated[float, Field(gt=0, lt=1)]
    """Share of the attackers' people from whom no attack learns: they set its thresholds and show its quality."""
    far: Annotated[float, Field(gt=0, lt=1)]
    """False-accept rate of the threshold, on held-out people under the same condition."""
    judges: Annotated[list[Name], Field(min_length=1)]
    """The naive recognizers of the attacks that have none of their own; no method and no restorer has seen them."""


class InformedProtocol(InformedSettings, AdjustedProtocol):
    """Attackers who know the method, and the cells that they attack. A slow method has overrides."""

    numbers = AttackedPeople

    trials: dict[str, Annotated[int, Field(ge=1)]] = {}
    """``method/variant`` -> seeds with which its repeated attackers are trained; 1 for all others."""


class UtilitySmallScale(SmallScale):
    """How the trainings of the downstream utility differ at small scales."""

    landmark_kernel_rate: Annotated[float, Field(ge=0)] = 0.0
    """Largest learning rate of Muon, for the kernels of the landmark network (0: AdamW for these too)."""


class UtilitySettings(Settings):
    """Two networks that learn from the attackers' anonymized images and are tested on unprotected ones: a utility.

    The landmark network is trained as backbones.landmarks is, from nothing, except for the values here.
    """

    pictures: Annotated[int, Field(ge=0)]
    """Images from which both learn, as many of every method as the rows are to compare; 0: all."""
    landmark_size: Annotated[int, Field(ge=32)]
    """Side in pixels of the input of the landmark network."""
    landmark_widths: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=7)]
    """Channels of its convolutions; each halves the image."""
    landmark_steps: Annotated[int, Field(ge=1)]
    """Its batches, each of backbones.landmarks.batch images."""
    detector_widths: Annotated[list[Annotated[int, Field(ge=4)]], Field(min_length=2)]
    """Channels of the face detector after each halving of the image."""
    detector_steps: Annotated[int, Field(ge=1)]
    """Batches of the face detector."""
    detector_batch: Annotated[int, Field(ge=2)]
    """Images in one of these batches."""
    detector_rate: Annotated[float, Field(gt=0)]
    """Largest learning rate of Adam."""
    small_scale: UtilitySmallScale = UtilitySmallScale()
    """How the trainings differ at small scales."""
