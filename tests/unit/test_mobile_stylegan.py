"""The generator of photographs: equal to the published one, read from its package alone, with a head for 256 pixels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

import kit
from masquerade.assets import packaged
from masquerade.assets import random_face as package
from masquerade.backbones.generator import random_face, training
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.networks.mobile_stylegan import MobileStyleGAN, inverse_haar
from masquerade.params import loading

RECORDED = Path(__file__).parent / "recorded" / "mobile_stylegan.npz"
"""Of OpenVINO 2026.4 (32-bit floats), z = default_rng(7).standard_normal((4, 512)): ``w``, and each 32nd pixel across
and down of the ``pictures``, from the 17th on."""


@pytest.fixture(scope="module")
def published():
    network = random_face.build_without_head()
    network.mixed = False  # the recorded values are of 32-bit floats
    return network


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """The checkpoint of a head that learned little."""
    folder = tmp_path_factory.mktemp("photo")
    params = loading.load(Path(__file__).parents[2], "photo_evening").backbones["generator"]
    params = params.model_copy(update={"head": params.head.model_copy(update={"pictures": 64, "steps": 5})})
    job = kit.job(folder, name="generator")
    discovery.load("backbones", "generator")(params).train(job)
    return job.checkpoint


def test_the_inverse_wavelet_equals_the_values_worked_by_hand():
    # half of the sums of the published wavelet: low +- across, +- down, +- both
    low, across, down, both = 4.0, 1.0, 0.5, 0.25
    x = torch.tensor([low, across, down, both]).reshape(1, 4, 1, 1)
    expected = [[low + across + down + both, low + across - down - both],
                [low - across + down - both, low - across - down + both]]  # fmt: skip
    assert inverse_haar(x)[0, 0].tolist() == expected


def test_codes_and_pictures_equal_those_of_openvino(published):
    recorded = np.load(RECORDED)
    z = torch.from_numpy(np.random.default_rng(7).standard_normal((4, 512)).astype(np.float32))
    with torch.no_grad():
        w = published.map(z)
        pictures = published.synthesize_large(published.broadcast(w))[:, :, 16::32, 16::32]
    spread = np.ptp(recorded["pictures"])
    assert np.abs(w.numpy() - recorded["w"]).max() < 1e-4
    assert np.abs(pictures.numpy() - recorded["pictures"]).max() < 1e-3 * spread


def test_the_papers_layers_have_their_own_numbers(published):
    assert list(published.published_layers(3, 7)) == [3, 4, 5, 6, 7]
    resolutions = [published.conv.noise.shape[-1]]
    resolutions += [conv.noise.shape[-1] for level in published.levels for conv in (level.conv1, level.conv2)]
    assert resolutions[3:8] == [16, 16, 32, 32, 64]  # those of layers 3 to 7 of a StyleGAN2 of 1024 pixels


def test_a_checkpoint_holds_no_tensor_of_the_package(checkpoint):
    with safe_open(checkpoint, framework="pt") as file:
        names = set(file.keys())
    head = {f"generator.head.{name}" for name in ("style.weight", "style.bias", "kernel", "bias")}
    assert names == head | {"generator.latent_avg"}


@pytest.mark.parametrize("known", [0, 2, 3])
def test_drawing_that_begins_with_the_known_codes_gives_the_same_picture(known):
    torch.manual_seed(0)
    network = MobileStyleGAN().requires_grad_(False)
    for weight in (*network.parameters(), *network.buffers()):
        torch.nn.init.normal_(weight, std=0.1)
    network.mixed = False
    codes = torch.randn(1, network.layers, 512)
    other = torch.cat([codes[:, :known], torch.randn(1, network.layers - known, 512)], dim=1)
    assert torch.equal(network.synthesize(other, network.begin(codes, known)), network.synthesize(other))


def test_the_head_draws_the_published_picture_in_small(checkpoint):
    generator = training.load(checkpoint)
    codes = generator.broadcast(generator.truncate(generator.map(torch.randn(2, 512)), 0.7))
    with torch.no_grad():
        small, large = generator.synthesize(codes), generator.synthesize_large(codes)
    error = (small - torch.nn.functional.avg_pool2d(large, 4)).square().mean()
    assert small.shape == (2, 3, 256, 256)
    assert 10 * torch.log10(4 / error) > 20  # dB; the head of photo_evening has more than 31


def test_a_missing_package_names_the_command(monkeypatch):
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match="make photo"):
        random_face.files()


def test_a_package_of_another_version_names_the_command(monkeypatch):
    monkeypatch.setitem(package.FILES, "MappingNetwork.bin", "0" * 64)
    with pytest.raises(CheckpointError, match=r"MappingNetwork\.bin.*make photo"):
        random_face.read_state()
