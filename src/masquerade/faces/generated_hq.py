"""Generated HQ: images of people who do not exist, as the generator draws them. It takes the place of CelebA-HQ."""

from masquerade.faces._splits import SplitCounts
from masquerade.faces.generated import Conditions, GeneratedParams
from masquerade.faces.generated.generated_dataset import GeneratedDataset


class GeneratedHQ(GeneratedDataset):
    """Sharp images; every person of a split has the same number of them.

    The strengths are our choices: the distances that a recognizer (dlib) finds within and between people are those of
    photographs.
    """

    title = "Generated HQ"
    conditions = Conditions(yaw=1.0, pitch=0.4, smile=0.7, mouth=0.7, eyes=0.35, light=0.55, side=0.55, detector="hog")

    class Params(GeneratedParams):
        pictures_per_identity: SplitCounts
        """Number of images of each person of a split."""

    params: Params

    def count_images(self, seed: int, split: str, person: int) -> int:
        return getattr(self.params.pictures_per_identity, split)
