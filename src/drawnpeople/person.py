"""The constant features of one drawn person: shape of the head, coloring, hair, age and habits."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Person:
    """Lengths in metres, colors in linear light, tendencies in [0, 1], unless a comment says otherwise."""

    male: bool
    age: float  # years
    ancestry: np.ndarray  # float (3,): shares of the template's african, asian and caucasian shapes; they sum to 1
    muscle: float
    weight: float  # 0 thin, 0.5 average, 1 heavy
    local: np.ndarray  # float (L,) in [-1, 1]: amounts of the local changes, in the order of Template.local_names
    # skin
    melanin: float  # 0 lightest, 1 darkest
    rosy: float
    freckles: float
    wrinkles: float
    eye_bags: float
    gloss: float  # share of the light that is mirrored straight on
    moles: np.ndarray  # float (N, 3): x, z on the template and radius
    lip_red: float
    iris: np.ndarray  # (3,)
    # brows and beard
    brow_dense: float  # 0.4 sparse .. 1.3 bushy
    brow_height: float  # metres above the template's brows
    brow_arch: float  # 0 straight .. 1 arched
    beard: str  # none, stubble, mustache, goatee, full
    beard_length: float
    # hair
    style: str  # one of STYLES
    hair: np.ndarray  # (3,)
    hair_name: str  # black, dark brown, brown, light brown, blond, red, gray, white
    gray: float
    curl: float  # 0 straight, 0.5 wavy, 1 curly
    length: float  # factor on the length of the style
    recede: float  # metres that the hairline has moved back at the temples
    part: float  # metres to the left of the middle
    dense: float  # 1: usual number of strands
    # habits
    glasses: float
    smiles: float
    lipstick: float
    hat: float
    texture: int  # seed of everything random on this person


STYLES = ("bald", "buzz", "short", "side", "medium", "long", "fringe", "afro", "bun", "ponytail", "curly", "bob")
"""Hair styles. ``recede`` makes the hairline of any of them higher."""
