"""CLIP2Protect and Fawkes: a generator for each image, batches, what is read once, and the search of a change."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skimage.metrics import structural_similarity
from torch import nn

from masquerade.core.errors import ParameterError
from masquerade.methods import fawkes
from masquerade.methods._batches import Remembered, fill_batches
from masquerade.methods.clip2protect.search import Search, own_generators
from masquerade.networks.stylegan2 import Generator


def test_other_generator_than_stylegan2_is_refused():
    with pytest.raises(ParameterError, match="tunes a StyleGAN2"):
        Search(SimpleNamespace(generator=torch.nn.Linear(1, 1)), None, None, None)


def test_last_batch_is_filled_up_with_its_last_face():
    assert fill_batches(5, 3).tolist() == [[0, 1, 2], [3, 4, 4]]
    assert fill_batches(1, 2).tolist() == [[0, 0]]


@pytest.fixture
def generator() -> Generator:
    torch.manual_seed(0)
    made = Generator(16, (6, 5, 4), style=8, mapping=2)
    for name, parameter in made.named_parameters():
        if "noise" in name or "bias" in name:
            torch.nn.init.normal_(parameter)
    return made


def test_copies_draw_and_learn_as_one_generator_for_each_picture(generator):
    codes = torch.randn(3, generator.layers, 8)
    own = own_generators(generator, 3)
    pictures = own.synthesize(codes)
    pictures.square().sum().backward()
    weights = {name: value.grad for name, value in own.named_parameters() if value.grad is not None}
    for row in range(3):
        single = copy.deepcopy(generator)
        picture = single.synthesize(codes[row : row + 1])
        torch.testing.assert_close(pictures[row], picture[0], atol=1e-5, rtol=1e-4)
        picture.square().sum().backward()
        learned = {name: value.grad for name, value in single.named_parameters() if value.grad is not None}
        assert len(learned) == len(weights)
        for name, gradient in learned.items():
            there = weights[name.replace("modulation.weight", "matrix").replace("modulation.bias", "bias")][row]
            if name.startswith("convs.") and name.endswith("conv.weight") and int(name.split(".")[1]) % 2 == 0:
                there = there.transpose(0, 1)
            torch.testing.assert_close(there.flatten(), gradient.flatten(), atol=1e-4, rtol=1e-3)


def test_picture_reads_no_weights_of_another_picture(generator):
    codes = torch.randn(2, generator.layers, 8)
    own = own_generators(generator, 2)
    before = own.synthesize(codes)[0]
    with torch.no_grad():
        for parameter in own.parameters():
            if len(parameter) == 2:
                parameter[1] += 1
    assert torch.equal(own.synthesize(codes)[0], before)
    assert not torch.allclose(own.synthesize(codes)[1], generator.synthesize(codes[1:])[0])


@pytest.mark.parametrize("known", [0, 1, 2, 3, 4, 6])
def test_drawing_that_begins_with_the_known_codes_gives_the_same_picture(generator, known):
    codes = torch.randn(2, generator.layers, 8)
    other = torch.cat([codes[:, :known], torch.randn(2, generator.layers - known, 8)], dim=1)
    assert torch.equal(generator.synthesize(other, begun=generator.begin(codes, known)), generator.synthesize(other))


def test_last_pictures_are_read_once():
    seen = []
    first, second, third = (np.full((1, 3, 2, 2), value, dtype=np.float32) for value in range(3))

    def read(images: np.ndarray) -> float:
        seen.append(float(images.mean()))
        return seen[-1]

    remembered = Remembered(read, kept=2)
    assert [remembered(each) for each in (first, second, first.copy(), second)] == [0.0, 1.0, 0.0, 1.0]
    assert seen == [0.0, 1.0]
    assert remembered(third) == 2.0
    assert remembered(first) == 0.0
    assert seen == [0.0, 1.0, 2.0, 0.0]


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
    inside = local[:, 5:-5, 5:-5].mean()  # windows that lie in the image
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
