"""Procedural faces under studio conditions: they stand where CelebA-HQ stands."""

from masquerade.faces._procedural import Procedural, ProceduralParams


class SyntheticHQ(Procedural):
    """Every person has the same number of pictures, near frontal, softly lit, sharp."""

    title = "Synthetic HQ"
    prefix = "hq"

    class Params(ProceduralParams):
        pictures_per_identity: int
        """Pictures of each person, count."""

    def pictures(self, seed: int, split: str, person: int) -> int:
        return self.params.pictures_per_identity
