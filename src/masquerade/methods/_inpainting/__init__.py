"""What the inpainters share: their parameters (here), the base of their classes, region, training and drawing.

An inpainter draws a face into an image in which the face is hidden. The methods and their networks are in their own
folders.
"""

from types import SimpleNamespace

from pydantic import NonNegativeInt

from masquerade.backbones.inversion import RefinementSettings
from masquerade.core.settings import Settings, Share, SmallScale
from masquerade.training.settings import AdversarialUpdates, Weight


class LossSettings(Settings):
    """The weights of the losses that all inpainters have."""

    adversarial: Weight
    """Weight of the adversarial loss (1: all published codes)."""


class FurtherLosses(SmallScale):
    """The weights of losses that none of the papers has (ours)."""

    reconstruction: Weight = 0.0
    """Weight of the mean absolute error of the drawn region (0: none of the papers has it; ours: docs/inpainting.md).
    The face does not reach the network, so the error teaches what the surroundings predict."""
    edges: Weight = 0.0
    """Weight of the same error of differences between neighboring pixels (0: none of the papers has it; ours)."""
    texture: Weight = 0.0
    """Weight of the same error of local sharpness, `sharpening.texture` (0: none of the papers has it; ours)."""


class InpaintingSmallScale(SmallScale):
    """How the training differs from the published one at a small scale: docs/inpainting.md."""

    losses: FurtherLosses = FurtherLosses()
    """The weights of further losses."""
    critic_from: NonNegativeInt = 0
    """Updates of the generator without the critic and without the adversarial loss, before those with both (ours:
    docs/inpainting.md; 0: all published codes)."""


class LatentSettings(RefinementSettings):
    """Drawing by the frozen generator of faces: the optimization of its code on what is around the face (ours).

    Every other knob of the method's ``params`` then counts for nothing.
    """

    share: Share
    """Share of the way from the generator's mean style to a random one; beyond 0.8 it also draws odd faces."""
    points: Weight
    """Weight of the mean squared distance, in sides of the image, of the landmarks that the method is given."""


class InpaintingSettings(AdversarialUpdates):
    """The knobs of the training."""

    sources = {
        "steps": "of the generator",
        "learning_rate": "of the generator and the critic",
        "kernel_rate": "of the generator; 0 as published",
        "cooldown": "the generator's; 0 as published",
    }

    losses: LossSettings
    """The weights of the losses."""
    latent: LatentSettings | None = None
    """Drawing by the generator of faces, without a training (null: the method's own network)."""
    small_scale: InpaintingSmallScale = InpaintingSmallScale()
    """What differs from the published training at a small scale."""

    @property
    def weights(self) -> SimpleNamespace:
        """The weights of all losses, by name."""
        return SimpleNamespace(**dict(self.losses), **dict(self.small_scale.losses))
