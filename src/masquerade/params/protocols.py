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
    """For each dataset, the patterns ``method/variant`` to which the protocol applies; ``*`` stands for any name."""


class AdjustedProtocol(AppliedProtocol):
    """A protocol of which some numbers may differ for single methods."""

    # The block with these numbers, which the protocol inherits.
    numbers: ClassVar[type[Settings]]

    overrides: dict[Name, dict[Name, dict[str, int]]] = {}
    """For a method and one of its variants, the numbers of this block that differ for it, such as ``{falco: {m_0:
    {people: 100}}}``."""

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
    """Number of blocks of the classifier that keep their ImageNet weights; at 0 all blocks are trained, as in the
    paper."""


class AttributeSettings(Settings):
    """FALCO's attribute protocol (falco section 4.1): a classifier is trained on anonymized faces."""

    size: Annotated[int, Field(ge=32, multiple_of=32)]
    """Side of the classifier's input in pixels (224: Sandler et al. 2018)."""
    train_pictures: Annotated[int, Field(ge=0)]
    """Number of faces of the methods' people that are anonymized and trained on, the same for every method; 0 takes
    all."""
    labeler_pictures: Annotated[int, Field(ge=0)]
    """Number of unprotected faces of the methods' people that train the two networks which label the test images; 0
    takes all."""
    epochs: Annotated[int, Field(ge=1)]
    """Number of passes over the training faces."""
    batch: Annotated[int, Field(ge=2)]
    """Number of faces in a batch."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Initial learning rate of Adam, which decays as a cosine."""
    test_share: Annotated[float, Field(gt=0, lt=1)]
    """Share of the faces that forms the test set, for a dataset without a train split (0.2: falco section 4.1)."""
    small_scale: AttributeSmallScale = AttributeSmallScale()
    """How the training of the classifier differs from the paper at a small scale."""


class AttributeProtocol(AttributeSettings, AppliedProtocol):
    """FALCO's attribute protocol, and the method variants to which it applies."""


class RecoverySettings(Settings):
    """How many images and keys the recovery protocol uses for each cell."""

    pictures: Annotated[int, Field(ge=0)]
    """Number of faces of the test split that are recovered, the same for every method; 0 takes all."""
    wrong_keys: Annotated[int, Field(ge=1)]
    """Number of wrong keys with which each face is recovered."""
    near_keys: Annotated[int, Field(ge=1)]
    """Number of keys that differ from the right one in a single digit or bit, with which each face is recovered."""
    other_keys: Annotated[int, Field(ge=1)]
    """Number of further keys with which all faces are anonymized, to measure how the results differ between keys
    (ifadit section 4.4)."""


class RecoveryProtocol(RecoverySettings, AdjustedProtocol):
    """How anonymized faces are recovered, for which method variants, and which evaluators measure the result."""

    numbers = RecoverySettings

    judges: list[Name]
    """The evaluators that measure the recovered faces."""


class AttackSettings(Settings):
    """The attacks that need no training: guessed keys, averaged wrong keys, a flipped sign, linked images."""

    judge: str
    """The evaluator that decides whether an image shows the same person. No training may use its embedding."""
    far: Annotated[float, Field(gt=0, lt=1)]
    """False-accept rate at which the threshold of this evaluator is set: the rate at which an attack that shows a
    random other person would succeed."""
    pictures: Annotated[int, Field(ge=1)]
    """Number of anonymized images on which keys are tried."""
    guesses: Annotated[int, Field(ge=1)]
    """Number of different keys that are tried on each image."""
    averaged: Annotated[int, Field(ge=1)]
    """Number of wrong keys whose recovered faces are averaged in the averaging attack. They are the first of the
    guesses."""

    @model_validator(mode="after")
    def _averages_guesses(self) -> "AttackSettings":
        if self.averaged > self.guesses:
            raise ValueError(f"averaged is at most the number of guesses ({self.guesses}), not {self.averaged}")
        return self


class AttackProtocol(AttackSettings, AppliedProtocol):
    """The attacks that need no training, and the method variants that they attack."""


class AttackedPeople(Settings):
    """How many images an attacker who knows the method anonymizes for itself."""

    people: Annotated[int, Field(ge=0)]
    """Number of people of the attackers' group whose images an attacker anonymizes, chosen by a hash of their names; 0
    takes all."""
    pictures: Annotated[int, Field(ge=0)]
    """Number of images of each of these people; 0 takes all."""
    linked: Annotated[int, Field(ge=0)]
    """Number of tested people of whom an image of the gallery is anonymized, too, for the attackers who link two
    anonymized images; 0 takes all. Datasets whose test split has several images of a person have no gallery."""


class InformedSettings(AttackedPeople):
    """Attackers who know the method and learn from its images of their own people."""

    held_out: Annotated[float, Field(gt=0, lt=1)]
    """Share of the attackers' people from whom no attack learns. Thresholds and the quality of the attack are measured
    on them."""
    far: Annotated[float, Field(gt=0, lt=1)]
    """False-accept rate at which the thresholds of the attacks are set, on held-out people under the same condition."""
    judges: Annotated[list[Name], Field(min_length=1)]
    """The recognizers, trained on unprotected faces, that identify people in attacks without a recognizer of their own.
    No method and no reconstruction attacker was trained with them."""


class InformedProtocol(InformedSettings, AdjustedProtocol):
    """The attackers who know the method, and the method variants that they attack. Slow methods have `overrides`."""

    numbers = AttackedPeople

    trials: dict[str, Annotated[int, Field(ge=1)]] = {}
    """For a ``method/variant``, the number of seeds with which its attackers are trained; it is 1 for all others."""


class UtilitySmallScale(SmallScale):
    """How the trainings of the downstream utility differ at small scales."""

    landmark_kernel_rate: Annotated[float, Field(ge=0)] = 0.0
    """Largest learning rate of the optimizer Muon, which then trains the kernels of the landmark network; at 0 AdamW
    trains them too."""


class UtilitySettings(Settings):
    """Two networks, for landmarks and for face detection, that learn from the attackers' anonymized images and are
    tested on unprotected ones. Their accuracy measures how useful anonymized images are for training. Except for the
    values here, the landmark network is trained as `backbones.landmarks` is, from random weights.
    """

    pictures: Annotated[int, Field(ge=0)]
    """Number of images from which both networks learn. All methods that are compared need the same number; 0 takes all
    images."""
    landmark_size: Annotated[int, Field(ge=32)]
    """Side in pixels of the input of the landmark network."""
    landmark_widths: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=7)]
    """Number of channels of each of its convolutions, which halve the image in turn."""
    landmark_steps: Annotated[int, Field(ge=1)]
    """Number of updates of the landmark network, each with `backbones.landmarks.batch` images."""
    detector_widths: Annotated[list[Annotated[int, Field(ge=4)]], Field(min_length=2)]
    """Number of channels of the face detector after each halving of the image."""
    detector_steps: Annotated[int, Field(ge=1)]
    """Number of updates of the face detector."""
    detector_batch: Annotated[int, Field(ge=2)]
    """Number of images in one of these updates."""
    detector_rate: Annotated[float, Field(gt=0)]
    """Largest learning rate of Adam for the face detector."""
    small_scale: UtilitySmallScale = UtilitySmallScale()
    """How the trainings differ at a small scale."""
