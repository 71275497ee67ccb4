"""The discriminator of features: what is fixed, what learns, and that it tells what looks real."""

import pytest
import torch

from masquerade.networks.discriminators import HEAD, MIXED, Heads, Projection


@pytest.fixture(scope="module")
def projection():
    return Projection(64)


def test_maps_go_from_fine_to_coarse(projection):
    maps = projection(torch.rand(2, 3, 16, 16) * 2 - 1)
    assert [tuple(found.shape) for found in maps] == [
        (2, width, side, side) for width, side in zip(MIXED, (16, 8, 4, 2), strict=True)
    ]
    assert [tuple(scores.shape) for scores in Heads()(maps)] == [(2, 4)] * 4


def test_larger_pictures_are_averaged_down(projection):
    """Columns of two white and two black pixels are gray at a quarter of the size; by two pixels alone, white."""
    columns, gray = -torch.ones(1, 3, 256, 256), torch.zeros(1, 3, 256, 256)
    columns[..., 1::4] = columns[..., 2::4] = 1.0
    found, white, expected = (projection(images)[0] for images in (columns, gray + 1, gray))
    assert (found - expected).abs().mean() < 0.5 * (found - white).abs().mean()


def test_fine_maps_have_features_of_the_coarse_ones(projection):
    """A change in a corner reaches the opposite corner of the finest map through the coarser scales alone."""
    black = -torch.ones(1, 3, 64, 64)
    changed = black.clone()
    changed[..., 48:, 48:] = 1.0
    finest, other = projection(black)[0], projection(changed)[0]
    assert (finest - other)[..., 0, 0].abs().max() > 1e-4


def test_nothing_in_the_projection_learns_and_no_seed_changes_it(projection):
    torch.manual_seed(1)
    images = torch.rand(1, 3, 16, 16, requires_grad=True)
    found, again = projection(images), Projection(64)(images)
    assert not any(weight.requires_grad for weight in projection.parameters())
    assert all(torch.equal(a, b) for a, b in zip(found, again, strict=True))
    sum(part.sum() for part in found).backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0, "the gradient reaches the pictures"


def test_every_layer_of_the_heads_has_norm_one():
    torch.manual_seed(0)
    heads = Heads()
    maps = [torch.randn(2, width, side, side) for width, side in zip(MIXED, (16, 8, 4, 2), strict=True)]
    for _ in range(30):  # one power iteration each
        heads(maps)
    layers = [layer for layer in heads.modules() if isinstance(layer, torch.nn.Conv2d)]
    norms = [torch.linalg.matrix_norm(layer.weight.flatten(1), 2).item() for layer in layers]
    assert norms == pytest.approx([1.0] * len(layers), rel=0.05)
    assert HEAD in {layer.out_channels for layer in layers}


def test_heads_learn_to_tell_sharp_pictures_from_blurred_ones(projection):
    torch.manual_seed(0)
    heads = Heads()
    optimizer = torch.optim.Adam(heads.parameters(), lr=0.002, betas=(0.0, 0.99))
    sharp = torch.rand(16, 3, 64, 64).round() * 2 - 1
    maps = [projection(sharp), projection(torch.nn.functional.avg_pool2d(sharp, 5, 1, 2))]
    for _ in range(40):
        real, blurred = (torch.stack([scores.mean() for scores in heads(given)]).mean() for given in maps)
        optimizer.zero_grad()
        (torch.relu(1 - real) + torch.relu(1 + blurred)).backward()
        optimizer.step()
    assert real - blurred > 0.5
