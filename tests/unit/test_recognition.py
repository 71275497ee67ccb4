"""Recognizers: the published layouts, the margin's formula, and verification against hand-worked numbers."""

import copy
import math
from itertools import chain

import numpy as np
import pytest
import torch

import kit
from masquerade.backbones.recognition.training import measure_verification, select_identities
from masquerade.core import discovery
from masquerade.core.errors import ParameterError
from masquerade.networks import inputs
from masquerade.networks.inception_resnet import InceptionResnetV1
from masquerade.networks.ir_se import IRSE, ArcMargin, Subsampling


def test_inception_resnet_equals_that_of_facenet_pytorch():
    """Keys and outputs equal those of facenet-pytorch, so that its published weights fit."""
    from masquerade.networks.torchvision_internals import ensure

    ensure()
    from facenet_pytorch import InceptionResnetV1 as Published

    torch.manual_seed(0)
    published, ours = Published().eval(), InceptionResnetV1().eval()
    weights = {key: value for key, value in published.state_dict().items() if not key.startswith("logits")}
    ours.load_state_dict(weights)
    pictures = torch.randn(1, 3, 160, 160)
    with torch.inference_mode():
        expected = published(pictures)
        assert torch.equal(torch.nn.functional.normalize(ours(pictures)), expected)


def test_ir_se_accepts_a_size_that_does_not_halve_evenly():
    assert IRSE(50, (4, 4, 4, 4, 4), (1, 1, 1, 1)).eval()(torch.zeros(1, 3, 50, 50)).shape == (1, 512)


def test_judge_of_too_few_pixels_is_refused_before_it_is_trained():
    from pydantic import ValidationError

    params = discovery.load("backbones", "recognizer_a").Params
    with torch.inference_mode():
        network = InceptionResnetV1(0.05, (1, 1, 1)).eval()
        assert network(torch.zeros(1, 3, 75, 75)).shape == (1, 512)
        with pytest.raises(RuntimeError):
            network(torch.zeros(1, 3, 74, 74))
    with pytest.raises(ValidationError, match="input_size is 74; the network needs at least 75 pixels"):
        params(width=0.05, repeats=(1, 1, 1), recognition={**SMALL, "input_size": 74})


def test_subsampling_is_the_published_pooling_of_one_pixel():
    x = torch.randn(2, 3, 7, 7)
    for stride in (1, 2):
        assert torch.equal(Subsampling(stride)(x), torch.nn.functional.max_pool2d(x, 1, stride))


def test_network_prepared_for_gradients_of_its_input_computes_the_same():
    torch.manual_seed(0)
    plain = IRSE(24, (4, 4, 8, 8, 8), (1, 2, 1, 1)).eval().requires_grad_(False)
    for layer in plain.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2.0)
        if isinstance(layer, torch.nn.PReLU):
            layer.weight.data.uniform_(-0.5, 1.5)
    prepared = inputs.prepare_gradients(copy.deepcopy(plain))
    assert not any(isinstance(layer, torch.nn.PReLU) for layer in prepared.modules())

    def observed(network):
        images = torch.linspace(-1, 1, 2 * 3 * 24 * 24).view(2, 3, 24, 24).requires_grad_(True)
        made = network(images)
        return made, torch.autograd.grad(made.square().sum(), images)[0]

    for one, other in zip(observed(plain), observed(prepared), strict=True):
        torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-4)


def test_margin_is_equation_3_of_arcface():
    head = ArcMargin(2, 2, scale=10.0, margin=0.5)
    head.weight.data = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    angle = 0.3
    logits = head(torch.tensor([[3 * math.cos(angle), 3 * math.sin(angle)]]), torch.tensor([0]))
    assert logits[0, 0].item() == pytest.approx(10 * math.cos(angle + 0.5), abs=1e-5)
    assert logits[0, 1].item() == pytest.approx(10 * math.sin(angle), abs=1e-5)


def test_margin_logit_falls_over_the_whole_range_of_angles():
    head = ArcMargin(2, 2, scale=1.0, margin=0.5)
    head.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    angles = torch.linspace(0.1, math.pi - 0.01, 60)
    embeddings = torch.stack([angles.cos(), angles.sin()], 1)
    logits = head(embeddings, torch.zeros(60, dtype=torch.long))[:, 0]
    assert (logits.diff() < 0).all()


def test_verification_agrees_with_counting_pair_by_pair():
    """Compares with a direct count over every threshold, for embeddings whose rates are neither 0 nor 1."""
    draw = np.random.default_rng(3)
    centers = np.repeat(draw.normal(size=(30, 8)), 3, 0)
    embeddings = centers + 0.6 * draw.normal(size=centers.shape)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    names = [f"p{number // 3}" for number in range(90)]
    pairs = [(i, j) for i in range(90) for j in range(i)]
    genuine = np.array([embeddings[i] @ embeddings[j] for i, j in pairs if names[i] == names[j]])
    impostor = np.array([embeddings[i] @ embeddings[j] for i, j in pairs if names[i] != names[j]])
    figures = measure_verification(embeddings, names)
    for far in (0.01, 0.001):
        allowed = [t for t in np.concatenate([genuine, impostor]) if (impostor >= t).mean() <= far]
        expected = max((genuine >= t).mean() for t in allowed)
        assert 0 < expected < 1
        assert figures[f"tar_at_far_{far}"] == pytest.approx(expected)
    wins = (genuine[:, None] > impostor[None, :]).mean()
    assert figures["auc"] == pytest.approx(wins)
    assert (figures["genuine_pairs"], figures["impostor_pairs"]) == (len(genuine), len(impostor))
    nearest = [max((j for j in range(90) if j != i), key=lambda j: embeddings[i] @ embeddings[j]) for i in range(90)]
    assert figures["rank1"] == np.mean([names[i] == names[j] for i, j in enumerate(nearest)])


def test_parts_of_the_identities_are_disjoint_and_complete():
    names = [f"person-{number}" for number in range(40)]
    parts = [select_identities(names, part) for part in ((0.0, 0.5), (0.5, 0.75), (0.75, 1.0))]
    assert [len(part) for part in parts] == [20, 10, 10]
    assert sorted(chain.from_iterable(parts)) == sorted(names)
    assert select_identities(names[::-1], (0.0, 0.5)) == parts[0]


@pytest.fixture
def archive(tmp_path):
    """Eight people of four images: a color each, with noise."""
    draw = np.random.default_rng(0)
    colors = draw.integers(40, 216, (8, 1, 1, 1, 3)) + draw.normal(0, 12, (8, 4, 32, 32, 3))
    rows = [{"identity": f"p{number // 4}"} for number in range(32)]
    return kit.archive(tmp_path / "faces.zip", colors.reshape(32, 32, 32, 3), train=24, rows=rows)


SMALL = {
    "input_size": 32, "identities": (0.0, 1.0), "steps": 6, "batch": 8, "learning_rate": 0.01,
    "small_scale": {"kernel_rate": 0.01},
    "weight_decay": 0.0, "scale": 16.0, "margin": 0.2, "floor_auc": 0.0, "floor_tar": 0.0,
}  # fmt: skip


def identity(**changes):
    cls = discovery.load("backbones", "identity")
    return cls(cls.Params(published="", widths=kit.WIDTHS, units=kit.UNITS, recognition={**SMALL, **changes}))


def test_training_curves_and_quality_have_the_figures_of_verification(archive, tmp_path):
    curve = kit.Curve()
    identity().train(kit.job(tmp_path, log=curve))
    assert {"loss", "accuracy"} <= set(curve[0])
    assert {"auc", "tar_at_far_0.01", "rank1"} <= set(identity().quality(kit.job(tmp_path)))


def test_two_judges_of_one_architecture_do_not_start_from_the_same_weights(archive, tmp_path, monkeypatch):
    """Settings, images and seed are equal; only the name of the backbone differs."""
    from masquerade.training import loop

    starts = {}

    def fit(task, steps, unfinished, *_, **__):
        starts[unfinished.state.stem] = {
            key: value.clone() for key, value in task.modules["recognizer"].state_dict().items()
        }

    monkeypatch.setattr(loop, "fit", fit)
    for name in ("recognizer_a", "recognizer_b"):
        cls = discovery.load("backbones", name)
        params = cls.Params(published="", width=0.05, repeats=(1, 1, 1), recognition={**SMALL, "input_size": 75})
        cls(params).train(kit.job(tmp_path, name))
    key = "network.conv2d_1a.conv.weight"
    assert not torch.equal(starts["recognizer_a"][key], starts["recognizer_b"][key])


def test_too_few_identities_are_refused(archive, tmp_path):
    with pytest.raises(ParameterError, match="leaves 1 identities to train on"):
        identity(identities=(0.0, 0.1)).train(kit.job(tmp_path))
