"""Synthetic Wild: rendered faces in the wild, which take the place of LFW."""

from dataclasses import replace

from drawnpeople.shot import WILD
from masquerade.core.seeding import make_generator
from masquerade.faces._splits import FewImages
from masquerade.faces.rendered import SERIES, RenderedDataset, RenderedParams


class SyntheticWild(RenderedDataset):
    """Strong pose and light, noise, blur, occlusion. Many people have one image, the others have few."""

    title = "Synthetic Wild"
    prefix = "wild"
    conditions = replace(WILD, occlusion=0.05)

    class Params(FewImages, RenderedParams):
        """Few images of most people, as LFW has."""

    params: Params

    def count_images(self, seed: int, split: str, person: int) -> int:
        return self.params.draw_count(make_generator(seed, "faces", self.prefix, SERIES[split], person, "count"))
