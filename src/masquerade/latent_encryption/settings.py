"""The knobs of the latent encryptor: its widths, losses and optimiser."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from masquerade.settings import Settings

Weight = Annotated[float, Field(ge=0)]


class LossSettings(Settings):
    lpips: Weight
    """Perceptual distance of the original to five pictures (1: Li et al. 2023; needs AlexNet's weights)."""
    reversed_identity: Weight
    """Of identities that must differ (1: Li et al. 2023)."""
    identity_recovery: Weight
    """Of the identity that the right password brings back (1: Li et al. 2023)."""
    pixels: Weight
    """Mean squared difference of the recovered picture (0.05: Li et al. 2023)."""
    layout: Weight
    """Of the five pictures at LAYOUT pixels, where LPIPS cannot be had (0: ours, not in the paper)."""
    latents: Weight
    """Mean squared difference of the decrypted code, on codes alone (0: ours, not in the paper)."""
    reversed_latents: Weight
    """As ``reversed_identity``, with codes in the place of identities (0: ours, not in the paper)."""
    distribution: Weight
    """Of codes that no encoder would give: their energy distance from those of faces (0: ours, not in the paper)."""
    reinverted: Weight
    """Of recovery from the picture, encoded again: its identity and pixels (0: ours, not in the paper)."""


class EncryptorSettings(Settings):
    groups: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    """Style layers of each decoder layer, of 14 (4, 4, 6: Li et al. 2023); smaller generators: docs/riddle.md."""
    width: Annotated[int, Field(ge=4)]
    """d of the transformer (512: Li et al. 2023)."""
    heads: Annotated[int, Field(ge=1)]
    """Heads of its attention (4: Li et al. 2023)."""
    hidden: Annotated[int, Field(ge=4)]
    """Numbers inside its feed-forward part (1024: Li et al. 2023)."""
    losses: LossSettings
    """What is weighed how much."""
    margin: Annotated[float, Field(ge=-1, le=1)]
    """The cosine up to which two identities count as different (0.1: Li et al. 2023)."""
    steps: Annotated[int, Field(ge=1)]
    """Updates (at most 100,000: Li et al. 2023)."""
    batch: Annotated[int, Field(ge=1)]
    """Faces that are drawn in an update (4: Li et al. 2023)."""
    pictures_every: Annotated[int, Field(ge=1)]
    """Updates from one with pictures to the next (1: Li et al. 2023); between them codes alone."""
    code_batch: Annotated[int, Field(ge=1)]
    """Codes in an update that are not drawn, for ``losses.latents`` and ``losses.reversed_latents``."""
    optimiser: Literal["ranger", "muon"]
    """Ranger (Li et al. 2023), or Muon for the matrices and Adam for the rest."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Its learning rate (0.0005: Li et al. 2023)."""
    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps, the last ones, over which the learning rate falls to 0 (0: it stays)."""
    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay a step of the average of the weights that is saved (0: the last weights)."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two pictures of samples."""

    @property
    def codes_alone(self) -> bool:
        """Whether anything is learnt from codes that nobody draws."""
        return bool(self.losses.latents or self.losses.reversed_latents or self.losses.distribution)

    @model_validator(mode="after")
    def _something_to_learn(self) -> Self:
        if self.pictures_every > 1 and not self.codes_alone:
            raise ValueError("pictures_every must be 1 where no loss is on codes alone: other updates learn nothing")
        return self
