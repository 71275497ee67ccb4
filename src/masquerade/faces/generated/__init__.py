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
    """Our head for 256 pixels: ``weights:<name>``, or a weight file or checkpoint; '' = averages of 1024 pixels."""
    parser: str
    """The face parser that finds hair and glasses: ``weights:<name>``, or a weight file or checkpoint."""
    identities: Identities
    """People in each split, count."""
    pictures_per_identity: SplitCounts
    """Images of each person of a split, count."""
    psi: Annotated[float, Field(gt=0, le=1)]
    """Truncation of all codes. Our choice."""


def find_weights(weights: str) -> Path:
    """The file of a parameter: that of ``weights:<name>``, or the path itself."""
    name = weight_names.parse_weights_name(weights)
    return cards.weights_path(name) if name else Path(weights)
