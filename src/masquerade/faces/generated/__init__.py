"""Generated people: their parameters; `drawing` draws them, and `labels` says what is known of a face."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from masquerade.core import weight_names
from masquerade.core.settings import Settings
from masquerade.faces._splits import Identities, SplitCounts
from masquerade.training import cards

Share = Annotated[float, Field(ge=0, le=1)]
Strength = Annotated[float, Field(ge=0)]


class Strengths(Settings):
    """How far the pictures of a person differ along a direction of W, in standard deviations of W along it.

    Our choices: the distances that a recognizer (dlib) finds within and between people are those of photographs.
    """

    yaw: Strength
    """Turn of the head, in deviations of W."""
    pitch: Strength
    """Nod of the head, in deviations of W."""
    smile: Strength
    """Width of the mouth, in deviations of W."""
    mouth: Strength
    """Opening of the mouth, in deviations of W."""
    eyes: Strength
    """Opening of the eyes, in deviations of W."""
    light: Strength
    """Brightness of the face, in deviations of W."""
    side: Strength
    """Light from one side, in deviations of W."""


class Shares(Settings):
    """Share t of another person's code in some layers. The variance is kept: sqrt(1 - t^2) w + t w'. Our choices."""

    outline: Share
    """Layers 0 to 2: hair, shape of the head, pose."""
    features: Share
    """Layers 3 to 6: features of the face."""
    colors: Share
    """Layers 7 to 13: colors of hair, clothes and background, light, grain."""


class Limits(Settings):
    """What a picture must keep, or it is drawn again. Our choices."""

    farthest: Annotated[float, Field(gt=0)]
    """Largest distance of a person's code to the mean of W, not truncated, as a multiple of the usual distance."""
    offset: Annotated[float, Field(gt=0)]
    """Largest distance of the middle of the HOG box to that of an aligned face, as a share of the picture's side."""
    darkest: Share
    """Least mean brightness of the face, of the range."""
    brightest: Share
    """Largest mean brightness of the face, of the range."""
    clipped: Share
    """Largest share of the face's pixels that are white in all colors."""


class GeneratedParams(Settings):
    """The parameters of a dataset of generated people."""

    head: str
    """Our head for 256 pixels: ``weights:<name>``, or a weight file or checkpoint; '' = averages of 1024 pixels."""
    parser: str
    """The face parser that finds hair and glasses: ``weights:<name>``, or a weight file or checkpoint."""
    identities: Identities
    """People in each split, count."""
    pictures_per_identity: SplitCounts
    """Pictures of each person of a split, count."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation of all codes. Our choice."""
    direction_pictures: Annotated[int, Field(ge=8)]
    """Pictures, count, from whose measures the directions of W are regressed. Our choice."""
    strengths: Strengths
    """How far the pictures of a person differ."""
    shares: Shares
    """How much of other people's codes is in the pictures of a person."""
    limits: Limits
    """Which pictures are drawn again."""


def find_weights(weights: str) -> Path:
    """The file of a parameter: that of ``weights:<name>``, or the path itself."""
    name = weight_names.parse_weights_name(weights)
    return cards.weights_path(name) if name else Path(weights)
