"""Judges with official weight files: the inputs of their networks, their values, and the error without a file.

The tests write files of random numbers in the published layouts. They check preprocessing and formulas.
"""

from operator import attrgetter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

import official
from masquerade import assets
from masquerade.assets import lock, packaged
from masquerade.core import discovery, rehearsal
from masquerade.core.errors import CheckpointError
from masquerade.judges import detectors
from masquerade.networks import lpips as networks_lpips
from masquerade.networks import mobile_embedder
from masquerade.papers import cautions

NAMES = [name for name in discovery.list_names("judges") if discovery.load("judges", name).assets]
SEEDS = {"facenet_casia": 1}


def judge(name: str):
    cls = discovery.load("judges", name)
    return cls(cls.Params(), {})


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("lab"))
        patch.setenv(rehearsal.VARIABLE, "1")
        made = {}
        for name in NAMES:
            for role in discovery.load("judges", name).assets:
                path = official.write(role, assets.path(role), SEEDS.get(role, 0))
                lock.record(role, path.name, assets.digest(path), path.stat().st_size, "placed", rehearsal=True)
            made[name] = judge(name)
            for role in discovery.load("judges", name).assets:
                assets.path(role).unlink()  # they are large
        patch.delenv(rehearsal.VARIABLE)
        yield made


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (2, 3, 256, 256)).astype(np.float32)


@pytest.fixture
def orange() -> np.ndarray:
    return np.broadcast_to(np.float32([1.0, 0.0, -1.0])[:, None, None], (1, 3, 64, 64)).copy()


def input_of(layer, act) -> np.ndarray:
    """The first input of a layer while ``act`` runs."""
    inputs = []
    hook = layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0].numpy().copy()))
    act()
    hook.remove()
    return inputs[0]


def framed(left: int, top: int, right: int, bottom: int) -> np.ndarray:
    """A black image of 256 x 256 pixels with a white rectangle."""
    picture = -np.ones((1, 3, 256, 256), np.float32)
    picture[..., top:bottom, left:right] = 1.0
    return picture


@pytest.mark.parametrize("name", NAMES)
def test_error_for_a_missing_file_says_what_to_do(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(packaged, "STAND_INS", {})
    role = discovery.load("judges", name).assets[0]
    with pytest.raises(CheckpointError, match=f"{assets.path(role)} is missing.*`masquerade assets fetch {role}`"):
        judge(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_judge_returns_its_quantities_for_any_batch_size(name, judges, pictures):
    reference = pictures[::-1].copy()
    together = judges[name].measure(pictures, reference)
    assert {quantity: values.shape for quantity, values in together.items()} == {
        quantity: (2, *shape) for quantity, shape in judges[name].quantities.items()
    }
    alone = judges[name].measure(pictures[1:], reference[1:])
    for quantity, values in together.items():
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values[1:], alone[quantity], rtol=1e-4, atol=1e-4, err_msg=quantity)
    if "embedding" in together:
        np.testing.assert_allclose(np.linalg.norm(together["embedding"], axis=1), 1.0, atol=1e-5)


FACENET = 160, (0.99609, 0.00391, -0.99609), 127.5 / 128, (61, 60, 192, 229)
ARCFACE_CROP = 32, 35, 220, 223
MEANS = np.array([103.939, 116.779, 123.68])  # blue first


@pytest.mark.parametrize(
    ("name", "layer", "expected"),  # expected: side in pixels, color of orange, of white, and the crop
    [
        ("facenet_casia", "_network.conv2d_1a", FACENET),  # 8-bit levels 255, 128, 0, minus 127.5, over 128
        ("facenet_vggface2", "_network.conv2d_1a", FACENET),
        ("arcface", "_network.network.input_layer", (112, (1, 0, -1), 1, ARCFACE_CROP)),
        ("adaface", "_network.input_layer", (112, (-1, 1 / 255, 1), 1, ARCFACE_CROP)),  # blue first
        ("faceres", "_network.stem", (224, (0, 128, 255) - MEANS, 255 - MEANS, ARCFACE_CROP)),
        ("face_alignment", "_detector.conv1_1", (256, (0 - 104, 128 - 117, 255 - 123), None, None)),
    ],
)
def test_network_receives_its_crop_range_and_color_order(name, layer, expected, judges, orange):
    """An orange image has the right levels; a white rectangle of the size of the crop fills the input."""
    side, color, white, crop = expected
    first = attrgetter(layer)(judges[name])
    received = input_of(first, lambda: judges[name].measure(orange))
    padded = side + (name == "faceres")  # a column and a row of zeros: TensorFlow's padding
    assert received.shape == (1, 3, padded, padded)
    np.testing.assert_allclose(received[0, :, side // 2, side // 2], color, atol=1e-3 if name == "faceres" else 1e-5)
    if crop:
        filled = input_of(first, lambda: judges[name].measure(framed(*crop)))[0, :, :side, :side]
        np.testing.assert_allclose(filled.transpose(1, 2, 0), np.broadcast_to(white, (side, side, 3)), rtol=1e-5)


def test_faceplugin_sees_its_crop_range_and_color_order(judges, orange):
    import onnxruntime

    measure = judges["faceplugin"].measure
    white = np.ones((1, 3, 256, 256), np.float32)
    np.testing.assert_array_equal(measure(framed(*ARCFACE_CROP))["embedding"], measure(white)["embedding"])
    path = Path(__file__).parent / "faceplugin.onnx"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    color = (np.array([255, 128, 0], dtype=np.float32) - 127) / 128
    expected = session.run(None, {"input": np.tile(color[:, None, None], (1, 1, 112, 112))})[0]
    np.testing.assert_allclose(measure(orange)["embedding"], expected / np.linalg.norm(expected), atol=1e-6)


def test_faceres_is_the_network_of_its_file(tmp_path):
    """The same sums by SciPy, for a layer of each kind, from the tensors as they lie in the file."""
    from scipy.signal import correlate

    path = official.write("faceres", tmp_path / "faceres.bin")
    network, file = mobile_embedder.load(path), official.content("faceres")
    picture = np.random.default_rng(0).normal(size=(3, 6, 6)).astype(np.float32)

    def limited(maps):
        return np.clip(maps, 0, 6)

    with torch.inference_mode():
        kernel = file["conv1.kernel"].float().numpy()
        padded = np.pad(picture, ((0, 0), (0, 1), (0, 1)))
        sums = [correlate(padded, kernel[..., number].transpose(2, 0, 1), "valid")[0, ::2, ::2] for number in range(32)]
        stem = limited(np.stack(sums) + file["conv1.bias"].float().numpy()[:, None, None])
        given = torch.from_numpy(padded)[None]
        np.testing.assert_allclose(torch.relu(network.stem(given)).clamp(max=6)[0], stem, atol=1e-4)
        kernel, factor, bias = (file[f"conv_dw_1.{name}"].float().numpy() for name in ("kernel", "factor", "bias"))
        padded = np.pad(stem, ((0, 0), (1, 1), (1, 1)))
        sums = [correlate(padded[number], kernel[..., number, 0], "valid") * factor[number] for number in range(32)]
        depthwise = limited(np.stack(sums) + bias[:, None, None])
        kernel, bias = (file[f"conv_pw_1.{name}"].float().numpy() for name in ("kernel", "bias"))
        expected = limited(np.einsum("chw,cd->dhw", depthwise, kernel[0, 0]) + bias[:, None, None])
        np.testing.assert_allclose(network.blocks[0](torch.from_numpy(stem)[None])[0], expected, atol=1e-4)
        assert network(torch.zeros(1, 3, 64, 64)).shape == (1, 1024)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:-2], "has 6978812 bytes, and the published file 6978814"),
        (lambda content: content[:600_000] + b"\xff\x7f" + content[600_002:], "holds values that are not numbers"),
    ],
)
def test_a_damaged_file_of_faceres_is_refused(tmp_path, change, message):
    path = official.write("faceres", tmp_path / "faceres.bin")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CheckpointError, match=message):
        mobile_embedder.load(path)


@torch.inference_mode()
def test_inception_features_equal_those_of_pytorch_fid(judges, pictures):
    from pytorch_fid import inception

    file = official.content("inception_fid")
    with mock.patch.object(inception, "load_state_dict_from_url", return_value=file):
        theirs = inception.InceptionV3([3]).eval()
    levels = np.clip(np.rint((pictures + 1) * 127.5), 0, 255).astype(np.float32)
    expected = theirs(torch.from_numpy(levels / 255))[0][:, :, 0, 0].numpy()
    np.testing.assert_allclose(judges["inception_v3"].measure(pictures)["features"], expected, rtol=1e-4, atol=1e-5)


def lpips_by_its_equation(network, features, places, signals) -> torch.Tensor:
    """Zhang et al. 2018, Eq. 1: torchvision's features after each layer of ``places``, and the heads of the package."""
    import lpips

    file = Path(lpips.__file__).parent / f"weights/v0.1/{network}.pth"
    heads = torch.load(file, map_location="cpu", weights_only=True)
    shift = torch.tensor([-0.030, -0.088, -0.188]).view(3, 1, 1)
    scale = torch.tensor([0.458, 0.448, 0.450]).view(3, 1, 1)
    signals = [(signal - shift) / scale for signal in signals]
    expected, head = torch.zeros(2), 0
    for place, layer in enumerate(features):
        signals = [layer(signal) for signal in signals]
        if place in places:
            units = [signal / (signal.square().sum(1, keepdim=True).sqrt() + 1e-10) for signal in signals]
            apart = (units[0] - units[1]).square() * heads[f"lin{head}.model.1.weight"]
            expected, head = expected + apart.sum(1).mean((1, 2)), head + 1
    return expected


@torch.inference_mode()
def test_lpips_is_its_equation_on_the_features_of_alexnet(judges, pictures):
    from torchvision.models import alexnet

    network = alexnet(weights=None)
    network.load_state_dict(official.content("alexnet"))
    given = [torch.from_numpy(part) for part in (pictures, pictures[::-1].copy())]
    expected = lpips_by_its_equation("alex", network.features, (1, 4, 7, 9, 11), given)  # after each rectifier
    distances = judges["lpips"].measure(pictures, pictures[::-1].copy())["perceptual"]
    np.testing.assert_allclose(distances, expected, rtol=1e-4)
    assert (judges["lpips"].measure(pictures, pictures)["perceptual"] == 0).all()
    assert judges["lpips"].measure(pictures) == {}


@torch.inference_mode()
def test_lpips_by_vgg_is_its_equation_on_the_features_of_vgg16(pictures, tmp_path):
    from torchvision.models import vgg16

    torch.manual_seed(0)
    with torch.device("meta"):
        features = vgg16(weights=None).features
    features.to_empty(device="cpu")
    for weight in features.parameters():
        torch.nn.init.normal_(weight, std=weight[0].numel() ** -0.5)
    file = tmp_path / "vgg16.pth"
    torch.save({f"features.{name}": value for name, value in features.state_dict().items()}, file)
    given = [torch.from_numpy(part[..., ::4, ::4].copy()) for part in (pictures, pictures[::-1])]
    expected = lpips_by_its_equation("vgg", features, (3, 8, 15, 22, 29), given)  # after each stage's last rectifier
    torch.testing.assert_close(
        networks_lpips.load_network(file, "vgg")(*given).flatten(), expected, rtol=1e-4, atol=1e-6
    )


class Fixed(torch.nn.Module):
    """Returns a fixed answer and stores its input."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, images):
        self.images = images
        return self.answer


def test_landmarks_lie_at_the_peaks_of_the_heat_maps(judges, monkeypatch):
    """A box of 60 x 80 pixels of 256: the square is 200/195 (60 + 80) wide, its middle 0.12 * 80 above the box's."""
    maps = torch.zeros(1, 68, 64, 64)
    maps[0, :, 40, 10] = 1.0  # row 40, column 10, and to the right it falls less than to the left
    maps[0, :, 40, 11] = 0.5
    monkeypatch.setattr(judges["face_alignment"], "_detector", Fixed((torch.tensor([[[100.0, 80, 160, 160]]]),
                                                                      torch.tensor([[0.9]]))))  # fmt: skip
    monkeypatch.setattr(judges["face_alignment"], "_landmarks", Fixed(maps))
    measured = judges["face_alignment"].measure(np.zeros((1, 3, 128, 128), np.float32))
    side = 200 / 195 * 140
    left, top = 130 - side / 2, 120 - 0.12 * 80 - side / 2
    x, y = left + (10.5 + 0.25) / 64 * side, top + 40.5 / 64 * side  # no slope in y
    np.testing.assert_allclose(measured["landmarks"].reshape(68, 2), [[x / 2 - 0.5, y / 2 - 0.5]] * 68, rtol=1e-5)
    np.testing.assert_allclose(measured["box"], [[50, 40, 80, 80]])  # of 128 pixels
    assert measured["detected"].tolist() == [True]
    assert judges["face_alignment"]._landmarks.images.shape == (1, 3, 256, 256)


def test_face_below_the_threshold_is_not_detected(judges, pictures, monkeypatch):
    answer = (torch.zeros(2, 1, 4), torch.tensor([[0.5], [0.4]]))
    monkeypatch.setattr(judges["face_alignment"], "_detector", Fixed(answer))
    measured = judges["face_alignment"].measure(pictures)
    assert not measured["detected"].any()
    assert np.isnan(measured["box"]).all()
    assert np.isnan(measured["landmarks"]).all()
    np.testing.assert_allclose(measured["probability"], [0.5, 0.4])


def test_cut_out_square_is_black_outside_the_picture():
    columns = np.tile(np.arange(256, dtype=np.uint8), (256, 1))
    picture = np.stack([columns] * 3, axis=-1)
    square = detectors.cut_out(picture, np.array([-64.0, 0.0, 128.0]))  # twice as large; half of it outside
    assert (square[:, :126] == 0).all()
    # the middle of column 200 lies 200.5 / 2 - 64 = 36.25 from the left edge: a quarter left of the middle of pixel 36
    np.testing.assert_allclose(square[10, 200], 36, atol=0.5)
    np.testing.assert_allclose(square[10, 228], 50, atol=0.5)


def test_peaks_at_the_border_are_not_moved():
    from masquerade.networks.face_alignment import find_peaks

    maps = torch.zeros(1, 2, 64, 64)
    maps[0, 0, 0, 63] = 1.0
    maps[0, 1, 5, 5] = 1.0
    maps[0, 1, 6, 5], maps[0, 1, 5, 4] = 0.2, 0.1
    expected = [[[63.5 / 64, 0.5 / 64], [(5.5 - 0.25) / 64, (5.5 + 0.25) / 64]]]
    torch.testing.assert_close(find_peaks(maps), torch.tensor(expected))


@pytest.mark.parametrize(
    ("judge", "methods", "datasets", "seen"),
    [
        ("arcface", "falco", (), " by falco"),
        ("adaface", "falco", (), None),
        ("arcface", "blackout", (), None),
        # AlexNet is in the losses of iFADIT, RiDDLE and the inversion, and so in FALCO's, which needs the inversion.
        (
            "lpips",
            "ifadit riddle falco identitydp fit original",
            (),
            " (its network is in a loss) by falco, ifadit, riddle",
        ),
        # A landmark network of the losses of iFADIT learned landmarks that dlib found in photographs.
        ("dlib_face", "ifadit riddle", ("celeba_hq", "lfw"), " (teacher of a network in a loss) by ifadit"),
        ("dlib_face", "ifadit riddle", ("synthetic_hq",), None),
        ("mtcnn", "ifadit", ("celeba_hq", "lfw"), None),
    ],
)
def test_judge_whose_network_or_answers_a_training_used_is_named(judge, methods, datasets, seen):
    sentence = cautions.describe_judges([(judge, name, name) for name in methods.split()], "table", datasets)
    taking_part = f"Evaluators that took part in the training of a method: `{judge}`{seen}."
    expected = "No evaluator of this table" if seen is None else taking_part
    assert sentence.startswith(expected)


def test_losses_and_teachers_that_are_declared_exist():
    for room in ("methods", "backbones"):
        for name in discovery.list_names(room):
            assert set(discovery.load(room, name).losses) <= set(assets.registry()), name
    for name in discovery.list_names("backbones"):
        assert set(discovery.load("backbones", name).teachers) <= set(discovery.list_names("judges")), name
    for name in discovery.list_names("faces"):
        assert set(discovery.load("faces", name).labeled_by) <= set(discovery.list_names("judges")), name
