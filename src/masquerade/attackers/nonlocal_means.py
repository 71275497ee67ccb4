"""The attacker who removes noise: non-local means of a strength that the attacker chose on its own people."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from masquerade.attackers import Attacker
from masquerade.core.images import to_float, to_uint8
from masquerade.core.settings import Settings

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson


class NonlocalMeans(Attacker):
    """Non-local means with the strength that restores the attackers' own pictures best."""

    title = "Non-local means"
    source = "Buades et al. 2011, Non-Local Means Denoising (doi:10.5201/ipol.2011.bcm_nlm), as OpenCV computes it"
    asks = "naming"
    restores = True

    class Params(Settings):
        strengths: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
        """Filter strengths h that are tried, gray levels."""

    params: Params

    def study(self, lesson: "Lesson") -> None:
        from masquerade.attackers import _restoration

        self._strength = _restoration.strongest(lesson, self.params.strengths, denoised)

    def restore(self, images: np.ndarray) -> np.ndarray:
        return denoised(images, self._strength)


def denoised(images: np.ndarray, strength: float) -> np.ndarray:
    """Pictures float32 (N, 3, H, W) in [-1, 1] without noise; windows of 7 and 21 pixels."""
    import cv2

    blue_first = np.ascontiguousarray(to_uint8(images)[..., ::-1])  # OpenCV's order, from which it computes lightness
    pictures = [cv2.fastNlMeansDenoisingColored(one, None, strength, strength, 7, 21) for one in blue_first]
    return to_float(np.stack(pictures)[..., ::-1])
