"""Synthetic Wild: rendered faces in the wild, which take the place of LFW."""

from dataclasses import replace

from drawnpeople.shot import WILD
from masquerade.core.seeding import make_generator
from masquerade.faces.rendered import SERIES, RenderedDataset, RenderedParams


class SyntheticWild(RenderedDataset):
    """Strong pose and light, noise, blur, occlusion. Many people have one image, the others have few."""

    title = "Synthetic Wild"
    prefix = "wild"
    conditions = replace(WILD, occlusion=0.05)

    class Params(RenderedParams):
        single_share: float
        """Share of people with a single image (0.71: LFW, 4069 of 5749 people)."""
        pictures_most: int
        """Largest number of images of a person. The probability of 2, 3, 4, ... images halves each time. LFW has up to
        530."""

    params: Params

    def count_images(self, seed: int, split: str, person: int) -> int:
        rng = make_generator(seed, "faces", self.prefix, SERIES[split], person, "count")
        if rng.random() < self.params.single_share:
            return 1
        return int(min(1 + rng.geometric(0.5), self.params.pictures_most))
