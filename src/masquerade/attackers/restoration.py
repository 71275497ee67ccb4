"""Attackers who restore the face before it is recognized: by a trained network or by a classical filter."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from masquerade.attackers import Attacker
from masquerade.attackers._parameters import RestorationParams
from masquerade.core.images import to_float, to_uint8
from masquerade.core.settings import Settings
from masquerade.training.settings import TrainingJob

if TYPE_CHECKING:
    from masquerade.attackers.study.training_sets import AttackerTrainingSet


class Restoring(Attacker):
    """A U-Net from the anonymized image to the clear one, and then the clear recognizers, which it never saw."""

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


class Interpolation(Attacker):
    """Averages the image in blocks and enlarges them by cubic interpolation.

    The side of a block is the one that restores the attackers' own images best.
    """

    name = "interpolation"
    title = "Interpolation"
    source = "Todt et al. 2024, SEBA (arXiv:2407.06648), with its learned size"
    asks = "naming"
    restores = True

    class Params(Settings):
        blocks: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
        """Sides of a block that are tried, pixels; 1 changes nothing."""

    params: Params

    def study(self, training_set: "AttackerTrainingSet") -> None:
        from masquerade.attackers import _restoration

        self._block = _restoration.strongest(training_set, self.params.blocks, enlarge)

    def restore(self, images: np.ndarray) -> np.ndarray:
        return enlarge(images, self._block)


def enlarge(images: np.ndarray, block: int) -> np.ndarray:
    """Images float32 (N, 3, H, W) in [-1, 1], reduced by ``block`` and enlarge again."""
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


class NonlocalMeans(Attacker):
    """Non-local means with the strength that restores the attackers' own images best."""

    name = "nonlocal_means"
    title = "Non-local means"
    source = "Buades et al. 2011, Non-Local Means Denoising (doi:10.5201/ipol.2011.bcm_nlm), as OpenCV computes it"
    asks = "naming"
    restores = True

    class Params(Settings):
        strengths: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
        """Filter strengths h that are tried, gray levels."""

    params: Params

    def study(self, training_set: "AttackerTrainingSet") -> None:
        from masquerade.attackers import _restoration

        self._strength = _restoration.strongest(training_set, self.params.strengths, denoise)

    def restore(self, images: np.ndarray) -> np.ndarray:
        return denoise(images, self._strength)


def denoise(images: np.ndarray, strength: float) -> np.ndarray:
    """Images float32 (N, 3, H, W) in [-1, 1] without noise; windows of 7 and 21 pixels."""
    import cv2

    blue_first = np.ascontiguousarray(to_uint8(images)[..., ::-1])  # OpenCV's order, from which it computes lightness
    pictures = [cv2.fastNlMeansDenoisingColored(one, None, strength, strength, 7, 21) for one in blue_first]
    return to_float(np.stack(pictures)[..., ::-1])


class Wiener(Attacker):
    """Wiener deconvolution with the Gaussian and the balance that restore the attackers' own images best."""

    name = "wiener"
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

    def study(self, training_set: "AttackerTrainingSet") -> None:
        from masquerade.attackers import _restoration

        strengths = [(width, balance) for width in self.params.deviations for balance in self.params.balances]
        self._strength = _restoration.strongest(training_set, strengths, lambda images, each: sharpen(images, *each))

    def restore(self, images: np.ndarray) -> np.ndarray:
        return sharpen(images, *self._strength)


def sharpen(images: np.ndarray, deviation: float, balance: float) -> np.ndarray:
    """Images float32 (N, 3, H, W) in [-1, 1], each plane deconvolved with a Gaussian of ``deviation`` pixels."""
    from skimage.restoration import wiener

    reach = round(3 * deviation)
    line = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
    spread = np.outer(line, line) / line.sum() ** 2
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="reflect")
    planes = np.array([[wiener(plane, spread, balance, clip=True) for plane in image] for image in padded])
    inside = slice(reach, -reach or None)
    return np.ascontiguousarray(planes[..., inside, inside], dtype=np.float32)
