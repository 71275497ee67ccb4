"""The distances of images to the people of a gallery, and what they say of a recognizer."""

from dataclasses import dataclass

import numpy as np

from masquerade.core.errors import ProtocolError


@dataclass(frozen=True)
class EmbeddingSet:
    """Embedded images: ``embeddings`` (N, D), and for each the person and the id of its original, (N,)."""

    embeddings: np.ndarray
    people: np.ndarray
    ids: np.ndarray


@dataclass(frozen=True)
class Distances:
    """Of N probes: ``own`` (N,) to their person and ``strangers`` (N, P - 1) to the others, in any order.

    The distance to a person is that to the nearest image of the person. Infinite: the person has no image but the
    probe's own original.
    """

    own: np.ndarray
    strangers: np.ndarray

    @property
    def ranks(self) -> np.ndarray:
        """The place of the right person, (N,), from 1; a stranger at the same distance comes before."""
        return 1 + (self.strangers <= self.own[:, None]).sum(axis=1)


def measure_to_people(probes: EmbeddingSet, gallery: EmbeddingSet) -> tuple[np.ndarray, np.ndarray]:
    """The distances (N, P) to P people in the order of their names, and these names (P,).

    An image of the gallery with the same original as the probe does not count, so that the person decides and not the
    pose, light or background of one image. One image of every other person is left out, too: the nearest of more
    images is nearer by chance alone.
    """
    from scipy.spatial.distance import cdist

    distances = cdist(probes.embeddings, gallery.embeddings)
    names, numbers, counts = np.unique(gallery.people, return_inverse=True, return_counts=True)
    places = np.empty(len(numbers), dtype=np.int64)  # of an image among those of its person
    places[np.argsort(numbers, kind="stable")] = np.concatenate([np.arange(count) for count in counts])
    same = probes.ids[:, None] == gallery.ids[None, :]
    dropped = np.where(same.any(axis=1), places[same.argmax(axis=1)], -1)[:, None]
    several = counts[numbers]
    left_out = (dropped >= 0) & (several > 1) & (dropped % several == places)
    distances[same | left_out] = np.inf
    nearest = np.full((len(probes.ids), len(names)), np.inf)
    for number in range(len(names)):
        nearest[:, number] = distances[:, numbers == number].min(axis=1)
    return nearest, names


def measure_distances(
    probes: EmbeddingSet, gallery: EmbeddingSet, own_gallery: EmbeddingSet | None = None
) -> Distances:
    """The distances of probes to their person and to all others.

    ``own_gallery``: the images that stand for the probe's own person, if they are others than those of ``gallery``.
    Raises ProtocolError if a probe's person has no image in the gallery.
    """
    distances, names = measure_to_people(probes, gallery)
    right = probes.people[:, None] == names[None, :]
    if not right.any(axis=1).all():
        missing = sorted(set(probes.people[~right.any(axis=1)]))
        raise ProtocolError(f"The gallery has no picture of {len(missing)} people of the probes, such as {missing[0]}.")
    own = distances[right] if own_gallery is None else measure_distances(probes, own_gallery).own
    return Distances(own, distances[~right].reshape(len(distances), -1))


def measure_separability(distances: Distances) -> float:
    """How often the own person is nearer than a stranger (of any probe), the area under the ROC curve without ties.

    A tie does not count, as in `Distances.ranks`: a network that gives one embedding for all images, or none, has 0.
    Probes without a distance to their person do not count; 0 if none is left.
    """
    own, strangers = distances.own[np.isfinite(distances.own)], np.sort(distances.strangers.ravel())
    if not own.size or not strangers.size:
        return 0.0
    farther = len(strangers) - np.searchsorted(strangers, own, "right")
    return float(farther.mean() / len(strangers))
