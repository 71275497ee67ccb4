"""The search of Fawkes: dissimilarity, weights and what it finds."""

from types import SimpleNamespace

import numpy as np
import torch
from skimage.metrics import structural_similarity
from torch import nn

from masquerade.methods import fawkes


class Plain(nn.Module):
    """A feature extractor: the unit vector of a fixed random projection."""

    def __init__(self, size: int):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3 * size * size, 16)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.layer(images.flatten(1)))


def pictures(count: int = 3, size: int = 24) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.8, 0.8, (count, 3, size, size)).astype(np.float32)


def test_dissimilarity_is_half_of_one_minus_the_structural_similarity():
    first = pictures(1)
    second = np.clip(first + 0.1 * np.random.default_rng(1).standard_normal(first.shape), -1, 1).astype(np.float32)
    found = fawkes.Dissimilarity(torch.from_numpy(first))(torch.from_numpy(second)).item()
    scaled = [(each[0] + 1) * 127.5 for each in (first, second)]
    _, local = structural_similarity(
        *scaled,
        channel_axis=0,
        data_range=255,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        full=True,
    )
    inside = local[:, 5:-5, 5:-5].mean()  # windows that lie in the picture
    assert abs(found - (1 - inside) / 2) < 1e-4


def test_weight_doubles_below_the_band_halves_above_it_and_is_one_inside():
    weight, side = torch.tensor([2.0, 2.0, 2.0, 2.0]), torch.tensor([1.0, -1.0, 1.0, -1.0])
    unlike = torch.tensor([0.5, 1.5, 1.0, 0.5])
    weight, side = fawkes.reweigh(weight, side, unlike, 1.0)
    assert weight.tolist() == [4.0, 1.0, 1.0, 1.0]  # the last one changes sides
    assert side.tolist() == [1.0, -1.0, 0.0, 1.0]


def test_change_stays_within_its_limits_and_moves_the_features():
    images = pictures()
    knobs = SimpleNamespace(threshold=0.02, steps=40, rate=15.0)
    identity, names = Plain(24), ["a", "b", "c"]
    made = fawkes.cloak(identity, images, names, 0, 24, knobs)
    change = np.abs(made - images)
    assert change.max() <= fawkes.REACH + 1e-6
    both = [torch.from_numpy(each) for each in (images, made)]
    assert (fawkes.Dissimilarity(both[0])(both[1]) <= 1.1 * 0.02 + 1e-6).all()
    far = (identity(both[0]) - identity(both[1])).norm(dim=1)
    assert (far > 0.05).all()


def test_search_at_another_size_enlarges_the_change():
    images = pictures(2, 48)
    made = fawkes.cloak(Plain(24), images, ["a", "b"], 0, 24, SimpleNamespace(threshold=0.02, steps=5, rate=15.0))
    assert made.shape == images.shape
    assert not np.array_equal(made, images)
