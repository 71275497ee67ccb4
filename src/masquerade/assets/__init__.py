"""Files from outside, weights and datasets: what they are, where they lie, and whether they are the right ones.

They lie below ``assets/``, which git ignores; ``masquerade assets`` brings them there. Nothing here fetches anything
without being asked, and a missing weight file never becomes random weights.
"""

from masquerade.assets.checking import FOLDER, checked, how_to_get, path, state
from masquerade.assets.lock import LOCK
from masquerade.assets.registry import Asset, Dataset, Weights, asset, registry

__all__ = [
    "FOLDER",
    "LOCK",
    "Asset",
    "Dataset",
    "Weights",
    "asset",
    "checked",
    "how_to_get",
    "path",
    "registry",
    "state",
]
