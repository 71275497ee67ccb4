"""The attacker who smooths blocks away: interpolation from a grid that the attacker chose on its own people."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from masquerade.attackers import Attacker
from masquerade.core.images import to_float, to_uint8
from masquerade.core.settings import Settings

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson


class Interpolation(Attacker):
    """Averages the picture in blocks and enlarges them by cubic interpolation.

    The side of a block is the one that restores the attackers' own pictures best.
    """

    title = "Interpolation"
    source = "Todt et al. 2024, SEBA (arXiv:2407.06648), with its learned size"
    asks = "naming"
    restores = True

    class Params(Settings):
        blocks: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
        """Sides of a block that are tried, pixels; 1 changes nothing."""

    params: Params

    def study(self, lesson: "Lesson") -> None:
        from masquerade.attackers import _restoration

        self._block = _restoration.strongest(lesson, self.params.blocks, enlarged)

    def restore(self, images: np.ndarray) -> np.ndarray:
        return enlarged(images, self._block)


def enlarged(images: np.ndarray, block: int) -> np.ndarray:
    """Pictures float32 (N, 3, H, W) in [-1, 1], reduced by ``block`` and enlarged again."""
    import cv2

    side = images.shape[-1]
    few = max(1, side // block)
    pictures = [
        cv2.resize(
            cv2.resize(one, (few, few), interpolation=cv2.INTER_AREA), (side, side), interpolation=cv2.INTER_CUBIC
        )
        for one in to_uint8(images)
    ]
    return to_float(np.stack(pictures))
