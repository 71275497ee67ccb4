"""Synthetic HQ: drawn faces under studio conditions, which take the place of CelebA-HQ."""

from masquerade.faces._drawn.procedural import Procedural, ProceduralParams


class SyntheticHQ(Procedural):
    """Sharp, near-frontal pictures in soft light; every person has the same number of them."""

    title = "Synthetic HQ"
    prefix = "hq"

    class Params(ProceduralParams):
        pictures_per_identity: int
        """Pictures of each person, count."""

    params: Params

    def pictures(self, seed: int, split: str, person: int) -> int:
        return self.params.pictures_per_identity
