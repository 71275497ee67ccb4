"""FIT: its passwords, networks, losses, training, results and refusals."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as some
from torch import nn

import kit
from masquerade.core import discovery
from masquerade.core.errors import KeyFormatError, ParameterError
from masquerade.core.images import to_float, to_uint8
from masquerade.methods import Resources
from masquerade.methods.fit import draw_passwords, encode_bits, group_bits, invert_bits, read_key, training
from masquerade.methods.fit.training import INSIDE, IdentityTransformer, build_discriminators

METHOD = discovery.load("methods", "fit")
KEY, OTHER = b"\x12\x34", b"\xfe\x01"


def settings(small_scale=None, **changes):
    return METHOD.Params(**kit.FIT | changes | {"small_scale": kit.FIT["small_scale"] | (small_scale or {})})


@pytest.fixture(autouse=True)
def substitute_encoder(monkeypatch):
    kit.replace_backbones(monkeypatch, identity=kit.Identity())


@pytest.fixture
def job(tmp_path):
    kit.archive(tmp_path / "faces.zip", kit.noise(10, tile=16, seed=2), size=32)
    (tmp_path / "identity.safetensors").write_bytes(b"stands for the encoder's file")
    return partial(kit.job, tmp_path, backbones=["identity"], seed=7)


@pytest.fixture
def trained(job):
    METHOD.train(settings(), job())
    return METHOD(settings(), METHOD.Variant(), Resources(job().checkpoint, job().backbones))


@pytest.fixture
def transforming():
    return training.TransformerTask(settings(), kit.Identity(), kit.noise(8), kit.SIZE, 7)


# Passwords.


def test_a_password_is_encoded_as_bits_of_plus_and_minus_one_half():
    assert read_key(b"\x80\x01").tolist() == [0.5, *[-0.5] * 14, 0.5]
    assert encode_bits(np.array([0x8001])).tolist() == [read_key(b"\x80\x01").tolist()]


@given(some.integers(0, 2**16 - 1))
def test_the_inverse_password_has_every_bit_inverted(number):
    assert np.array_equal(encode_bits(invert_bits(number)), -encode_bits(number))
    assert np.array_equal(read_key(number.to_bytes(2, "big")), encode_bits(number))


def test_the_classes_of_the_classifier_are_groups_of_four_bits():
    assert group_bits(np.array([0x1234, 0xF00A])).tolist() == [[1, 2, 3, 4], [15, 0, 0, 10]]


@given(some.integers(0, 2**32))
def test_drawn_passwords_are_right_or_wrong_as_intended(seed):
    made = draw_passwords(np.random.default_rng(seed), 50)
    assert all(((value >= 0) & (value < 2**16)).all() for value in made.values())
    assert np.array_equal(made["recovered"], invert_bits(made["anonymized"]))
    assert (made["anonymized"] != made["other"]).all()
    for name in ("wrong", "wrong_too"):
        assert (made[name] != made["recovered"]).all()
    assert (made["wrong"] != made["wrong_too"]).all()


# The networks.


def test_the_password_enters_as_constant_channels_beside_the_picture():
    torch.manual_seed(0)
    network = IdentityTransformer(16, 8, 1, 1, reach=0.0)
    images, given_ = torch.rand(2, 3, 16, 16) * 2 - 1, torch.from_numpy(encode_bits(np.array([3, 40000])))
    beside = torch.cat([images, given_[:, :, None, None].expand(-1, -1, 16, 16)], dim=1)
    padded = nn.functional.pad(beside, (3, 3, 3, 3), mode="reflect")
    # A kernel of 16 more channels whose sums are the weights of the password, as the published network has.
    shares = torch.rand(1, 1, 7, 7)
    of_bits = network.password.weight[:, :, None, None] * shares / shares.sum()
    expected = nn.functional.conv2d(padded, torch.cat([network.first.weight, of_bits], dim=1))
    entered = network.first(images) + network.password(given_)[:, :, None, None]
    assert torch.allclose(entered, expected, atol=1e-5)


@pytest.mark.parametrize("reach", [0.0, 0.8])
def test_every_bit_of_the_password_changes_the_picture(reach):
    torch.manual_seed(0)
    network = IdentityTransformer(16, 16, 2, 1, reach)
    image = torch.rand(1, 3, 16, 16) * 2 - 1
    numbers = np.array([0, *(1 << bit for bit in range(16))])
    made = network(image.expand(17, -1, -1, -1), torch.from_numpy(encode_bits(numbers)))
    assert ((made[1:] - made[:1]).abs().amax(dim=(1, 2, 3)) > 1e-4).all()


@given(some.integers(0, 2**16 - 1), some.floats(0.1, 2))
@hypothesis_settings(deadline=None, max_examples=20)
def test_a_change_is_limited_by_its_reach_and_the_inverse_password_negates_it(number, reach):
    torch.manual_seed(0)
    network = IdentityTransformer(16, 4, 1, 1, reach).double()
    with torch.no_grad():
        network.last.weight.mul_(100)
    images = torch.rand(1, 3, 8, 8, dtype=torch.float64) * 1.8 - 0.9
    password = torch.from_numpy(encode_bits(np.array([number]))).double()
    before = (INSIDE * images).atanh()
    change, opposite = (network(images, way * password).atanh() - before for way in (1, -1))
    assert torch.allclose(change, -opposite, atol=1e-6)
    assert 0 < change.abs().max() <= reach + 1e-6


def test_black_and_white_pixels_stay_in_range_and_are_recovered():
    torch.manual_seed(0)
    network = IdentityTransformer(16, 4, 1, 1, 1.0)
    with torch.no_grad():  # f does not depend on the image: recovery subtracts the added value
        network.first.weight.zero_()
    images = torch.tensor([-1.0, -0.9, 0.0, 1.0]).repeat(1, 3, 8, 2)
    password = torch.from_numpy(encode_bits(np.array([12345])))
    hidden = network(images, password)
    assert hidden.abs().max() <= 1
    assert (hidden - images).abs().max() > 0.01
    assert torch.allclose(network(hidden, -password), images, atol=0.02)


def test_shared_discriminators_differ_in_their_finest_scale_only():
    kinds = build_discriminators(training.KINDS, 4, 2, 2, shared=True)
    finest, coarser = zip(*(part.scales for part in kinds.values()), strict=True)
    assert len(set(map(id, finest))) == len(training.KINDS)
    assert len(set(map(id, coarser))) == 1
    apart = build_discriminators(training.KINDS, 4, 2, 2, shared=False)
    assert len({id(scale) for part in apart.values() for scale in part.scales}) == 2 * len(training.KINDS)


# The losses.


def test_feature_loss_is_the_mean_cosine_above_the_margin():
    first = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    second = torch.tensor([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]])
    assert training.feature_loss(first, second, 0.0).item() == pytest.approx((1 + 0.6 + 0) / 3)
    assert training.feature_loss(first, second, 0.5).item() == pytest.approx((0.5 + 0.1 + 0) / 3)


def test_identity_loss_is_zero_if_only_the_recovered_face_resembles_the_original():
    same, half, against = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]]), torch.tensor([[-1.0, 0.0]])
    good = {"anonymized": against, "other": against, "recovered": same, "wrong": against, "wrong_too": against}
    assert training.identity_loss(same, good, 0.0, both=True).item() == 0
    bad = {"anonymized": same, "other": against, "recovered": against, "wrong": half, "wrong_too": same}
    assert training.identity_loss(same, bad, 0.0, both=True).item() == pytest.approx((2 + 0.5 + 0.8) / 3)
    assert training.identity_loss(same, bad, 0.0, both=False).item() == pytest.approx((2 + 1 + 0.6) / 3)


def test_least_squares_losses_equal_values_worked_by_hand():
    real, fake = [torch.tensor([1.0, 0.0]), torch.tensor([2.0])], [torch.tensor([0.0, 1.0]), torch.tensor([3.0])]
    # Finer scale: 0.5 * (0.5 + 0.5); coarser: 0.5 * (1 + 9).
    assert training.discriminator_loss(real, fake).item() == pytest.approx(0.5 + 5)
    assert training.adversarial_loss(fake).item() == pytest.approx(0.5 + 4)


def test_password_loss_of_a_uniform_guess_is_the_logarithm_of_the_number_of_passwords():
    targets = torch.tensor([[1, 2, 3, 4], [0, 0, 15, 15]])
    assert training.password_loss(torch.zeros(2, 4, 16), targets).item() == pytest.approx(16 * np.log(2))
    sure = 50 * nn.functional.one_hot(targets, 16).float()
    assert training.password_loss(sure, targets).item() == pytest.approx(0, abs=1e-6)


# The training.


def test_training_learns_to_recover_faces(job):
    curve = kit.Curve()
    only = dict.fromkeys(type(settings().losses).model_fields, 0.0) | {"reconstruction": 100.0}
    chosen = settings({"reach": 0.0}, steps=40, losses=only, width=8, samples_every=40)
    METHOD.train(chosen, job(log=curve))
    assert curve.of("reconstruction")[-1] < 0.8 * curve[0]["reconstruction"]


def test_training_as_published_learns_with_shared_discriminators():
    published = {"shared": True, "last_stride": 4, "first_norm": False, "identity_of": "first"}
    chosen = settings(published, classifier={"width": 4, "depth": 3}, learning_rate=5e-3)
    task = training.TransformerTask(chosen, kit.Identity(), kit.noise(8), kit.SIZE, 7)
    values = [task.step(step)["discriminators"] for step in range(20)]
    assert values[-1] < values[0]


@pytest.mark.parametrize(
    ("small_scale", "changes", "message"),
    [
        ({"last_stride": 4}, {"classifier": {"width": 4, "depth": 5}}, "5 convolutions .* images of 64 pixels"),
        ({}, {"halvings": 6}, "cannot be halved 6 times"),
        ({}, {"size": 24}, "32 pixels cannot be reduced to methods.fit.params.size, 24"),
    ],
)
def test_a_network_that_the_pictures_are_too_small_for_is_refused(job, small_scale, changes, message):
    with pytest.raises(ParameterError, match=message):
        METHOD.train(settings(small_scale, **changes), job())


# The method.


def test_larger_images_are_reduced_for_the_network_and_the_result_is_enlarged(job):
    half = settings(size=16, classifier={"width": 4, "depth": 1})
    METHOD.train(half, job())
    method = METHOD(half, METHOD.Variant(), Resources(job().checkpoint, job().backbones))
    images = torch.from_numpy(kit.faces().images)
    blocks = images.unflatten(3, (16, 2)).unflatten(2, (16, 2)).mean(dim=(3, 5))
    password = torch.from_numpy(read_key(KEY)).expand(len(images), -1)
    drawn = method._network(blocks, password).detach()
    hidden = method.anonymize(kit.faces(), 0, [KEY] * len(images))
    assert hidden.shape == images.shape
    again = torch.nn.functional.interpolate(drawn, scale_factor=2, mode="bicubic", antialias=True)
    np.testing.assert_allclose(hidden, again.clamp(-1, 1).numpy(), atol=1e-5)


def test_training_sees_what_recovery_reads_from_the_written_file(job):
    """Enlarged, rounded to 8 bits, and reduced again."""
    half = settings(size=16)
    task = training.TransformerTask(half, kit.Identity(), kit.noise(8, size=16), kit.SIZE, 7)
    images, numbers = torch.rand(2, 3, 16, 16) * 2 - 1, {"anonymized": np.array([3, 5])}
    seen = task._draw_under(images, ("anonymized",), numbers)["anonymized"]
    written = to_uint8(training.enlarge(task.network(images, torch.from_numpy(encode_bits(numbers["anonymized"]))), 32)
                       .detach().numpy())  # fmt: skip
    read = training.reduce(torch.from_numpy(to_float(written)), 16)
    torch.testing.assert_close(seen.detach(), read, atol=1e-5, rtol=0)


def test_recovery_is_the_same_network_with_the_inverse_password(trained):
    faces = kit.faces()
    key, turned, other = ([one] * len(faces) for one in (KEY, bytes(255 - value for value in KEY), OTHER))
    recovered = trained.recover(faces.images, key)
    assert np.array_equal(recovered, trained.anonymize(faces, 0, turned))
    assert not np.array_equal(recovered, trained.recover(faces.images, other))


@pytest.mark.parametrize("key", [None, b"", b"\x01", b"\x01\x02\x03"])
def test_a_key_of_another_length_is_refused_and_not_repeated(trained, key):
    with pytest.raises(KeyFormatError, match="16 bits") as refused:
        trained.anonymize(kit.faces(), 0, key and [key] * 3)
    assert repr(key) not in str(refused.value)


def test_the_statement_has_the_number_of_passwords(trained):
    assert trained.statement()["password_bits"] == 16
    assert "65536" in trained.statement()["limits"]
