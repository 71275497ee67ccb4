"""P_N space: random codes have the coordinates of a standard normal distribution, and others have larger ones."""

import pytest
import torch
from torch.nn import functional

from masquerade.networks.w_space import PNSpace


@pytest.fixture
def codes():
    draw = torch.Generator().manual_seed(0)
    mixed = torch.randn(4000, 6, generator=draw) @ torch.randn(6, 6, generator=draw) + 1
    return functional.leaky_relu(mixed, 0.2)  # as a mapping ends


def test_coordinates_are_standard_normal(codes):
    coordinates = PNSpace(codes)(codes)
    torch.testing.assert_close(coordinates.mean(0), torch.zeros(6), atol=1e-3, rtol=0)
    torch.testing.assert_close(coordinates.T.cov(), torch.eye(6), atol=1e-3, rtol=0)


def test_a_step_that_no_random_face_takes_is_far(codes):
    """A direction in which random codes do not vary at all counts as one of a hundredth of the largest deviation."""
    flat = torch.cat([codes, torch.zeros(len(codes), 1)], 1)
    space = PNSpace(flat)
    step = torch.zeros(7)
    step[6] = 0.1
    largest = torch.linalg.eigvalsh(functional.leaky_relu(codes, 5.0).T.cov().double())[-1].sqrt().item()
    moved = (space(step) - space(torch.zeros(7))).norm()
    assert moved.item() == pytest.approx(0.1 / (0.01 * largest), rel=0.2)


def test_codes_of_each_layer_are_measured_alike(codes):
    space, several = PNSpace(codes), codes[:10].view(5, 2, 6)
    torch.testing.assert_close(space(several), space(codes[:10]).view(5, 2, 6))
