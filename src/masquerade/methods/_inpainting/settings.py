"""The knobs that all inpainters share."""

from typing import Annotated

from pydantic import Field

from masquerade.backbones.inversion import RefinementSettings
from masquerade.core.settings import Settings
from masquerade.training.settings import AdversarialUpdates, Weight

Width = Annotated[int, Field(ge=4)]
LATENT_NEEDS = ("generator", "inversion")
"""The backbones of a drawing by the generator of faces, which needs ``landmarks``, too, if it gets a guide."""


LATENT_STAND_IN = (
    "a frozen generator continues what is around the face, by optimization of its latent code; nothing of the "
    "published network is trained"
)
"""What `latent` runs in the place of the published inpainters (`Method.latent_stand_in`)."""


class LossSettings(Settings):
    """The weights of the losses that all inpainters have."""

    adversarial: Weight
    """Weight of the adversarial loss (1: all published codes)."""
    reconstruction: Weight
    """Weight of the mean absolute error of the drawn region (0: none of the papers has it; ours: docs/inpainting.md).
    The face does not reach the network, so the error teaches what the surroundings predict."""
    edges: Weight
    """Weight of the same error of differences between neighboring pixels (0: none of the papers has it; ours)."""
    texture: Weight
    """Weight of the same error of local sharpness, `sharpening.texture` (0: none of the papers has it; ours)."""


class LatentSettings(RefinementSettings):
    """Drawing by the frozen generator of faces: the optimization of its code on what is around the face (ours).

    Every other knob of the method's ``params`` then counts for nothing.
    """

    share: Annotated[float, Field(ge=0, le=1)]
    """Share of the way from the generator's mean style to a random one; beyond 0.8 it also draws odd faces."""
    points: Weight
    """Weight of the mean squared distance, in sides of the picture, of the landmarks that the method is given."""


class InpaintingSettings(AdversarialUpdates):
    """The knobs of the training."""

    sources = {
        "steps": "of the generator",
        "learning_rate": "of the generator and the critic",
        "kernel_rate": "of the generator; 0 as published",
        "cooldown": "the generator's; 0 as published",
    }

    critic_from: Annotated[int, Field(ge=0)]
    """Updates of the generator without the critic and without the adversarial loss, before those with both (ours:
    docs/inpainting.md; 0: all published codes)."""
    jitter: Annotated[float, Field(ge=0, le=0.2)]
    """Largest shift of each side of the region while training, as a share of its size."""
