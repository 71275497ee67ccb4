"""DeepPrivacy (Hukkelås et al. 2019, arXiv:1909.04538): an inpainter that gets keypoints and a latent code.

The parameters are here. The class is in method.py, which imports no torch. The numbers in brackets are those of the
published code.
"""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from masquerade.methods._inpainting import InpaintingSettings, InpaintingSmallScale, LossSettings
from masquerade.training.settings import Width


class DeepPrivacyLosses(LossSettings):
    """The weights of the losses."""

    gradient_penalty: NonNegativeFloat
    """Weight of the gradient penalty of the critic (10)."""
    drift: NonNegativeFloat
    """Weight of the mean square of the critic's scores of unprotected images (0.001)."""


class DeepPrivacySmallScale(InpaintingSmallScale):
    """How the training differs from the published one at a small scale."""

    penalty_every: PositiveInt = 1
    """Number of updates of the critic from one with the gradient penalty to the next; the penalty is then multiplied by
    this number (1; 16: the second version of the published code)."""


class DeepPrivacySettings(InpaintingSettings):
    """The parameters of DeepPrivacy."""

    widths: Annotated[list[Width], Field(min_length=2)]
    """Number of channels at each resolution, the finest first, down to 4 x 4 pixels (128, 256, 512, 512, 512, 512 at
    128 pixels: the large published model, 46.9 million parameters)."""
    pose: Literal[0, 7]
    """Number of keypoints that the networks receive (7; 0: the published model without pose)."""
    code: PositiveInt
    """Number of channels of the latent code at 4 x 4 pixels (32)."""
    losses: DeepPrivacyLosses  # pyright: ignore[reportIncompatibleVariableOverride]
    """The weights of the losses."""
    small_scale: DeepPrivacySmallScale = DeepPrivacySmallScale()  # pyright: ignore[reportIncompatibleVariableOverride]
    """How the training differs from the published one at a small scale."""

    @property
    def size(self) -> int:
        """Side in pixels of the images that the network draws."""
        return 4 * 2 ** (len(self.widths) - 1)
