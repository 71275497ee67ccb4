"""Samples the local changes of a face: what differs between two people of the same gender, age and ancestry.

A local change of the template is a pair of opposite shapes, e.g. a wider and a narrower nose; an amount of 1 is all of
the first, -1 all of the second. Real people differ in many of them a little and in some of them a lot, so amounts are
normal, and common factors (a large nose, full lips, a round face) move many changes together.
"""

from dataclasses import dataclass, field

import numpy as np

LIMIT = 0.9
"""Amounts are clipped at +-LIMIT: beyond it the shapes of the template begin to fold."""
WOMEN = 0.9
"""Factor on the deviations of women, whose faces turn into caricatures sooner."""
FULL = {"mouth-lowerlip-volume-incr": -0.25, "mouth-upperlip-volume-incr": -0.25, "nose-scale-horiz-incr": -0.25}
"""Local change -> added to its mean by african ancestry, of which the template's own shapes are strong."""
CROOKED = 0.06
"""Standard deviation of the difference between the two sides, as an amount."""


@dataclass(frozen=True)
class Change:
    """How a local change is distributed. All numbers are amounts."""

    spread: float  # standard deviation
    woman: float = 0.0  # added to the mean of women
    man: float = 0.0  # added to the mean of men
    old: float = 0.0  # added to the mean of people of 80 years; half of it at 60
    up: float = 1.0  # factor on positive amounts, where the positive shape is the stronger one
    factors: dict[str, float] = field(default_factory=dict)  # common factor -> loading


FACTORS = ("nose", "lips", "eyes", "round", "broad", "jaw", "ears", "brow")
"""The common factors, in the order of their draws. Each is a standard normal number, clipped at 2.2."""

CHANGES = {
    # cheeks
    "cheek-trans-up": Change(0.30, woman=0.14),
    "cheek-volume-incr": Change(0.26, factors={"round": 0.20}, old=-0.45),
    "cheek-inner-incr": Change(0.20, factors={"round": 0.10}, old=-0.35, up=0.6),
    "cheek-bones-incr": Change(0.34, woman=0.07, up=0.7),
    # chin and jaw
    "chin-jaw-drop-incr": Change(0.30, woman=-0.14, factors={"jaw": 0.15}),
    "chin-height-incr": Change(0.30, woman=-0.17, man=0.05, factors={"round": -0.12}, up=0.6),
    "chin-prominent-incr": Change(0.26, woman=-0.11, factors={"jaw": 0.08}),
    "chin-bones-incr": Change(0.22, woman=-0.28, man=0.06, factors={"jaw": 0.12}, up=0.7),
    "chin-width-incr": Change(0.26, woman=-0.45, man=0.10, factors={"jaw": 0.16}, up=0.6),
    "chin-cleft-incr": Change(0.34, woman=-0.28),
    "chin-prognathism-incr": Change(0.22, woman=-0.07),
    # ears
    "ear-lobe-incr": Change(0.35, old=0.35, factors={"ears": 0.15}),
    "ear-shape-round": Change(0.30),
    "ear-trans-forward": Change(0.10),
    "ear-rot-forward": Change(0.22),
    "ear-trans-up": Change(0.08),
    "ear-scale-vert-incr": Change(0.24, woman=-0.07, old=0.20, factors={"ears": 0.15}),
    "ear-flap-incr": Change(0.22, factors={"ears": 0.12}, up=0.6),
    "ear-shape-triangle": Change(0.10, up=0.7),
    "ear-scale-incr": Change(0.22, woman=-0.11, old=0.10, factors={"ears": 0.15}),
    "ear-scale-depth-incr": Change(0.15),
    "ear-wing-incr": Change(0.30, factors={"ears": 0.10}),
    # brows as bones
    "eyebrows-angle-up": Change(0.20, woman=0.14, man=-0.03),
    "eyebrows-trans-up": Change(0.24, woman=0.28, man=0.06, old=-0.05),
    "eyebrows-trans-forward": Change(0.16, woman=-0.36, man=0.05, factors={"brow": 0.08}, up=0.5),
    # eyes
    "eye-corner1-up": Change(0.30),
    "eye-corner2-up": Change(0.42, woman=0.17, old=-0.45),
    "eye-height1-incr": Change(0.26, woman=0.17, man=0.10, factors={"eyes": 0.13}),
    "eye-height2-incr": Change(0.26, woman=0.28, man=0.20, old=-0.40, factors={"eyes": 0.16}),
    "eye-height3-incr": Change(0.26, woman=0.17, man=0.10, factors={"eyes": 0.13}),
    "eye-scale-incr": Change(0.22, woman=0.34, man=0.08, factors={"eyes": 0.14}),
    "eye-push1-out": Change(0.20, factors={"eyes": 0.05}),
    "eye-push2-out": Change(0.20, factors={"eyes": 0.05}),
    "eye-eyefold-up": Change(0.30, woman=0.14, old=-0.45),
    "eye-eyefold-angle-up": Change(0.30, old=-0.45),
    "eye-bag-incr": Change(0.22, woman=-0.14, old=0.45),
    "eye-bag-out": Change(0.20, woman=-0.07, old=0.35),
    "eye-bag-height-incr": Change(0.22),
    "eye-trans-up": Change(0.16, up=0.6),
    "eye-trans-out": Change(0.36),
    "eye-epicanthus-out": Change(0.18, up=0.6),
    # forehead
    "forehead-temple-incr": Change(0.26, old=-0.15),
    "forehead-trans-forward": Change(0.18, woman=0.08, man=-0.04),
    "forehead-scale-vert-incr": Change(0.20, woman=-0.11, man=0.0, up=0.5),
    "forehead-nubian-incr": Change(0.10, woman=0.07, man=-0.03),
    # head
    "head-angle-out": Change(0.03),
    "head-scale-vert-incr": Change(0.16, factors={"broad": -0.10}),
    "head-fat-incr": Change(0.20, factors={"round": 0.22}, up=0.75),
    "head-back-scale-depth-incr": Change(0.14),
    "head-age-incr": Change(0.10, old=0.80, woman=-0.10),
    "head-scale-depth-incr": Change(0.24),
    "head-scale-horiz-incr": Change(0.14, woman=-0.08, man=0.02, factors={"broad": 0.16}),
    # mouth
    "mouth-scale-horiz-incr": Change(0.34, woman=0.08, man=0.08),
    "mouth-scale-vert-incr": Change(0.16, old=-0.35, factors={"lips": 0.12}, up=0.6),
    "mouth-scale-depth-incr": Change(0.18, factors={"lips": 0.05}),
    "mouth-lowerlip-height-incr": Change(0.18, woman=0.04, man=-0.03, factors={"lips": 0.12}, up=0.6),
    "mouth-lowerlip-volume-incr": Change(0.22, woman=0.14, old=-0.50, factors={"lips": 0.16}, up=0.7),
    "mouth-lowerlip-width-incr": Change(0.20),
    "mouth-lowerlip-ext-up": Change(0.14),
    "mouth-lowerlip-middle-up": Change(0.16, up=0.7),
    "mouth-upperlip-height-incr": Change(0.24, woman=0.17, man=-0.03, old=-0.15, factors={"lips": 0.20}),
    "mouth-upperlip-volume-incr": Change(0.22, woman=0.14, old=-0.55, factors={"lips": 0.18}),
    "mouth-upperlip-width-incr": Change(0.20, up=0.8),
    "mouth-upperlip-ext-up": Change(0.16),
    "mouth-upperlip-middle-up": Change(0.20),
    "mouth-cupidsbow-incr": Change(0.30, woman=0.07),
    "mouth-cupidsbow-width-incr": Change(0.26),
    "mouth-angles-up": Change(0.20, woman=0.28, man=0.22, old=-0.38),
    "mouth-laugh-lines-out": Change(0.20, woman=-0.14, old=0.50),
    "mouth-dimples-out": Change(0.24),
    "mouth-philtrum-volume-incr": Change(0.20),
    "mouth-trans-up": Change(0.22, woman=0.04),
    "mouth-trans-forward": Change(0.14, woman=-0.07, up=0.6),
    "mouth-trans-out": Change(0.05),
    # nose
    "nose-nostrils-angle-up": Change(0.24),
    "nose-nostrils-width-incr": Change(0.24, woman=-0.08, factors={"nose": 0.12}, up=0.7),
    "nose-flaring-incr": Change(0.26, woman=-0.11, factors={"nose": 0.08}),
    "nose-curve-convex": Change(0.24, woman=-0.20, man=0.04),
    "nose-hump-incr": Change(0.26, woman=-0.22, man=0.05, factors={"nose": 0.08}),
    "nose-greek-incr": Change(0.26),
    "nose-scale-depth-incr": Change(0.28, woman=-0.14, man=0.02, factors={"nose": 0.16}),
    "nose-scale-vert-incr": Change(0.32, woman=-0.17, man=0.04, old=0.18, factors={"nose": 0.16}),
    "nose-scale-horiz-incr": Change(0.36, woman=-0.31, man=0.04, old=0.10, factors={"nose": 0.18}),
    "nose-point-width-incr": Change(0.36, factors={"nose": 0.08}),
    "nose-point-up": Change(0.26, woman=0.20, old=-0.28),
    "nose-width1-incr": Change(0.34, woman=-0.20),
    "nose-width2-incr": Change(0.34, woman=-0.20),
    "nose-width3-incr": Change(0.26, woman=-0.22, factors={"nose": 0.14}, up=0.7),
    "nose-base-up": Change(0.20),
    "nose-septumangle-incr": Change(0.24),
    "nose-compression-uncompress": Change(0.20),
    "nose-volume-incr": Change(0.20, woman=-0.20, factors={"nose": 0.16}),
    "nose-trans-up": Change(0.24),
    "nose-trans-forward": Change(0.16),
    "nose-trans-out": Change(0.04),
    # neck
    "measure-neck-circ-incr": Change(0.20, woman=-0.35, man=0.10, factors={"round": 0.12}),
    "neck-double-incr": Change(0.14, old=0.25, factors={"round": 0.12}),
    "neck-scale-horiz-incr": Change(0.12, woman=-0.14),
}
"""Name of the positive shape without its side -> distribution, in the order of the draws. Others stay at 0."""

SIDES = ("l-", "r-")


def sample_features(
    rng: np.random.Generator, male: bool, old: float, african: float, names: tuple[str, ...]
) -> np.ndarray:
    """float32 (L,): the amounts of the local changes ``names``, in their order.

    ``old``: 0 for the young, 1 at 80 years. ``african``: share of the ancestry. Both sides of a face share a draw; a
    small second draw makes the difference. The order of the draws: the factors, then both draws of each change.
    """
    factors = {name: float(np.clip(rng.normal(), -2.2, 2.2)) for name in FACTORS}
    amounts, wide = {}, 1.0 if male else WOMEN
    for name, change in CHANGES.items():
        own, difference = rng.normal(0.0, 1.0, 2)
        mean = (change.man if male else change.woman) + change.old * old + FULL.get(name, 0.0) * african
        common = sum(loading * factors[factor] for factor, loading in change.factors.items())
        amount = mean + wide * (change.spread * float(np.clip(own, -2.2, 2.2)) + common)
        half = CROOKED / 2.0 * min(1.0, change.spread / 0.2) * float(np.clip(difference, -2.0, 2.0))
        for side, sign in (("", 0.0), *zip(SIDES, (1.0, -1.0), strict=True)):
            one = amount + sign * half
            amounts[side + name] = float(np.clip(one * change.up if one > 0.0 else one, -LIMIT, LIMIT))
    return np.array([amounts.get(name, 0.0) for name in names], np.float32)
