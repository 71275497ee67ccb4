"""Networks with official weight files: the published tensors, strict loading of a written file, a forward pass."""

import math
import pickle
import zipfile
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import kit
import official
from masquerade import assets
from masquerade.assets import lock
from masquerade.core import discovery, rehearsal
from masquerade.core.errors import CheckpointError
from masquerade.networks.bisenet import BiSeNet
from masquerade.networks.face_alignment import FAN, S3FD
from masquerade.networks.inception_resnet import InceptionResnetV1
from masquerade.networks.ir_se import IRSE, AdaFaceIR
from masquerade.networks.latent_encoders import Encoder4Editing, GradualStyleEncoder
from masquerade.networks.stylegan2 import CHANNELS, Generator
from masquerade.networks.stylegan2_layers import NOISE_SEED, draw_noise_maps
from masquerade.params import loading
from masquerade.params.parameters import Parameters
from masquerade.training import weight_files


def clip_network(patch: int) -> nn.Module:
    from masquerade.backbones.semantics import network as _semantics

    knobs = loading.load(Path(__file__).parents[2], "paper").backbones["semantics"]
    return _semantics.build(_semantics.describe_architecture(knobs.model_copy(update={"patch": patch})))


def fid_network() -> nn.Module:
    from masquerade.judges.features import network_of_fid

    return network_of_fid()


def without_classes() -> official.Shapes:
    return {name: shape for name, shape in official.facenet(8631).items() if not name.startswith("logits.")}


# name -> our network; the names and shapes of the published code, which official.yaml names; how many numbers are
# learned. Facenet and FID come from the packages of the lock; FAN and S3FD were compared with face-alignment 1.5.0
# (names, shapes and forward pass).
ARCHITECTURES = {
    "IR-SE-50": (IRSE, partial(official.shapes, "ir_se50"), 43_797_696),  # "43.8 M"
    "Inception-ResNet-v1": (InceptionResnetV1, without_classes, 23_482_624),
    "AdaFace IR-50": (AdaFaceIR, partial(official.shapes, "adaface_ir50"), 43_585_600),
    **{
        f"StyleGAN2-{size}": (partial(Generator, size, CHANNELS[:levels]), partial(official.stylegan2, size), learned)
        for size, levels, learned in (
            (256, 7, 30_034_338),
            (512, 8, 30_276_583),
            (1024, 9, 30_370_060),
        )
    },
    "e4e-1024": (partial(Encoder4Editing, 18), partial(official.shapes, "encoder"), 267_136_704),
    "pSp-1024": (partial(GradualStyleEncoder, 18), partial(official.shapes, "encoder"), 267_136_704),
    "FaRL and CLIP ViT-B/16": (partial(clip_network, 16), partial(official.shapes, "clip_vit_b16"), 149_620_737),
    "CLIP ViT-B/32": (partial(clip_network, 32), partial(official.shapes, "clip_vit_b32"), 151_277_313),
    "BiSeNet": (BiSeNet, partial(official.shapes, "bisenet"), 13_300_416),
    "FAN-4": (FAN, partial(official.shapes, "fan4"), 23_820_176),
    "S3FD": (S3FD, partial(official.shapes, "s3fd"), 22_459_110),
    "InceptionV3 of FID": (fid_network, official.inception_fid, 23_850_960),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture_has_the_published_tensors(name):
    build, layout, learned = ARCHITECTURES[name]
    with torch.device("meta"):
        network = build()
    ours = official.shapes_of(network)
    ours.pop("latent_avg", None)  # of a generator: beside g_ema in the published file
    assert ours == layout()
    assert sum(weight.numel() for weight in network.parameters()) == learned


@pytest.mark.parametrize("role", ["facenet_vggface2", "bisenet", "s3fd", "inception_fid", "alexnet", "vgg16"])
def test_published_file_is_as_large_as_its_tensors(role):
    """The registered size of a file is that of its tensors, plus names and headers."""
    held = sum(value.nbytes for value in official.content(role).values())
    assert held < assets.registry()[role].file.size < 1.002 * held


def test_missing_batch_counters_of_old_pytorch_are_accepted(tmp_path):
    given = {name: value for name, value in official.content("fan4").items() if not name.endswith(weight_files.COUNTER)}
    network = weight_files.load(FAN(), given, tmp_path / "2DFAN4.pth.tar")
    assert network.bn1.num_batches_tracked == 0
    assert torch.equal(network.l3.bias, given["l3.bias"])


# --- files -------------------------------------------------------------------------------------------------------

BACKBONES = {
    "ir_se50": ("identity", {}),
    "stylegan2_256": ("generator", {}),
    "stylegan2_1024": ("generator", {"channels": list(CHANNELS)}),
    "stylegan2_1024_genforce": ("generator", {"channels": list(CHANNELS)}),
    "psp_1024": ("inversion", {"kind": "psp"}),
    "e4e_1024": ("inversion", {}),
    "farl_ep64": ("semantics", {}),
    "clip_vit_b32": ("semantics", {"patch": 32}),
    "bisenet": ("parsing", {}),
}
"""Role -> the backbone that adopts it, and its changes to the knobs of paper scale."""
GENERATORS = {"psp_1024": "stylegan2_1024", "e4e_1024": "stylegan2_1024"}
JUDGES = {
    "facenet_casia": "facenet_casia", "facenet_vggface2": "facenet_vggface2", "adaface_ir50": "adaface",
    "inception_fid": "inception_v3", "alexnet": "lpips", "s3fd": "face_alignment", "fan4": "face_alignment",
}  # fmt: skip
"""Role -> the judge that opens it."""


@cache
def paper(root: Path) -> Parameters:
    return loading.load(root, "paper")


class Lab:
    """A folder of weight files, and functions that place and open them."""

    def __init__(self, folder: Path, root: Path):
        self.folder, self.knobs = folder, paper(root).backbones

    def place(self, role: str, content: dict) -> Path:
        path = assets.path(role)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, path)
        return self.register(role, path)

    def register(self, role: str, path: Path) -> Path:
        lock.record(role, path.name, assets.digest(path), path.stat().st_size, "placed", rehearsal=True)
        return path

    def open(self, role: str) -> object:
        """The judge of a role; or the frozen network of the backbone that adopts it."""
        if role in JUDGES:
            cls = discovery.load("judges", JUDGES[role])
            return cls(cls.Params(), {})
        name, changes = BACKBONES[role]
        cls = discovery.load("backbones", name)
        job = self.job(role)
        cls(cls.Params(**self.knobs[name].model_dump() | changes)).convert_official(assets.path(role), job)
        return cls.load(job.checkpoint)

    def faces(self) -> Path:
        """An archive of one image of 256 pixels: the output size of adopted generators."""
        if not Path("faces.zip").is_file():
            kit.archive(Path("faces.zip"), np.zeros((1, 256, 256, 3)), size=256)
        return Path("faces.zip")

    def job(self, role: str):
        backbones = {"generator": self.folder / f"{GENERATORS[role]}.safetensors"} if role in GENERATORS else {}
        return kit.job(self.folder, role, backbones, faces=self.faces(), log=print, picture=print)


@pytest.fixture
def lab(tmp_path, monkeypatch, root) -> Lab:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(rehearsal.VARIABLE, "1")  # the placed files only imitate the published ones
    for name in ("kaiming_uniform_", "kaiming_normal_", "uniform_", "normal_"):  # seconds, and the file replaces them
        monkeypatch.setattr(nn.init, name, lambda tensor, *_, **__: tensor)
    return Lab(tmp_path, root)


def state_of(content: dict) -> dict:
    """The tensors of a file."""
    return next((content[key] for key in ("state_dict", "g_ema", "generator_smooth") if key in content), content)


def light(role: str) -> dict:
    """The content of a file; each tensor repeats one number without a copy, so that the file is small."""

    def repeated(value):
        if isinstance(value, dict):
            return {name: repeated(item) for name, item in value.items()}
        if not torch.is_tensor(value) or value.numel() <= 16:
            return value
        return value.flatten()[:1].clone().expand(value.shape)

    return repeated(official.content(role))


class Code:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return (open, ("ran", "w"))


DAMAGED = {
    "ir_se50": "body.3.shortcut_layer.0.weight",
    "facenet_casia": "repeat_2.4.conv2d.bias",
    "facenet_vggface2": "last_linear.weight",
    "adaface_ir50": "model.body.23.res_layer.3.weight",
    "stylegan2_256": "to_rgbs.2.conv.modulation.weight",
    "stylegan2_1024": "convs.15.activate.bias",
    "stylegan2_1024_genforce": "synthesis.layer3.bias",
    "psp_1024": "encoder.latlayer1.bias",
    "e4e_1024": "encoder.styles.17.linear.bias",
    "farl_ep64": "visual.transformer.resblocks.11.mlp.c_fc.bias",
    "clip_vit_b32": "visual.positional_embedding",
    "bisenet": "ffm.conv2.weight",
    "fan4": "m3.b2_plus_1.bn3.weight",
    "s3fd": "conv3_3_norm.weight",
    "inception_fid": "Mixed_6d.branch7x7_2.bn.weight",
    "alexnet": "features.8.bias",
}
"""Role -> one of its tensors."""
LARGE = {"psp_1024", "e4e_1024", "stylegan2_1024", "farl_ep64", "clip_vit_b32", "facenet_vggface2"}
OURS = {"synthesis.layer3.bias": "convs.2.activate.bias"}
"""GenForce's name -> the name in the error text."""


@pytest.mark.parametrize("role", [pytest.param(role, marks=[pytest.mark.slow] * (role in LARGE)) for role in DAMAGED])
def test_error_for_a_wrong_file_names_file_and_tensor(role, lab):
    content, key = light(role), DAMAGED[role]
    name = OURS.get(key, key.removeprefix("encoder."))
    for other in discovery.load("judges", JUDGES[role]).assets if role in JUDGES else ():
        lab.place(other, light(other))
    if role in GENERATORS:
        lab.place(GENERATORS[role], light(GENERATORS[role]))
        lab.open(GENERATORS[role])
    whole = dict(state_of(content))
    given = whole[key]
    cases = {
        f"{name} is missing": {other: value for other, value in whole.items() if other != key},
        "more.weight'? is left over": whole | {"more.weight": torch.ones(2)},
        rf"{name} is \({', '.join(map(str, given.shape))}, 2,?\), the network has": whole
        | {key: given[..., None].expand(*given.shape, 2)},
        f"{name} holds values that are not numbers": whole | {key: torch.tensor(math.nan).expand(given.shape)},
        r"cannot be read|code from a file is never run": whole | {key: Code()},
    }
    for message, state in cases.items():
        state_of(content).clear()
        state_of(content).update(state)
        path = lab.place(role, content)
        with pytest.raises(CheckpointError, match=message) as raised:
            lab.open(role)
        assert path.name in str(raised.value)
    assert not Path("ran").exists()
    assert not (lab.folder / f"{role}.safetensors").exists()


def test_class_names_of_lightning_are_skipped_without_running_code(tmp_path, monkeypatch):
    """Old checkpoints have the class of a callback as a key, and its package is not installed."""
    import sys
    import types

    module = types.ModuleType("pytorch_lightning.callbacks.model_checkpoint")
    module.ModelCheckpoint = type("ModelCheckpoint", (), {"__module__": module.__name__})
    with monkeypatch.context() as patch:
        for name in ("pytorch_lightning", "pytorch_lightning.callbacks"):
            patch.setitem(sys.modules, name, types.ModuleType(name))
        patch.setitem(sys.modules, module.__name__, module)
        callbacks = {module.ModelCheckpoint: {"best_model_path": "epoch=24.ckpt"}}
        torch.save({"state_dict": {"a": torch.ones(1)}, "callbacks": callbacks}, tmp_path / "lightning.ckpt")
    content = weight_files.read(tmp_path / "lightning.ckpt")
    assert list(content["callbacks"]) == [weight_files.Inert]
    assert content["state_dict"]["a"] == 1


class Layer(nn.Module):
    """A layer with a tensor that is neither parameter nor buffer, like CLIP's attention mask."""

    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(4), nn.MultiheadAttention(4, 2)
        self.mask = torch.zeros(3, 3)
        self.register_buffer("count", torch.tensor(7))

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False, attn_mask=self.mask)[0] + self.norm(x) * self.count


def test_weights_of_a_program_equal_its_state_dict(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(Layer(), nn.Sequential(Layer(), nn.Linear(4, 4)))
    network[1][1].weight = nn.Parameter(torch.randn(4, 8).half()[:, ::2])  # not contiguous, in half precision
    traced = torch.jit.trace(network.float(), torch.randn(3, 1, 4))
    torch.jit.save(traced, tmp_path / "program.pt")
    assert weight_files.is_program(tmp_path / "program.pt")
    weights = weight_files.read(tmp_path / "program.pt")
    expected = torch.jit.load(tmp_path / "program.pt").state_dict()
    assert weights.keys() == expected.keys()
    assert "0.mask" not in weights
    assert "1.0.count" in weights
    assert all(
        torch.equal(value, expected[name]) and value.dtype == expected[name].dtype for name, value in weights.items()
    )


def test_code_of_a_program_is_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.jit.save(official.program({"a.weight": torch.ones(2)}), "program.pt")
    with zipfile.ZipFile("program.pt") as whole, zipfile.ZipFile("evil.pt", "w") as evil:
        for name in whole.namelist():
            evil.writestr(name, pickle.dumps(Code()) if name.endswith("/data.pkl") else whole.read(name))
    with pytest.raises(CheckpointError, match=r"evil.pt contains a call of .*open"):
        weight_files.read(tmp_path / "evil.pt")
    assert not Path("ran").exists()
    content = Path("program.pt").read_bytes()
    Path("cut.pt").write_bytes(content[: len(content) // 2])
    assert not weight_files.is_program(Path("cut.pt"))
    with pytest.raises(CheckpointError, match=r"cut.pt cannot be read"):
        weight_files.read(Path("cut.pt"))


def test_truncated_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere.pth is missing"):
        weight_files.read(tmp_path / "nowhere.pth")
    path = tmp_path / "cut.pth"
    torch.save({"a": torch.ones(1000)}, path)
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(CheckpointError, match=r"cut.pth cannot be read"):
        weight_files.read(path)
    (tmp_path / "page.pth").write_text("<!DOCTYPE html>")
    with pytest.raises(CheckpointError, match=r"page.pth cannot be read"):
        weight_files.read(tmp_path / "page.pth")
    for content in ({}, {"a": 1}, [torch.ones(1)], torch.ones(1)):
        with pytest.raises(CheckpointError, match=r"cut.pth is not a file of weights"):
            weight_files.select_tensors(content, path)


# --- forward ------------------------------------------------------------------------------------------------------


def opened(lab: Lab, role: str):
    lab.register(role, official.write(role, assets.path(role)))
    return lab.open(role)


PICTURES = torch.rand(1, 3, 256, 256, generator=torch.Generator().manual_seed(0)) * 2 - 1


@torch.inference_mode()
def test_identity_is_adopted_with_falcos_crop(lab):
    recognizer = opened(lab, "ir_se50")
    face = PICTURES[:, :, 35:223, 32:220]
    expected = recognizer.network(nn.functional.adaptive_avg_pool2d(face, 112))
    torch.testing.assert_close(recognizer(PICTURES), nn.functional.normalize(expected))
    large = PICTURES.repeat_interleave(4, 2).repeat_interleave(4, 3)  # its averages over 4 x 4 are the same image
    torch.testing.assert_close(recognizer(large), recognizer(PICTURES))
    changed = PICTURES.clone()
    changed[:, :, :35], changed[:, :, 223:], changed[..., :32], changed[..., 220:] = 1, 1, 1, 1
    torch.testing.assert_close(recognizer(changed), recognizer(PICTURES))
    file = official.content("ir_se50")
    assert all(torch.equal(value, file[name]) for name, value in recognizer.network.state_dict().items())


@torch.inference_mode()
def test_generator_of_256_draws_from_its_file(lab):
    generator = opened(lab, "stylegan2_256")
    picture = generator(torch.zeros(1, 512).fill_(0.5), psi=0.7)
    assert picture.shape == (1, 3, 256, 256)
    assert torch.isfinite(picture).all()
    assert picture.std() > 0
    state = official.content("stylegan2_256")
    assert torch.equal(generator.convs[11].conv.weight, state["g_ema"]["convs.11.conv.weight"])
    assert "latent_avg" not in state, "as in the published file, so the mean of W is measured"
    w = generator.map(torch.randn(2000, 512, generator=torch.Generator().manual_seed(1))).mean(0)
    assert (w - generator.latent_avg).norm() < 0.2 * w.norm()
    assert "noises.noise_12" not in state["g_ema"], "as in the published file, so the noise is drawn from a seed"
    assert torch.equal(generator.noises.noise_12, draw_noise_maps(13, NOISE_SEED)[12])


@torch.inference_mode()
def test_parser_labels_a_picture(lab):
    parser = opened(lab, "bisenet")
    logits = parser.network(torch.zeros(1, 3, 512, 512))
    assert [tuple(part.shape) for part in logits] == [(1, 19, 512, 512)] * 3
    assert all(torch.isfinite(part).all() for part in logits)


@pytest.mark.slow
@pytest.mark.parametrize(("role", "tokens"), [("farl_ep64", 197), ("clip_vit_b32", 50)])
@torch.inference_mode()
def test_text_image_network_encodes_pictures_and_text(role, tokens, lab):
    model = opened(lab, role)
    features = model.tokens(PICTURES)
    assert features.shape[:2] == (1, tokens)
    assert torch.isfinite(features).all()
    assert torch.isfinite(model.text(["a photo of a face"])).all()


@pytest.mark.slow
@torch.inference_mode()
def test_generators_of_1024_are_equal_in_both_layouts(lab):
    generator, genforce = opened(lab, "stylegan2_1024"), opened(lab, "stylegan2_1024_genforce")
    for name, value in generator.state_dict().items():
        torch.testing.assert_close(genforce.state_dict()[name], value, msg=name)
    picture = generator.synthesize(torch.ones(1, 18, 512))
    assert generator.drawn == 1024
    assert torch.isfinite(picture).all()
    assert picture.shape == (1, 3, 256, 256), "of the size of the faces"


@pytest.mark.slow
@pytest.mark.parametrize("role", ["psp_1024", "e4e_1024"])
@torch.inference_mode()
def test_encoder_is_adopted_beside_its_generator(role, lab):
    opened(lab, GENERATORS[role])
    codes = opened(lab, role)(PICTURES)
    assert codes.shape == (1, 18, 512)
    assert torch.isfinite(codes).all()
