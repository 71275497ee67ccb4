"""What the inpainters share: their parameters (here), the base of their classes, region, training and drawing.

An inpainter draws a face into an image in which the face is hidden. The methods and their networks are in their own
folders.
"""

from types import SimpleNamespace

from pydantic import NonNegativeInt

from masquerade.core.settings import Settings, SmallScale
from masquerade.training.settings import AdversarialUpdates, Weight


class LossSettings(Settings):
    """The weights of the losses that all inpainters have."""

    adversarial: Weight
    """Weight of the adversarial loss (1: all published codes)."""


class FurtherLosses(SmallScale):
    """The weights of losses that none of the papers has (ours)."""

    reconstruction: Weight = 0.0
    """Weight of the mean absolute error of the generated region (0: all papers; ours: docs/inpainting.md). The face
    does not reach the network, so this error teaches what can be predicted from the surroundings."""
    edges: Weight = 0.0
    """Weight of the same error of the differences between neighboring pixels (0: all papers; ours)."""
    texture: Weight = 0.0
    """Weight of the same error of local sharpness, as in `sharpening.texture` of the generator (0: all papers;
    ours)."""


class InpaintingSmallScale(SmallScale):
    """How the training differs from the published one at a small scale (docs/inpainting.md)."""

    losses: FurtherLosses = FurtherLosses()
    """The weights of further losses."""
    critic_from: NonNegativeInt = 0
    """Number of first updates of the generator that use neither the critic nor the adversarial loss (0: all published
    codes; ours: docs/inpainting.md)."""


class InpaintingSettings(AdversarialUpdates):
    """The parameters of the training."""

    sources = {
        "steps": "of the generator",
        "learning_rate": "of the generator and the critic",
        "kernel_rate": "of the generator; 0 as published",
        "cooldown": "the generator's; 0 as published",
    }

    losses: LossSettings
    """The weights of the losses."""
    small_scale: InpaintingSmallScale = InpaintingSmallScale()
    """How the training differs from the published one at a small scale."""

    @property
    def weights(self) -> SimpleNamespace:
        """The weights of all losses, by name."""
        return SimpleNamespace(**dict(self.losses), **dict(self.small_scale.losses))
