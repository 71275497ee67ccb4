"""The parameters that count people and images by split."""

from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Settings


class Identities(Settings):
    """Number of people in each split. No person is in two splits."""

    train: int
    """People, count. Our choice; CelebA has 8192 (falco uses 10,177 in all)."""
    validation: int
    """People, count. Thresholds are chosen on them."""
    test: int
    """People, count. Their pictures are anonymized."""


class SplitCounts(Settings):
    """A count for each split."""

    train: Annotated[int, Field(ge=1)]
    """Of a person of the train split."""
    validation: Annotated[int, Field(ge=1)]
    """Of a person of the validation split."""
    test: Annotated[int, Field(ge=1)]
    """Of a person of the test split."""
