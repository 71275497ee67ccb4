"""Fawkes: images that are enrolled in a recognizer, so that it fails on later photographs of the person.

The search of the change follows fawkes/differentiator.py of the published code, version 1.0.2.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from masquerade.backbones import load_backbone
from masquerade.core import seeding
from masquerade.core.images import Faces
from masquerade.core.settings import Settings
from masquerade.methods import Capabilities, Method, Resources
from masquerade.methods._batches import fill_batches

if TYPE_CHECKING:
    from torch import Tensor, nn

INSIDE = 1 - 5e-7  # factor before artanh, which is infinite at 1
FIRST = 1e-4  # largest magnitude of the first change, in the space of artanh
FIRST_STEP = 0.01  # step along the sign of the first gradient
REACH = 15 / 127.5  # largest change of a color: 15 of 255
EXCESS = 1e7  # weight of the squared excess of dissimilarity
LESS, MORE = 0.9, 1.1  # the band around the threshold, as shares of it
MOST = 129.0  # the weight of the features is no longer changed beyond this, or below its reciprocal
REACHED, SIGMA, RANGE = 5, 1.5, 255.0  # of SSIM, as TensorFlow has them: pixels on each side, deviation, of colors
C1, C2 = (0.01 * RANGE) ** 2, (0.03 * RANGE) ** 2
DECAY, EPSILON = 0.95, 1e-7  # of Adadelta: Keras' values


class Fawkes(Method):
    """Changes an image invisibly, so that its features are far from those of the original ("cloak").

    Shan, Wenger, Zhang, Li, Zheng, Zhao 2020, Fawkes: Protecting Privacy against Unauthorized Deep Learning Models,
    USENIX Security (arXiv:2002.08327), as in version 1.0.2 of the published code, untargeted. It is made for images
    that a recognizer learns from. A changed image that is compared with an unprotected one measures evasion, for which
    it was not made. docs/other_methods.md lists what differs from the code.
    """

    title = "Fawkes"
    paper = "Shan et al. 2020, Fawkes, USENIX Security (arXiv:2002.08327)"
    capabilities = Capabilities(poisons=True, deterministic=False)
    needs = ("identity",)

    class Params(Settings):
        size: Annotated[int, Field(ge=16)]
        """Side in pixels at which the change is searched; it is then enlarged to the size of the image (112:
        published)."""
        batch: PositiveInt
        """Number of images whose changes are searched together. A smaller batch is filled up with its last image,
        because the search magnifies rounding differences, which depend on the batch size."""

    class Variant(Settings):
        threshold: Annotated[float, Field(gt=0, lt=1)]
        """Largest structural dissimilarity, (1 - SSIM) / 2, of the changed image (0.004, 0.012, 0.017: modes low, mid,
        high)."""
        steps: PositiveInt
        """Number of updates of the change (40, 75, 150: modes low, mid, high)."""
        rate: PositiveFloat
        """Learning rate of Adadelta (25, 20, 15: modes low, mid, high)."""

    params: Params
    variant: Variant

    def __init__(self, params: Params, variant: Variant, resources: Resources):
        from masquerade.networks.inputs import prepare_gradients

        super().__init__(params, variant, resources)
        self._identity = prepare_gradients(load_backbone("identity", resources.backbones))

    def anonymize(self, faces: Faces, seed: int, keys: Sequence[bytes] | None = None) -> np.ndarray:
        """The images with their changes. ``seed`` draws the first, tiny change of each image."""
        parts = []
        for rows in fill_batches(len(faces), self.params.batch):
            names = [faces.ids[row] for row in rows]
            parts.append(cloak(self._identity, faces.images[rows], names, seed, self.params.size, self.variant))
        return np.concatenate(parts)[: len(faces)]


def cloak(
    identity: "nn.Module", images: np.ndarray, names: Sequence[str], seed: int, size: int, knobs: Fawkes.Variant
) -> np.ndarray:
    """The images (N, 3, H, W) in [-1, 1] with their changes, which are searched at ``size`` pixels a side."""
    import torch

    from masquerade.networks import deterministic
    from masquerade.networks.inputs import device

    originals = torch.from_numpy(images).to(device())
    small = originals
    if images.shape[-1] != size:
        small = deterministic.resize(originals, (size, size))
    change = search_changes(identity, small, names, seed, knobs)
    if images.shape[-1] != size:
        change = deterministic.resize(change, images.shape[-2:])
    return (originals + change).clamp(-1, 1).cpu().numpy()


def search_changes(
    identity: "nn.Module", images: "Tensor", names: Sequence[str], seed: int, knobs: Fawkes.Variant
) -> "Tensor":
    """The change of each image with the largest distance of features whose dissimilarity is within the band."""
    import torch

    with torch.no_grad():
        features = identity(images)
    dissimilarity = Dissimilarity(images)
    start, best_changes = (images * INSIDE).atanh(), torch.zeros_like(images)
    starts = [seeding.make_generator(seed, "fawkes", name).uniform(-FIRST, FIRST, images.shape[1:]) for name in names]
    modifier = torch.from_numpy(np.stack(starts)).to(images).requires_grad_(True)
    optimizer = torch.optim.Adadelta([modifier], lr=knobs.rate, rho=DECAY, eps=EPSILON)
    weight, side = images.new_ones(len(images)), images.new_ones(len(images))
    best = images.new_zeros(len(images))
    for step in range(knobs.steps):
        change = ((start + modifier).tanh() / INSIDE - images).clamp(-REACH, REACH)
        unlike = dissimilarity(images + change)
        distance = (identity(images + change) - features).square().sum(dim=1)  # features are unit vectors
        with torch.no_grad():
            better = (unlike <= MORE * knobs.threshold) & (distance > best)
            best_changes[better], best[better] = change[better], distance[better]
        if step == knobs.steps - 1:
            break
        excess = (unlike - knobs.threshold).clamp(min=0)
        loss = (EXCESS * excess.square() - weight * distance).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            if step == 0:
                assert modifier.grad is not None
                modifier.sub_(FIRST_STEP * modifier.grad.sign())
            weight, side = reweigh(weight, side, unlike, knobs.threshold)
    return best_changes


def reweigh(weight: "Tensor", side: "Tensor", unlike: "Tensor", threshold: float) -> "tuple[Tensor, Tensor]":
    """The weights of the features for the next step, and the side of the band on which each image is.

    Below the band the weight doubles, above it it is halved; where an image changes sides, or is inside, it is 1.
    """
    import torch

    low = (unlike <= LESS * threshold) & (weight <= MOST)
    high = ~low & (unlike >= MORE * threshold) & (weight >= 1 / MOST)
    ones = torch.ones_like(weight)
    doubled, halved = torch.where(side == -1, ones, weight * 2), torch.where(side == 1, ones, weight / 2)
    weight = torch.where(low, doubled, torch.where(high, halved, ones))
    return weight, torch.where(low, ones, torch.where(high, -ones, 0 * ones))


class Dissimilarity:
    """(1 - SSIM) / 2 to the given images (N, 3, H, W) in [-1, 1], on 0 to 255 (Wang et al. 2004, Eq. 13).

    A mean under the Gaussian window is a product with a matrix for the rows and one for the columns. Windows lie inside
    the image.
    """

    def __init__(self, images: "Tensor"):
        self.rows, self.columns = (build_windows(side).to(images) for side in images.shape[-2:])
        self.images = scale_to_255(images)
        self.mean = self._means(self.images)
        self.variance = self._means(self.images.square()) - self.mean.square()

    def __call__(self, others: "Tensor") -> "Tensor":
        """Other images -> (N,)."""
        import torch

        others = scale_to_255(others)
        mean, square, product = self._means(torch.stack([others, others.square(), self.images * others])).unbind()
        both = self.mean * mean
        luminance = (2 * both + C1) / (self.mean.square() + mean.square() + C1)
        structure = (2 * (product - both) + C2) / (self.variance + square - mean.square() + C2)
        return (1 - (luminance * structure).mean(dim=(1, 2, 3))) / 2

    def _means(self, maps: "Tensor") -> "Tensor":
        return self.rows @ maps @ self.columns.T


def build_windows(side: int) -> "Tensor":
    """Row r holds the weights of ``side`` pixels under the window that begins at pixel r, (side - 10, side)."""
    import torch

    taps = torch.exp(-torch.arange(-REACHED, REACHED + 1).double().square() / (2 * SIGMA**2))
    rows = torch.zeros(side - 2 * REACHED, side, dtype=torch.float64)
    for row, weights in enumerate(rows):
        weights[row : row + len(taps)] = taps / taps.sum()
    return rows


def scale_to_255(images: "Tensor") -> "Tensor":
    """[-1, 1] -> [0, 255]."""
    return (images + 1) * (RANGE / 2)
