"""Models of TensorFlow.js against independent values, and what is computed from a mesh of a face."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

import graph_models
from masquerade.core.errors import CheckpointError
from masquerade.judges import expressions
from masquerade.networks.tensorflow_js import GraphModel, load_models


def run(nodes, tensors, image: np.ndarray, half: bool = False) -> np.ndarray:
    """What the last of ``nodes`` gives for an image (H, W, C)."""
    nodes = [("input", "Placeholder", [], {}), *nodes]
    model = GraphModel(*graph_models.write_model(nodes, tensors, half), [nodes[-1][0]])
    with torch.no_grad():
        return model(torch.from_numpy(image[None].astype(np.float32)))[0][0].numpy()


def correlate_same(image: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
    """SciPy's correlation of one channel, with TensorFlow's padding SAME: what is odd of it right and below."""
    pads = []
    for side, size in zip(image.shape, kernel.shape, strict=True):
        whole = max((-(-side // stride) - 1) * stride + size - side, 0)
        pads.append((whole // 2, whole - whole // 2))
    return signal.correlate2d(np.pad(image, pads), kernel, mode="valid")[::stride, ::stride]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 12), st.integers(5, 12), st.sampled_from([1, 2]), st.integers(1, 4))
def test_convolutions_are_those_of_scipy_with_the_padding_of_tensorflow(seed, height, width, stride, size):
    draw = np.random.default_rng(seed)
    image = draw.normal(size=(height, width, 2))
    kernel, bias = draw.normal(size=(size, size, 2, 3)), draw.normal(size=3)
    given_attributes = {"strides": [1, stride, stride, 1], "padding": "SAME", "fused_ops": ["BiasAdd", "Relu"]}
    got = run([("y", "_FusedConv2D", ["input", "k", "b"], given_attributes)], {"k": kernel, "b": bias}, image)
    expected = [sum(correlate_same(image[..., i], kernel[..., i, o], stride) for i in range(2)) for o in range(3)]
    np.testing.assert_allclose(got, np.maximum(np.stack(expected, axis=-1) + bias, 0), atol=1e-4)
    depthwise = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    got = run([("y", "DepthwiseConv2dNative", ["input", "k"], depthwise)], {"k": kernel[..., :1]}, image)
    expected = [correlate_same(image[..., i], kernel[..., i, 0], stride) for i in range(2)]
    np.testing.assert_allclose(got, np.stack(expected, axis=-1), atol=1e-4)


IMAGE = np.array([[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, -8.0]]])


@pytest.mark.parametrize(
    ("node", "tensors", "expected"),
    [
        (("Relu", ["input"], {}), {}, np.maximum(IMAGE, 0)),
        (("Prelu", ["input", "s"], {}), {"s": np.array([0.5, 0.1])}, np.where(IMAGE > 0, IMAGE, IMAGE * [0.5, 0.1])),
        (("AddV2", ["input", "s"], {}), {"s": np.array([1.0, 2.0])}, np.add(IMAGE, [1, 2])),
        (("Mul", ["input", "s"], {}), {"s": np.array([1.0, 2.0])}, IMAGE * [1, 2]),
        (("Mean", ["input", "a"], {"keep_dims": False}), {"a": np.array([1, 2])}, [1.5, 0.0]),
        (("Max", ["input", "a"], {"keep_dims": True}), {"a": np.array([1, 2])}, [[[7.0, 6.0]]]),
        (("MaxPool", ["input"], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}), {}, [[[7, 6]]]),
        (("MaxPool", ["input"], {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}), {},
         [[[7, 6], [7, 4]], [[7, 6], [7, -8]]]),
        (("Pad", ["input", "p"], {}), {"p": np.array([[0, 0], [1, 0], [0, 0], [0, 1]])},
         np.pad(IMAGE, ((1, 0), (0, 0), (0, 1)))),
        (("Reshape", ["input", "r"], {}), {"r": np.array([-1, 8])}, IMAGE.ravel()),
        (("ConcatV2", ["input", "input", "x"], {}), {"x": np.array(3)}, np.concatenate([IMAGE, IMAGE], axis=2)),
        (("Sigmoid", ["input"], {}), {}, 1 / (1 + np.exp(-IMAGE))),
        (("Softmax", ["input"], {}), {}, np.exp(IMAGE) / np.exp(IMAGE).sum(axis=2, keepdims=True)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_every_operation_gives_its_hand_worked_value(node, tensors, expected):
    np.testing.assert_allclose(run([("y", *node)], tensors, IMAGE), expected, atol=1e-5)


def test_numbers_of_16_bits_are_read_and_operations_may_stand_in_any_order():
    nodes = [("z", "AddV2", ["y", "s"], {}), ("y", "Relu", ["input"], {}), ("out", "Identity", ["z:0"], {})]
    np.testing.assert_allclose(
        run(nodes, {"s": np.array([0.5, 2.0])}, IMAGE, half=True), np.add(np.maximum(IMAGE, 0), [0.5, 2])
    )


def test_an_unknown_operation_and_a_wrong_number_of_numbers_are_named():
    nodes = [("input", "Placeholder", [], {}), ("y", "Atan2", ["input"], {})]
    with pytest.raises(CheckpointError, match="not read here: Atan2"):
        GraphModel(*graph_models.write_model(nodes, {}), ["y"])
    description, content = graph_models.write_reader("y", 3, 4)
    with pytest.raises(CheckpointError, match="end within bias"):
        GraphModel(description, content[:-1], ["y"])
    with pytest.raises(CheckpointError, match="4 bytes of numbers that it does not name"):
        GraphModel(description, content + b"more", ["y"])


def test_a_package_without_a_model_is_named(tmp_path):
    graph_models.write_package(tmp_path / "package.tgz", {"iris": graph_models.write_reader("y", 3, 4)})
    assert list(load_models(tmp_path / "package.tgz", {"iris": ["y"]})) == ["iris"]
    with pytest.raises(CheckpointError, match=r"lacks package/models/gear\.bin, package/models/gear\.json"):
        load_models(tmp_path / "package.tgz", {"iris": ["y"], "gear": ["y"]})


def turn(yaw: float, pitch: float, roll: float) -> np.ndarray:
    """A mesh of a head that is turned: its four points at their places, z away from the camera."""
    a, b, c = np.radians([yaw, pitch, roll])
    points = np.zeros((expressions.POINTS, 3))
    points[[expressions.LEFT, expressions.RIGHT, expressions.TOP, expressions.CHIN]] = [
        [-1, 0, 0], [1, 0, 0], [0, -1.2, 0], [0, 1.2, 0]
    ]  # fmt: skip
    about_y = np.array([[np.cos(a), 0, -np.sin(a)], [0, 1, 0], [np.sin(a), 0, np.cos(a)]])
    about_x = np.array([[1, 0, 0], [0, np.cos(b), np.sin(b)], [0, -np.sin(b), np.cos(b)]])
    about_z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return points @ (about_z @ about_y @ about_x).T


@pytest.mark.parametrize("angles", [(0, 0, 0), (30, 0, 0), (0, -20, 0), (0, 0, 15)])
def test_the_pose_of_a_turned_mesh_is_known(angles):
    np.testing.assert_allclose(expressions.compute_pose(turn(*angles)[None])[0], angles, atol=1e-6)
