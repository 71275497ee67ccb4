"""k-Same: the average of the k most similar faces."""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field

from masquerade.core.errors import ParameterError
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources, _gallery

CHUNK = 256  # gallery images in memory at a time


class KSame(Method):
    """Returns the average of the k gallery faces, of k different people, that are closest to the original.

    Newton, Sweeney, Malin 2005, Preserving Privacy by De-identifying Face Images, IEEE TKDE 17(2), k-Same-Pixel. In the
    paper the k faces come from the published set, and disjoint groups of k make each member at most 1/k linkable. In
    this method they come from a gallery of other people, as the proxy set of Meden et al. 2018 (k-Same-Net, Entropy
    20(1)). So the original is not part of its own average and the result of a face does not depend on its batch, but
    the guarantee of disjoint groups does not hold. See docs/obfuscations.md.
    """

    title = "k-Same"
    paper = "Newton, Sweeney, Malin 2005, Preserving Privacy by De-identifying Face Images, IEEE TKDE 17(2)"
    capabilities = Capabilities(gallery=True)

    class Params(Settings):
        distance_size: Annotated[int, Field(ge=4)]
        """Side in pixels to which images are averaged before they are compared. It must divide the side of the images
        (32: our choice; Newton et al. compare small, aligned images)."""

    class Variant(Settings):
        k: Annotated[int, Field(ge=2)]
        """k, the number of people in an average (Newton et al. 2005; the value is our choice)."""

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        super().__init__(params, variant, resources)
        self._archive, self._rows = _gallery.open_gallery(resources)
        # An image without a known identity counts as one person.
        people = self._rows["identity"].where(self._rows["identity"] != "", "\0" + self._rows["id"])
        self._people = people.factorize()[0]
        if variant.k > self._people.max() + 1:
            raise ParameterError(
                f"k_same: k = {variant.k}, but the gallery shows {self._people.max() + 1} people. Lower k."
            )

    @cached_property
    def _small_gallery(self) -> np.ndarray:
        """The whole gallery in small, float32 (M, 3 * distance_size ** 2)."""
        batches = self._archive.batches(CHUNK, rows=self._rows)
        return np.concatenate([average_down(batch.images, self.params.distance_size) for batch in batches])

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        probes, gallery = average_down(faces.images, self.params.distance_size), self._small_gallery
        # ||p - g||^2 without ||p||^2, which is the same for every gallery image.
        distance = np.square(gallery).sum(axis=1) - 2 * probes @ gallery.T
        rows = np.stack([closest_people(row, self._people, self.variant.k) for row in distance])
        return _gallery.load_images(self._archive, self._rows, rows, like=faces.images).mean(axis=1)


def average_down(images: np.ndarray, size: int) -> np.ndarray:
    """Images (N, 3, H, W) averaged down to ``size`` x ``size`` pixels, float32 (N, 3 * size * size)."""
    count, planes, height, width = images.shape
    if height % size or width % size:
        raise ParameterError(
            f"k_same.distance_size: {size} does not divide the image's side of {height} pixels. Take a divisor of it."
        )
    blocks = images.reshape(count, planes, size, height // size, size, width // size)
    return blocks.mean(axis=(3, 5)).reshape(count, -1)


def closest_people(distance: np.ndarray, people: np.ndarray, k: int) -> np.ndarray:
    """The nearest image of each of the k nearest people, int (k,), nearest first.

    ``distance`` (M,): from the probe to each gallery image. ``people`` (M,): the number of the person in it.
    """
    nearest = np.argsort(distance, kind="stable")
    _, first = np.unique(people[nearest], return_index=True)
    return nearest[np.sort(first)[:k]]
