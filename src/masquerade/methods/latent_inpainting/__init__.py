"""Latent inpainting (ours): a frozen generator of faces continues what is around a hidden face. Nothing is trained.

The parameters are here, the class is in method.py, and drawing.py optimizes the latent codes.
"""

from masquerade.backbones.inversion import OptimizationSettings
from masquerade.core.settings import Share
from masquerade.training.settings import Weight


class LatentInpaintingSettings(OptimizationSettings):
    """The optimization of the latent code on what is around the face."""

    share: Share
    """Share of the way from the generator's mean style to a random one, for the face that fills the hidden region
    before the optimization. Above 0.8 the generator also gives odd faces."""
    points: Weight
    """Weight of the mean squared distance, in sides of the image, between seven keypoints of the generated face and
    those of the original."""
