"""Recognizers for photographs start from ImageNet's weights, and their training exchanges what surrounds a face."""

from typing import get_args

import numpy as np
import pytest
import torch

import kit
from masquerade.backbones.recognition import PhotographSettings, RecognitionSettings, photographs
from masquerade.backbones.recognition.training import Recognizer
from masquerade.core import discovery
from masquerade.core.images import to_float
from masquerade.networks import efficientnet_lite_internals, mobilenet_v2
from masquerade.networks.imagenet_recognizer import ImageNetRecognizer, Trunk

SETTINGS = {
    "input_size": 64, "identities": (0.0, 1.0), "steps": 4, "batch": 8, "learning_rate": 0.001,
    "weight_decay": 0.0, "scale": 16.0, "margin": 0.2, "floor_auc": 0.0, "floor_tar": 0.0,
}  # fmt: skip


def for_photographs(name="identity"):
    cls = discovery.load("backbones", name)
    own = {"widths": kit.WIDTHS, "units": kit.UNITS} if name == "identity" else {"width": 0.3, "repeats": (1, 1, 1)}
    settings = {"frozen": 14, "exchanged": 0.4, "erased": 0.3}
    recognition = SETTINGS | {"input_size": 80}
    return cls(cls.Params(published="", photographs=settings, recognition=recognition, **own))


@pytest.fixture
def archive(tmp_path):
    """Eight people of four images of 64 pixels: a color each, with noise."""
    draw = np.random.default_rng(0)
    colors = draw.integers(40, 216, (8, 1, 1, 1, 3)) + draw.normal(0, 12, (8, 4, 64, 64, 3))
    rows = [{"identity": f"p{number // 4}"} for number in range(32)]
    return kit.archive(tmp_path / "faces.zip", colors.reshape(32, 64, 64, 3), train=24, rows=rows, size=64)


def published_stem(trunk):
    if trunk == "mobilenet_v2":
        return mobilenet_v2.load_network().features[0], mobilenet_v2.MEAN, mobilenet_v2.STD
    stem = efficientnet_lite_internals.list_blocks(efficientnet_lite_internals.load_network(0))[0]
    return stem, efficientnet_lite_internals.MEAN, efficientnet_lite_internals.STD


@pytest.mark.parametrize("trunk", get_args(Trunk))
def test_network_starts_as_imagenets_network_for_pictures_in_its_own_range(trunk):
    network = ImageNetRecognizer(trunk, 96)
    network.start_from_imagenet()
    stem, *values = published_stem(trunk)
    pictures = torch.rand(1, 3, 96, 96, generator=torch.Generator().manual_seed(0)) * 2 - 1
    mean, std = (torch.tensor(value)[:, None, None] for value in values)
    with torch.inference_mode():
        expected = stem(((pictures + 1) / 2 - mean) / std)
        given = network.eval().blocks[0](pictures)
    # only the edge differs, where the image is padded
    torch.testing.assert_close(given[..., 1:-1, 1:-1], expected[..., 1:-1, 1:-1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("trunk", get_args(Trunk))
def test_blocks_keep_the_statistics_of_imagenet_in_a_training(trunk):
    network = ImageNetRecognizer(trunk, 64).train()
    before = network.blocks[0][1].running_mean.clone()
    network(torch.randn(4, 3, 64, 64))
    assert torch.equal(network.blocks[0][1].running_mean, before)
    assert network.output_layer[0].num_batches_tracked == 1


@pytest.mark.parametrize(("exchanged", "erased"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_surroundings_are_exchanged_or_erased_and_the_face_stays(exchanged, erased):
    crops = torch.stack([torch.full((3, 64, 64), -0.5), torch.full((3, 64, 64), 0.5)])
    settings = PhotographSettings(frozen=0, exchanged=exchanged, erased=erased)
    changed = photographs._change_surroundings(crops, np.random.default_rng(0), settings)
    assert torch.equal(changed[..., 28:36, 28:36], crops[..., 28:36, 28:36])
    if erased:  # one color with noise
        assert 0.1 < changed[0, :, :8, :8].flatten(1).std(dim=1).mean() < 0.3
    else:
        assert torch.equal(changed[..., :4, :4], (crops.flip(0) if exchanged else crops)[..., :4, :4])


def test_views_depend_on_the_draw_alone_and_lie_in_the_range_of_pictures():
    settings = PhotographSettings(frozen=0, exchanged=0.4, erased=0.3)
    pictures = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (6, 80, 80, 3), dtype=np.uint8))
    one, same, other = (photographs.augment(pictures, np.random.default_rng(seed), 48, settings) for seed in (1, 1, 2))
    assert one.shape == (6, 3, 48, 48)
    assert one.dtype == torch.float32
    assert one.abs().max() <= 1
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_two_pictures_of_a_person_meet_in_a_step_and_the_person_is_drawn_once(monkeypatch):
    """Images of one brightness a person: the batch has every brightness twice, in both halves in the same order."""
    seen = []

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.Sequential(torch.nn.Identity())
            self.weight = torch.nn.Parameter(torch.ones(512))

        def forward(self, views):
            seen.append(views[:, 0, 32, 32])
            return views.mean(dim=(1, 2, 3))[:, None] * self.weight + torch.arange(512)

    monkeypatch.setattr(photographs, "augment", lambda pictures, draw, side, settings: to_float_tensor(pictures))
    levels = np.repeat(np.arange(10, 250, 30), 3)
    pictures = np.broadcast_to(levels[:, None, None, None].astype(np.uint8), (24, 64, 64, 3)).copy()
    settings, params = PhotographSettings(frozen=0, exchanged=0.0, erased=0.0), RecognitionSettings(**SETTINGS)
    recognizer = Recognizer(Network(), 64)
    task = photographs.PhotographTask(settings, recognizer, params, pictures, np.repeat(np.arange(8), 3), 0)
    assert {"loss", "accuracy", "learning_rate"} == set(task.step(0))
    first, second = seen[0].chunk(2)
    assert torch.equal(first, second)
    assert len(set(first.tolist())) == 4


def to_float_tensor(pictures: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(to_float(pictures.numpy()))


def test_interrupted_training_for_photographs_ends_with_the_same_bytes(archive, tmp_path):
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "faces.zip").write_bytes((tmp_path / "faces.zip").read_bytes())
    (tmp_path / "cut" / "faces.parquet").write_bytes((tmp_path / "faces.parquet").read_bytes())
    whole, cut = kit.job(tmp_path), kit.job(tmp_path / "cut")
    for_photographs().train(whole)
    kit.resumed(for_photographs().train, cut, stops=[1])
    assert cut.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


@pytest.mark.parametrize(("name", "trunk"), [("identity", "mobilenet_v2"), ("recognizer_a", "efficientnet_lite0")])
def test_checkpoint_for_photographs_sees_the_crop_of_a_face_and_keeps_frozen_blocks(name, trunk, archive, tmp_path):
    job, start = kit.job(tmp_path), photographs.build_started({"network": trunk, "input_size": 80})
    for_photographs(name).train(job)
    network = for_photographs(name).load(job.checkpoint)
    kept = [
        torch.equal(*pair) for pair in zip(start.blocks.parameters(), network.network.blocks.parameters(), strict=True)
    ]
    frozen = len(list(start.blocks[:14].parameters()))
    assert all(kept[:frozen])
    assert not any(kept[frozen:])
    pictures = torch.rand(2, 3, 256, 256, generator=torch.Generator().manual_seed(0)) * 2 - 1
    pictures.requires_grad_(True)
    embeddings = network(pictures)
    assert embeddings.shape == (2, 512)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(2))
    embeddings[:, 0].sum().backward()
    assert pictures.grad[..., 40:200, 40:200].abs().sum() > 0
    assert pictures.grad[..., :35, :].abs().sum() == 0
