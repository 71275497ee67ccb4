"""Codes that are brought to an identity keep the colors of an image, and do not depend on their batch."""

import pytest
import torch
from torch.nn.functional import normalize

from masquerade.methods.latent import identities
from masquerade.networks.w_space import PNSpace

LAYERS, STYLE, SIDE = 2, 6, 16


class LinearGenerator:
    """Draws each color channel as the mean of two numbers of the first layer: what it draws has one color."""

    def synthesize(self, codes):
        colors = codes[:, 0].reshape(len(codes), 3, 2).mean(dim=2)
        return colors[:, :, None, None].expand(-1, -1, SIDE, SIDE)


def recognize(images):
    """An identity that is the color itself, so that every step towards another one changes the colors."""
    return normalize(images.mean(dim=(2, 3)))


@pytest.fixture
def asked():
    draw = torch.Generator().manual_seed(3)
    codes = torch.randn(4, LAYERS, STYLE, generator=draw)
    target = normalize(torch.randn(4, 3, generator=draw))
    return codes, target, LinearGenerator().synthesize(codes), PNSpace(torch.randn(500, STYLE, generator=draw))


def approach(codes, target, looks, space):
    return identities.approach_identity(codes, target, looks, LinearGenerator(), space, recognize, 12)


def test_the_result_is_nearer_to_the_identity(asked):
    codes, target, looks, space = asked
    result = approach(codes, target, looks, space)
    before, after = ((recognize(LinearGenerator().synthesize(each)) * target).sum(1) for each in (codes, result))
    assert (after > before).all()


def test_the_colors_are_nearer_to_those_of_the_image_than_without_their_term(asked, monkeypatch):
    codes, target, looks, space = asked
    kept = approach(codes, target, looks, space)
    monkeypatch.setattr(identities, "COLORS", 0.0)
    free = approach(codes, target, looks, space)
    moved_kept, moved_free = ((LinearGenerator().synthesize(each) - looks).square().mean() for each in (kept, free))
    assert moved_kept < 0.8 * moved_free


def test_a_face_does_not_depend_on_its_batch(asked):
    codes, target, looks, space = asked
    together = approach(codes, target, looks, space)
    alone = approach(codes[1:2], target[1:2], looks[1:2], space)
    torch.testing.assert_close(together[1:2], alone)
