"""CLIP2Protect: unknown words of prompts, its generators, batches, and what is read off images once for many keys."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from masquerade.core.errors import ParameterError
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
