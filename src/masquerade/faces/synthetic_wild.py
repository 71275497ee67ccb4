"""Procedural faces in the wild: they stand where LFW stands."""

from masquerade.faces._procedural import Procedural, ProceduralParams
from masquerade.seeding import generator


class SyntheticWild(Procedural):
    """Strong pose and light, noise, blur, occlusion; one picture of many people and few of most."""

    title = "Synthetic Wild"
    prefix = "wild"

    class Params(ProceduralParams):
        single_share: float
        """Fraction of people with one picture only. LFW: 4069 of 5749 people, 0.71."""
        pictures_most: int
        """Most pictures of one person, count; the others have 2, 3, ... with halving probability. LFW: up to 530."""

    def pictures(self, seed: int, split: str, person: int) -> int:
        rng = generator(seed, "faces", self.prefix, split, person, "count")
        if rng.random() < self.params.single_share:
            return 1
        return int(min(1 + rng.geometric(0.5), self.params.pictures_most))
