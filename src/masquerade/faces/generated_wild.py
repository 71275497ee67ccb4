"""Generated Wild: generated people in images like those of the web. It takes the place of LFW and CelebA."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from masquerade.core.seeding import make_generator
from masquerade.faces import Record
from masquerade.faces._splits import FewImages
from masquerade.faces.generated import Conditions, GeneratedParams
from masquerade.faces.generated.degradation import Degradation
from masquerade.faces.generated.generated_dataset import GeneratedDataset

NAME = "generated_wild"


class GeneratedWild(GeneratedDataset):
    """Strong pose, expression and light, loose crops, few pixels, noise, JPEG; few images of most people.

    What is known of an image is known of the image before its quality was reduced; landmarks and pose follow its crop.
    """

    title = "Generated Wild"
    conditions = Conditions(yaw=1.5, pitch=0.6, smile=1.0, mouth=1.0, eyes=0.5, light=0.8, side=0.8, detector="mmod")

    class Params(FewImages, GeneratedParams):
        degradation: Degradation
        """How the quality of the images is reduced."""

    params: Params

    def count_images(self, seed: int, split: str, person: int) -> int:
        return self.params.draw_count(make_generator(seed, NAME, split, person, "count"))

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        for record in super().records(size, seed, workers):
            yield self._degrade(record, make_generator(seed, NAME, "degradation", record.row["id"]))

    def _degrade(self, record: Record, draws: np.random.Generator) -> Record:
        from masquerade.faces.generated import degradation, labels

        assert record.picture is not None
        points = np.reshape(record.row["landmarks"], (68, 2))
        picture, points = degradation.crop_loosely(record.picture, points, self.params.degradation, draws)
        yaw, pitch, roll = labels.measure_pose(points, picture.shape[0])
        changed = {"pose.yaw": yaw, "pose.pitch": pitch, "pose.roll": roll}
        changed |= {"landmarks": points.astype(np.float32).ravel().tolist()}
        picture = degradation.degrade(picture, self.params.degradation, draws)
        return replace(record, picture=picture, row=record.row | changed)
