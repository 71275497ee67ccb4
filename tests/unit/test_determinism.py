"""Computing on a GPU gives the same bytes each time: what is set, what is replaced, and what an error says."""

import ast
import inspect
import os
import re
from argparse import Namespace
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

import accelerator
from accelerator import pretended
from masquerade.backbones.generator import HeadSettings, random_face, sharpening
from masquerade.backbones.inversion.inverter import load_loss_network
from masquerade.backbones.recognition.training import CROP, Recognizer
from masquerade.cli import main
from masquerade.core import seeding
from masquerade.core.errors import ParameterError
from masquerade.lineage import provenance
from masquerade.networks import deterministic, inputs, lpips
from masquerade.networks.discriminators import Heads, Projection
from masquerade.networks.imagenet_recognizer import ImageNetRecognizer
from masquerade.networks.ir_se import IRSE
from masquerade.networks.latent_encoders import GradualStyleEncoder, MobileEncoder
from masquerade.networks.mobile_stylegan import MobileStyleGAN
from masquerade.networks.w_space import LinearCodes
from masquerade.params import loading
from masquerade.params.protocols import AttributeSettings
from masquerade.params.slices import Slice
from masquerade.pipeline import attributes, program
from masquerade.pipeline.graph import Graph
from masquerade.pipeline.photographs import choosing
from masquerade.training import cards, precision

SMALL, LARGE, SQUARE = (7, 10), (24, 19), (12, 12)
ORIGINALS = {
    "bilinear": lambda x, size: functional.interpolate(x, size=size, mode="bilinear", antialias=True),
    "bicubic": lambda x, size: functional.interpolate(x, size=size, mode="bicubic", antialias=True),
    "averaged": functional.adaptive_avg_pool2d,
    "area": lambda x, size: functional.interpolate(x, size=size, mode="area"),
    "reflected": lambda x, size: functional.pad(x, (3, 3, 3, 3), mode="reflect"),
}
OURS = {
    "bilinear": deterministic.resize,
    "bicubic": lambda x, size: deterministic.resize(x, size, "bicubic"),
    "averaged": deterministic.average,
    "area": deterministic.average,
    "reflected": lambda x, size: deterministic.reflect(x, 3),
}
FORBIDDEN = {
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "AdaptiveMaxPool2d", "AvgPool3d", "avg_pool3d",
    "MaxUnpool2d", "max_unpool2d", "ReflectionPad2d", "CTCLoss", "EmbeddingBag", "put_", "histc", "kthvalue",
}  # fmt: skip
"""Functions and classes of PyTorch that only networks/deterministic.py may use, and modes of others."""
MODES = {"area", "bicubic", "reflect"}


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(deterministic, "is_replaced", lambda images: True)


@pytest.mark.parametrize("size", [SMALL, LARGE, SQUARE])
@pytest.mark.parametrize("name", OURS)
def test_matrices_give_the_pictures_and_the_gradients_of_the_original(as_on_a_gpu, name, size):
    draw = torch.Generator().manual_seed(0)
    images = [(torch.rand(2, 3, 16, 15, generator=draw) * 2 - 1).requires_grad_(True)]
    images.append(images[0].detach().clone().requires_grad_(True))
    made, expected = OURS[name](images[0], size), ORIGINALS[name](images[1], size)
    torch.testing.assert_close(made, expected, rtol=0, atol=1e-6)
    weights = torch.randn(made.shape, generator=draw)
    weights /= weights.abs().max()
    (made * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(images[0].grad, images[1].grad, rtol=0, atol=1e-6)
    assert accelerator.list_nodes([expected]) & accelerator.NONDETERMINISTIC
    assert not accelerator.list_nodes([made]) & accelerator.NONDETERMINISTIC


@pytest.mark.parametrize("name", OURS)
def test_processor_computes_the_bytes_of_the_original(name):
    images = torch.rand(2, 3, 16, 15, generator=torch.Generator().manual_seed(0))
    assert torch.equal(OURS[name](images, SMALL), ORIGINALS[name](images, SMALL))


def test_reflecting_convolution_is_that_of_pytorch(as_on_a_gpu):
    torch.manual_seed(0)
    ours = deterministic.ReflectedConv2d(3, 4, 5, stride=2)
    original = torch.nn.Conv2d(3, 4, 5, 2, padding=2, padding_mode="reflect")
    original.load_state_dict(ours.state_dict())
    images = torch.rand(2, 3, 16, 15)
    torch.testing.assert_close(ours(images), original(images), rtol=0, atol=1e-6)


def test_matrices_are_exact_within_bfloat16(as_on_a_gpu):
    images = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        made = deterministic.resize(images, SMALL)
    torch.testing.assert_close(made, ORIGINALS["bilinear"](images, SMALL), rtol=0, atol=1e-6)
    assert deterministic.average(images.bfloat16(), SMALL).dtype == torch.bfloat16


def test_gpu_is_prepared_before_a_network_lies_on_it(monkeypatch):
    monkeypatch.setenv(seeding.DETERMINISM_VARIABLE, "1")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with pretended(monkeypatch):
        inputs.place(torch.nn.Linear(2, 2))
        assert torch.get_deterministic_debug_mode() == 2, "raises an error, and does not warn"
        assert (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark) == (True, False)
        assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == (False, False)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
        assert deterministic.is_replaced(torch.zeros(1).to(inputs.device()))
        seeding.declare_determinism(False)
        inputs.device()
        assert torch.get_deterministic_debug_mode() == 0
        assert torch.backends.cudnn.allow_tf32
        assert not deterministic.is_replaced(torch.zeros(1).to(inputs.device()))


def test_processes_are_deterministic_by_default_and_jobs_inherit_the_knob(root, tmp_path, monkeypatch):
    assert loading.load(root, "tiny").compute.deterministic
    monkeypatch.setenv(seeding.DETERMINISM_VARIABLE, "0")
    Graph(root, "tiny")
    assert os.environ[seeding.DETERMINISM_VARIABLE] == "1"


def test_frozen_networks_compute_in_32_bits_on_a_gpu(monkeypatch):
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    monkeypatch.setattr(precision, "bfloat16_pays", lambda device: True)
    assert isinstance(precision.use_bfloat16(torch.device("cuda"), True, frozen=True), nullcontext)
    assert isinstance(precision.use_bfloat16(torch.device("cpu"), True, frozen=True), torch.autocast)


@pytest.mark.parametrize(("knob", "gpu"), [(True, "H100"), (False, "H100, not deterministic")])
def test_circumstances_say_if_a_gpu_was_not_deterministic(monkeypatch, knob, gpu):
    monkeypatch.setenv(seeding.DETERMINISM_VARIABLE, "1")
    with pretended(monkeypatch):
        seeding.declare_determinism(knob)
        inputs.device()
        for name, answer in (("is_initialized", True), ("device_count", 1), ("get_device_name", "H100")):
            monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
        assert provenance.describe_machine()["gpu"] == gpu


def test_photographs_declare_the_knob_of_their_scale(root, tiny, monkeypatch):
    monkeypatch.setenv(seeding.DETERMINISM_VARIABLE, "1")
    compute = tiny.compute.model_copy(update={"deterministic": False})
    with pytest.raises(ParameterError, match="falco"):
        choosing.build_method(root, tiny.model_copy(update={"compute": compute}), "falco", "unknown", strict=True)
    assert os.environ[seeding.DETERMINISM_VARIABLE] == "0"


def test_networks_reach_a_gpu_through_one_function(root):
    """It prepares it. `doctor` only names the GPU; processes of a training exchange what is already there."""
    chosen = re.compile(r"cuda\.is_available\(\)|\.cuda\(|device\(\"cuda\"|to\(\"cuda")
    files = {str(file.relative_to(root / "src")): file.read_text() for file in root.glob("src/**/*.py")}
    found = {name for name, text in files.items() if chosen.search(text)}
    assert found == {
        f"masquerade/{name}" for name in ("networks/inputs.py", "cli/doctor.py", "training/distributed.py")
    }


def test_operation_without_a_deterministic_version_is_named_with_its_caller_and_the_knob(monkeypatch):
    def refused(images, size):
        torch.set_deterministic_debug_mode("error")
        return images.put_(torch.tensor([0]), torch.ones(1))  # PyTorch refuses it on a processor, too

    monkeypatch.setattr(deterministic, "_bilinear", refused)
    try:
        with pytest.raises(seeding.NondeterministicError) as error, seeding.explain_nondeterminism():
            inputs.to_tensor(torch.zeros(1, 3, 8, 8).numpy(), 4, (0.5,) * 3, (0.5,) * 3)
    finally:
        torch.set_deterministic_debug_mode("default")
    text = str(error.value)
    assert text.startswith("put_ has no deterministic version on a GPU")
    assert "called by masquerade.networks.deterministic, from masquerade.networks.inputs." in text
    assert "compute.deterministic" in text
    assert "\n" not in text


def refuse(*_: object) -> None:
    """Meet such an operation."""
    torch.set_deterministic_debug_mode("error")
    try:
        torch.zeros(1).put_(torch.tensor([0]), torch.ones(1))
    finally:
        torch.set_deterministic_debug_mode("default")


def test_job_ends_with_that_paragraph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = Namespace(params=Slice({}), outputs=[], inputs=[], code=None, threads=1)
    with pytest.raises(SystemExit, match=r"^train: put_ has no deterministic version"):
        program.main("train", given, refuse)


def test_command_ends_with_that_paragraph(monkeypatch, capsys):
    monkeypatch.setattr(cards, "list_names", refuse)
    with pytest.raises(SystemExit) as end:
        main.main(["weights", "check"])
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith("put_ has no deterministic version")


def test_other_errors_stay_as_they_are():
    with pytest.raises(RuntimeError, match="out of memory"), seeding.explain_nondeterminism():
        raise RuntimeError("CUDA out of memory")


def test_list_of_nodes_is_that_of_the_installed_pytorch():
    assert version("torch").partition("+")[0] == accelerator.VERSION, "compare accelerator.REFUSED"
    assert accelerator.documented() == accelerator.REFUSED.keys()
    replaced = {functional.interpolate: "_upsample_linear_vec", functional.pad: "_replication_pad"}
    for function, name in replaced.items():
        assert name in inspect.getsource(function), "PyTorch no longer replaces it in a deterministic process"


def test_nodes_of_the_gradient_of_a_gradient_are_seen():
    images = torch.rand(1, 1, 8, 8, requires_grad=True)
    with accelerator.differentiated() as nodes:
        (slope,) = torch.autograd.grad(images.square().sum(), images, create_graph=True)
        functional.adaptive_avg_pool2d(slope, 3).sum().backward()
    assert {"PowBackward0", "AdaptiveAvgPool2DBackward0"} <= nodes


SHAPE = [8, 8, 8, 8, 8], [1, 1, 1, 1]
LARGER = {
    "an encoder of pSp": lambda images: GradualStyleEncoder(10, 64, 8, *SHAPE)(images),
    "a published recognizer": lambda images: Recognizer(IRSE(112, *SHAPE), 112, CROP)(images),
    "a recognizer without a crop": lambda images: Recognizer(IRSE(32, *SHAPE), 32)(images),
    "linear codes": lambda images: LinearCodes(16, 8)(images),
    "an encoder of photographs": lambda images: MobileEncoder(14, 64, 512)(images),
    "a generator of photographs": lambda images: MobileStyleGAN().synthesize(images.mean().expand(1, 14, 512)),
    "a recognizer of photographs": lambda images: ImageNetRecognizer("efficientnet_lite0", 64)(images),
    "a perceptual distance": lambda images: torch.cat(
        [units.flatten() for units in lpips.compute_units(load_loss_network(images.device), images)]
    ),
    "a discriminator of features": lambda images: torch.cat(
        Heads()(Projection(32)(sharpening.move_images(images, np.random.default_rng(0)))), dim=1
    ),
}  # fmt: skip
"""Networks that are differentiated at larger scales, which the trainings of the contract tests do not use."""


@pytest.mark.parametrize("name", LARGER)
def test_networks_of_larger_scales_are_differentiated_alike_each_time(as_on_a_gpu, name):
    images = torch.rand(2, 3, 64, 64, requires_grad=True)
    nodes = accelerator.list_nodes([LARGER[name](images)])
    assert "AccumulateGrad" in {node.rpartition("::")[2] for node in nodes}
    refused = nodes & accelerator.NONDETERMINISTIC
    assert not refused


def learned_head(monkeypatch):
    """An update of the head of the generator of photographs, on random features."""
    draw = torch.Generator().manual_seed(0)
    numbers = [torch.randn(64, *shape, generator=draw) for shape in ((512,), (128, 4), (3, 4))]
    monkeypatch.setattr(random_face, "draw_examples", lambda *_: random_face.Examples(*numbers))
    random_face.train_head(MobileStyleGAN(), HeadSettings(published="", pictures=64, steps=1), 0)


def learned_attributes(monkeypatch):
    """An epoch of the classifier of FALCO's attribute protocol; the last block of its network is trained."""
    params = loading.load(Path(__file__).parents[2], "tiny").attributes.model_dump(exclude={"cells"})
    learner = attributes.Classifier(
        "mobilenet_v2", ["a", "b"], AttributeSettings(**params | {"small_scale": {"frozen_blocks": 18}}), 0
    )
    features = learner.features(np.zeros((4, 32, 32, 3), np.uint8))
    learner.fit(features, features, np.eye(4, 2, dtype=bool))


@pytest.mark.parametrize("learn", [learned_head, learned_attributes])
def test_trainings_outside_of_the_loop_are_differentiated_alike_each_time(as_on_a_gpu, monkeypatch, learn):
    with accelerator.differentiated() as nodes:
        learn(monkeypatch)
    assert "AccumulateGrad" in {node.rpartition("::")[2] for node in nodes}
    refused = nodes & accelerator.NONDETERMINISTIC
    assert not refused


def test_no_module_uses_the_originals(root):
    files = [file for file in (root / "src/masquerade").rglob("*.py") if file.name != "deterministic.py"]
    uses = [
        f"{file.relative_to(root)}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if original(node)
    ]
    assert not uses, "take networks/deterministic.py, or an operation that a GPU computes deterministically"


def original(node: ast.AST) -> bool:
    """Whether a call is of FORBIDDEN, of an adaptive average of more than one number, or with a mode of these."""
    if not isinstance(node, ast.Call) or (called := ast.unparse(node.func)).startswith("np."):
        return False
    options = {word.arg: getattr(word.value, "value", "") for word in node.keywords}
    name = called.rpartition(".")[2]
    several = name == "AdaptiveAvgPool2d" and ast.unparse(node.args[0]) != "1"
    modes = {options.get("mode"), options.get("padding_mode")}
    return name in FORBIDDEN or several or "antialias" in options or not modes.isdisjoint(MODES)
