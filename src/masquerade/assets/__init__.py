"""Files from outside, weights and datasets: what they are, where they lie, and whether they are the right ones.

They lie below ``assets/``, which git ignores; ``masquerade assets`` brings them there. Nothing here fetches anything
without being asked, and a missing weight file never becomes random weights.
"""

from masquerade.assets.checking import FOLDER, checked, digest, how_to_get, path, state
from masquerade.assets.entries import Asset, Dataset, Weights, asset, registry
from masquerade.assets.identity import role_of, unready, write_identity
from masquerade.assets.lock import LOCK

PREFIX = "asset:"
"""Before the role, where a knob of params.yaml asks for an asset in place of a path."""

__all__ = [
    "FOLDER",
    "LOCK",
    "PREFIX",
    "Asset",
    "Dataset",
    "Weights",
    "asset",
    "checked",
    "digest",
    "how_to_get",
    "path",
    "registry",
    "role_of",
    "state",
    "unready",
    "write_identity",
]
