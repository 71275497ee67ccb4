"""Names of weight files in parameters: ``weights:<name>`` for those of weights/, ``asset:<role>`` for official ones.

A name may have a folder: ``weights:photo/identity``.
`masquerade.training.cards` reads the files. This module needs neither torch nor a file.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

FOLDER = "weights"
PREFIX = "weights:"
OFFICIAL = "asset:"
_NAME = re.compile(r"([a-z0-9][a-z0-9_]*/)?[a-z0-9][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)?")


def parse_weights_name(published: str) -> str:
    """``generator`` for ``weights:generator``; '' for any other value of a parameter ``published``."""
    return published.removeprefix(PREFIX) if published.startswith(PREFIX) else ""


def parse_asset_role(published: str) -> str:
    """``ciagan`` for ``asset:ciagan``, a role of the registry of assets; '' for any other value."""
    return published.removeprefix(OFFICIAL) if published.startswith(OFFICIAL) else ""


def _check_weights_name(published: str) -> str:
    if published and not _NAME.fullmatch(parse_weights_name(published)):
        raise ValueError(f"use '{PREFIX}<name>' for a file of {FOLDER}/, such as '{PREFIX}riddle', or '' to train it")
    return published


WeightsName = Annotated[str, AfterValidator(_check_weights_name)]
"""A parameter ``published`` that can name weights of weights/ alone: ``weights:<name>``, or '' for a training."""


def _check_weights_or_asset(published: str) -> str:
    if role := parse_asset_role(published):
        if not _NAME.fullmatch(role):
            raise ValueError(f"use '{OFFICIAL}<role>' with a role of `masquerade assets list`")
        return published
    return _check_weights_name(published)


WeightsOrAssetName = Annotated[str, AfterValidator(_check_weights_or_asset)]
"""As `WeightsName`, or ``asset:<role>`` for an official file that the method reads."""
