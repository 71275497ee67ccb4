"""Control: another person's picture. The ceiling of privacy with perfect realism; no attribute is kept on purpose."""

from collections.abc import Sequence

import numpy as np

from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.methods import Capabilities, Method, _gallery


class RandomIdentity(Method):
    """Returns a picture of another person, drawn from the gallery by seed and face. It uses nothing of the original.

    Control method: its identity distance is that of two strangers, and its Frechet distance is that of two sets of real
    faces. An anonymizer need not be better in either (compare the swaps of CIAGAN, Maximov et al. 2020).
    """

    title = "Random identity"
    paper = "Maximov, Elezi, Leal-Taixe 2020, CIAGAN (arXiv:2005.09544): identity swapping without a network"
    capabilities = Capabilities(control=True, gallery=True, deterministic=False)

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        archive, rows = _gallery.of(self.resources)
        people = rows["identity"].to_numpy()
        chosen = []
        for name, own in zip(faces.ids, faces.index["identity"], strict=True):
            others = np.flatnonzero(
                (people != own) | (people == "")
            )  # a face of the methods' people is also in the gallery
            chosen.append(others[seeding.make_generator(seed, "random_identity", name).integers(len(others))])
        return _gallery.pictures(archive, rows, np.array(chosen), like=faces.images)
