"""The latent space that several methods share: its frozen networks, codes of real faces, and the set of fakes.

How a method changes a code is in the method's own file or folder; the networks themselves are in backbones/.
"""

from pydantic import NonNegativeInt

from masquerade.core.settings import Settings


class IdentityVariant(Settings):
    """How a code is drawn that a mapping makes of an identity vector, whatever made the vector."""

    identity_steps: NonNegativeInt = 0
    """Number of optimization steps (`methods.latent.identities`) that bring the code which the mapping gives to the
    identity that it should have (docs/identitydp.md); 0 draws the code as it is mapped, as published."""


class SetOfDistractors:
    """What a weight file of distractors depends on. It takes the place of the class of a network, as `SetOfFakes`."""

    title = "distractors (embeddings of drawn faces)"
    paper = "a gallery enlarged by faces of nobody (Kemelmacher-Shlizerman et al. 2016, MegaFace)"
    needs = ("generator",)
    architecture = ("count", "psi", "judges")
    people = "backbones"


class SetOfFakes:
    """What a weight file of fakes depends on. It takes the place of the class of a network (training/pretrained.py)."""

    title = "set of fakes (codes and features of drawn faces)"
    paper = "Barattin et al. 2023, section 3.2 (arXiv:2303.11296)"
    needs = ("generator", "semantics")
    architecture = ("count", "psi")
    people = "backbones"
