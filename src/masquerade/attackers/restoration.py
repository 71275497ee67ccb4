"""Attackers who restore the face before it is recognized: by a trained network or by a classical filter."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from masquerade.attackers import Attacker
from masquerade.attackers._parameters import RestorationParams
from masquerade.core.images import to_float, to_uint8
from masquerade.core.settings import Settings
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study import AttackerTrainingSet


class Restoring(Attacker):
    """A U-Net from the anonymized image to the unprotected one, and then the naive recognizers, which it never saw."""

    name = "restoring"
    title = "Restoring"
    source = "Todt et al. 2022, Fantomas (arXiv:2210.10651), with networks trained on pairs"
    asks = "naming"
    learns = True
    restores = True

    Params = RestorationParams
    params: RestorationParams

    def train(self, training_set: "AttackerTrainingSet", job: TrainingJob) -> dict[str, float]:
        from masquerade.attackers import _restoration

        return _restoration.train(self.params, training_set, job)

    def restore(self, images: np.ndarray) -> np.ndarray:
        from masquerade.attackers import _restoration

        assert self.checkpoint is not None
        return _restoration.load_restorer(self.checkpoint)(images)


class FilterAttacker(Attacker):
    """A classical filter, `apply`, with the strength that restores the attackers' own images best."""

    asks = "naming"
    restores = True

    @staticmethod
    @abstractmethod
    def apply(images: np.ndarray, strength: Any, /) -> np.ndarray:
        """The images float32 (N, 3, H, W) in [-1, 1] after the filter of this strength, of the same shape."""

    @abstractmethod
    def list_strengths(self) -> list:
        """The strengths that are tried."""

    def study(self, training_set: "AttackerTrainingSet") -> None:
        from masquerade.attackers import _restoration

        self._strength = _restoration.find_strength(training_set, self.list_strengths(), self.apply)

    def restore(self, images: np.ndarray) -> np.ndarray:
        return self.apply(images, self._strength)


def enlarge(images: np.ndarray, block: int) -> np.ndarray:
    """Images float32 (N, 3, H, W) in [-1, 1], reduced by ``block`` and enlarged again."""
    import cv2

    side = images.shape[-1]
    few = max(1, side // block)
    reduced = [cv2.resize(image, (few, few), interpolation=cv2.INTER_AREA) for image in to_uint8(images)]
    enlarged = [cv2.resize(image, (side, side), interpolation=cv2.INTER_CUBIC) for image in reduced]
    return to_float(np.stack(enlarged))


class Interpolation(FilterAttacker):
    """Averages the image in blocks and enlarges them by cubic interpolation.

    The side of a block is the one that restores the attackers' own images best.
    """

    name = "interpolation"
    title = "Interpolation"
    source = "Todt et al. 2024, SEBA (arXiv:2407.06648), with its learned size"
    apply = staticmethod(enlarge)

    class Params(Settings):
        blocks: Annotated[list[PositiveInt], Field(min_length=1)]
        """Sides of a block, in pixels, that the attacker tries; 1 changes nothing."""

    params: Params

    def list_strengths(self) -> list[int]:
        return self.params.blocks


def denoise(images: np.ndarray, strength: float) -> np.ndarray:
    """Images float32 (N, 3, H, W) in [-1, 1] without noise; windows of 7 and 21 pixels."""
    import cv2

    blue_first = np.ascontiguousarray(to_uint8(images)[..., ::-1])  # OpenCV's order, from which it computes lightness
    denoised = [cv2.fastNlMeansDenoisingColored(image, None, strength, strength, 7, 21) for image in blue_first]
    return to_float(np.stack(denoised)[..., ::-1])


class NonlocalMeans(FilterAttacker):
    """Non-local means with the strength that restores the attackers' own images best."""

    name = "nonlocal_means"
    title = "Non-local means"
    source = "Buades et al. 2011, Non-Local Means Denoising (doi:10.5201/ipol.2011.bcm_nlm), as OpenCV computes it"
    apply = staticmethod(denoise)

    class Params(Settings):
        strengths: Annotated[list[PositiveFloat], Field(min_length=1)]
        """Filter strengths h, in gray levels, that the attacker tries."""

    params: Params

    def list_strengths(self) -> list[float]:
        return self.params.strengths


def sharpen(images: np.ndarray, strength: tuple[float, float]) -> np.ndarray:
    """Images float32 (N, 3, H, W) in [-1, 1], each plane deconvolved with a Gaussian.

    ``strength``: the deviation of the Gaussian in pixels, and the weight of smoothness against fidelity.
    """
    from skimage.restoration import wiener

    deviation, balance = strength
    reach = round(3 * deviation)
    line = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
    spread = np.outer(line, line) / line.sum() ** 2
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="reflect")
    planes = np.array([[wiener(plane, spread, balance, clip=True) for plane in image] for image in padded])
    inside = slice(reach, -reach or None)
    return np.ascontiguousarray(planes[..., inside, inside], dtype=np.float32)


class Wiener(FilterAttacker):
    """Wiener deconvolution with the Gaussian and the balance that restore the attackers' own images best."""

    name = "wiener"
    title = "Wiener filter"
    source = "Todt et al. 2024, SEBA (arXiv:2407.06648), which searches the kernel and the balance"
    apply = staticmethod(sharpen)

    class Params(Settings):
        deviations: Annotated[list[PositiveFloat], Field(min_length=1)]
        """Standard deviations of the Gaussian kernel, in pixels, that the attacker tries."""
        balances: Annotated[list[PositiveFloat], Field(min_length=1)]
        """Weights of smoothness against fidelity that the attacker tries."""

    params: Params

    def list_strengths(self) -> list[tuple[float, float]]:
        return [(width, balance) for width in self.params.deviations for balance in self.params.balances]
