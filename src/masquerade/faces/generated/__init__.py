"""Generated people: their parameters, and what their images depend on.

`generated_dataset` is the base class of the datasets, `drawing` draws people, `labels` says what is known of a face,
`detection` finds it, and `degradation` reduces the quality of an image.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masquerade.core import weight_names
from masquerade.core.settings import Settings
from masquerade.faces._splits import Identities
from masquerade.training import cards


class GeneratedParams(Settings):
    """The parameters of a dataset of generated people."""

    head: str
    """Our output head for 256 pixels, as ``weights:<name>``, or a weight file or checkpoint. An empty text averages the
    published output of 1024 pixels instead, which takes twice the time."""
    parser: str
    """The face parser that finds hair and glasses, as ``weights:<name>``, or a weight file or checkpoint."""
    identities: Identities
    """Number of people in each split."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation psi of all latent codes. Our choice."""


@dataclass(frozen=True)
class Conditions:
    """How the images of a dataset vary, and what decides whether an image shows one face.

    The numbers say how far the images of a person differ along each direction of W, in standard deviations of W.
    """

    yaw: float
    pitch: float
    smile: float
    mouth: float
    eyes: float
    light: float
    side: float
    detector: Literal["hog", "mmod"]
    """``hog``: dlib's HOG detector, which is an evaluator too, and landmarks start at its box. ``mmod``: dlib's
    convolutional detector, which evaluates nothing, and landmarks start where alignment puts a face."""


@dataclass(frozen=True)
class Recipe:
    """What the images of a dataset depend on, for the processes that draw them.

    The name of the dataset is part of all seeds, so datasets share no people.
    """

    dataset: str
    params: GeneratedParams
    conditions: Conditions
    seed: int


def find_weights(weights: str) -> Path:
    """The file of a parameter: that of ``weights:<name>``, or the path itself."""
    name = weight_names.parse_weights_name(weights)
    return cards.weights_path(name) if name else Path(weights)
