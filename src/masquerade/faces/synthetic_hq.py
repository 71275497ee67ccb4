"""Synthetic HQ: rendered faces under studio conditions, which take the place of CelebA-HQ."""

from drawnpeople.shot import STUDIO
from masquerade.faces._splits import SplitCounts
from masquerade.faces.rendered import RenderedDataset, RenderedParams


class SyntheticHQ(RenderedDataset):
    """Sharp, near-frontal images in soft light; every person of a split has the same number of them."""

    title = "Synthetic HQ"
    prefix = "hq"
    conditions = STUDIO

    class Params(RenderedParams):
        pictures_per_identity: SplitCounts
        """Number of images of each person of a split."""

    params: Params

    def count_images(self, seed: int, split: str, person: int) -> int:
        return getattr(self.params.pictures_per_identity, split)
