"""The blocks of params.yaml for attackers who know the method, and for networks that learn from their pictures."""

from typing import Annotated

from pydantic import Field, model_validator

from masquerade.core.settings import Name, Settings


class AttackedPeople(Settings):
    """How many pictures an attacker who knows the method anonymizes for itself."""

    people: Annotated[int, Field(ge=0)]
    """People of the attackers' group, the first by a hash of their names; 0: all."""
    pictures: Annotated[int, Field(ge=0)]
    """Pictures of each of them; 0: all."""


class InformedSettings(AttackedPeople):
    """Attackers who know the method and learn from its pictures of their own people."""

    held_out: Annotated[float, Field(gt=0, lt=1)]
    """Share of the attackers' people from whom no attack learns: they set its thresholds and show its quality."""
    far: Annotated[float, Field(gt=0, lt=1)]
    """False-accept rate of the threshold, on held-out people under the same condition."""
    judges: Annotated[list[Name], Field(min_length=1)]
    """The clear recognizers of the attacks that have none of their own; no method and no restorer has seen them."""


class InformedProtocol(InformedSettings):
    """Attackers who know the method, and the cells to which they apply."""

    overrides: dict[Name, dict[Name, dict[str, int]]]
    """Method -> variant -> the numbers of people and pictures that differ for it (methods that need seconds a face)."""
    trials: dict[str, Annotated[int, Field(ge=1)]]
    """``method/variant`` -> seeds with which its repeated attackers are trained; 1 for all others."""
    cells: dict[Name, list[str]]
    """Dataset -> patterns ``method/variant`` (``*`` allowed) of the cells that are attacked."""

    @model_validator(mode="after")
    def _overrides_are_valid(self) -> "InformedProtocol":
        for method, variants in self.overrides.items():
            for variant in variants:
                self.people_of(method, variant)
        return self

    def people_of(self, method: str, variant: str) -> AttackedPeople:
        """The numbers of people and pictures for one method and variant."""
        shared = self.model_dump(include=set(AttackedPeople.model_fields))
        return AttackedPeople(**shared | self.overrides.get(method, {}).get(variant, {}))


class UtilitySettings(Settings):
    """Two networks that learn from the attackers' anonymized pictures and are tested on clear ones: a utility.

    The landmark network is trained as backbones.landmarks is, from nothing, except for the values here.
    """

    pictures: Annotated[int, Field(ge=0)]
    """Pictures from which both learn, as many of every method as the rows are to compare; 0: all."""
    landmark_size: Annotated[int, Field(ge=32)]
    """Side in pixels of the input of the landmark network."""
    landmark_widths: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=7)]
    """Channels of its convolutions; each halves the picture."""
    landmark_kernel_rate: Annotated[float, Field(ge=0)]
    """Largest learning rate of Muon, for its kernels (0: AdamW for these too)."""
    landmark_steps: Annotated[int, Field(ge=1)]
    """Its batches, each of backbones.landmarks.batch pictures."""
    detector_widths: Annotated[list[Annotated[int, Field(ge=4)]], Field(min_length=2)]
    """Channels of the face detector after each halving of the picture."""
    detector_steps: Annotated[int, Field(ge=1)]
    """Batches of the face detector."""
    detector_batch: Annotated[int, Field(ge=2)]
    """Pictures in one of these batches."""
    detector_rate: Annotated[float, Field(gt=0)]
    """Largest learning rate of Adam."""
