"""Control: another person's picture. The ceiling of privacy with perfect realism, and no attribute kept on purpose."""

import numpy as np

from masquerade import seeding
from masquerade.images import Faces
from masquerade.methods import Capabilities, Method, _gallery


class RandomIdentity(Method):
    """A picture of another person, drawn from the gallery by seed and face; nothing of the original is used.

    Control method: its identity distance is that of two strangers, and its Frechet distance that of two sets of real
    faces, so no anonymizer need do better than it in either (compare the swaps of CIAGAN, Maximov et al. 2020).
    """

    title = "Random identity"
    paper = "Maximov, Elezi, Leal-Taixe 2020, CIAGAN (arXiv:2005.09544): identity swapping without a network"
    capabilities = Capabilities(control=True, gallery=True, deterministic=False)

    def anonymize(self, faces: Faces, seed: int, key: bytes | None = None) -> np.ndarray:
        archive, rows = _gallery.of(self.resources)
        people = rows["identity"].to_numpy()
        chosen = []
        for name, own in zip(faces.ids, faces.index["identity"], strict=True):
            others = np.flatnonzero((people != own) | (people == ""))  # a face of the train split is in the gallery too
            chosen.append(others[seeding.generator(seed, "random_identity", name).integers(len(others))])
        return _gallery.pictures(archive, rows, np.array(chosen), like=faces.images)
