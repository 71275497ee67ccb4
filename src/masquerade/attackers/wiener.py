"""The attacker who sharpens: Wiener's filter, for blur of a strength that the attacker chose on its own people."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from masquerade.attackers import Attacker
from masquerade.core.settings import Settings

if TYPE_CHECKING:
    from masquerade.attackers.study.lessons import Lesson


class Wiener(Attacker):
    """Wiener deconvolution with the Gaussian and the balance that restore the attackers' own pictures best."""

    title = "Wiener filter"
    source = "Todt et al. 2024, SEBA (arXiv:2407.06648), which searches the kernel and the balance"
    asks = "naming"
    restores = True

    class Params(Settings):
        deviations: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
        """Deviations of the Gaussian that are tried, pixels."""
        balances: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
        """Weights of smoothness against fidelity that are tried."""

    params: Params

    def study(self, lesson: "Lesson") -> None:
        from masquerade.attackers import _restoration

        strengths = [(width, balance) for width in self.params.deviations for balance in self.params.balances]
        self._strength = _restoration.strongest(lesson, strengths, lambda images, each: sharpened(images, *each))

    def restore(self, images: np.ndarray) -> np.ndarray:
        return sharpened(images, *self._strength)


def sharpened(images: np.ndarray, deviation: float, balance: float) -> np.ndarray:
    """Pictures float32 (N, 3, H, W) in [-1, 1], each plane deconvolved with a Gaussian of ``deviation`` pixels."""
    from skimage.restoration import wiener

    reach = round(3 * deviation)
    line = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
    spread = np.outer(line, line) / line.sum() ** 2
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="reflect")
    planes = np.array([[wiener(plane, spread, balance, clip=True) for plane in image] for image in padded])
    inside = slice(reach, -reach or None)
    return np.ascontiguousarray(planes[..., inside, inside], dtype=np.float32)
