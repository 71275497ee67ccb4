"""Generated people: their parameters; `drawing` draws them, and `labels` says what is known of a face."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from masquerade.core import weight_names
from masquerade.core.settings import Settings
from masquerade.faces._splits import Identities, SplitCounts
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
    pictures_per_identity: SplitCounts
    """Number of images of each person of a split."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation psi of all latent codes. Our choice."""


def find_weights(weights: str) -> Path:
    """The file of a parameter: that of ``weights:<name>``, or the path itself."""
    name = weight_names.parse_weights_name(weights)
    return cards.weights_path(name) if name else Path(weights)
