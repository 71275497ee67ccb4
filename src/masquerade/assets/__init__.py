"""Files from outside, weights and datasets, below ``assets/``: the registry, the lock, fetching and checking. Faces are
read from datasets in faces/, and weights are loaded in backbones/ and judges/.

Git ignores ``assets/``. Only ``masquerade assets`` puts files there, and random weights never replace a missing file.
"""

from masquerade.assets.checking import (
    FOLDER,
    check_asset,
    digest,
    how_to_get,
    path,
    role_of,
    state,
    unready,
    write_identity,
)
from masquerade.assets.entries import Asset, Dataset, Weights, asset, registry
from masquerade.assets.lock import LOCK

PREFIX = "asset:"
"""Prefix of a role in params.yaml, where a knob names an asset and not a path."""

__all__ = [
    "FOLDER",
    "LOCK",
    "PREFIX",
    "Asset",
    "Dataset",
    "Weights",
    "asset",
    "check_asset",
    "digest",
    "how_to_get",
    "path",
    "registry",
    "role_of",
    "state",
    "unready",
    "write_identity",
]
