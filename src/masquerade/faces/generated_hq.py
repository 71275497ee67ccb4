"""Generated HQ: images of people who do not exist, as the generator draws them. It takes the place of CelebA-HQ."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pydantic import NonNegativeInt

from masquerade.core.images import GALLERY, TEST
from masquerade.faces import Record
from masquerade.faces._splits import SplitCounts
from masquerade.faces.generated import Conditions, GeneratedParams
from masquerade.faces.generated.generated_dataset import GeneratedDataset


class ImageCounts(SplitCounts):
    """The number of images of each person, by split."""

    gallery: NonNegativeInt
    """Number of further images of each person of the test split, which whoever looks for a person has. Some are
    anonymized for attackers who link images (`informed.linked`)."""


class GeneratedHQ(GeneratedDataset):
    """Sharp images; every person of a split has the same number of them.

    The strengths are our choices: the distances that a recognizer (dlib) finds within and between people are those of
    photographs.
    """

    title = "Generated HQ"
    conditions = Conditions(yaw=1.0, pitch=0.4, smile=0.7, mouth=0.7, eyes=0.35, light=0.55, side=0.55, detector="hog")

    class Params(GeneratedParams):
        pictures_per_identity: ImageCounts
        """Number of images of each person of a split."""

    params: Params

    def count_images(self, seed: int, split: str, person: int) -> int:
        counts = self.params.pictures_per_identity
        return getattr(counts, split) + (counts.gallery if split == TEST else 0)

    def count(self, seed: int) -> dict[str, int]:
        counts, gallery = super().count(seed), self.params.identities.test * self.params.pictures_per_identity.gallery
        return counts | {TEST: counts[TEST] - gallery, GALLERY: gallery}

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        images: Counter[str] = Counter()
        for record in super().records(size, seed, workers):
            person, split = record.row["identity"], record.row["split"]
            images[person] += 1
            further = split == TEST and images[person] > self.params.pictures_per_identity.test
            yield replace(record, row=record.row | {"split": GALLERY}) if further else record
