"""The generator as a backbone: its losses, its training, its resumption, and the published files that it uses."""

import argparse
import hashlib
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import kit
from masquerade.backbones.generator import SharpeningSettings, reconstruction, sharpening, training
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive
from masquerade.networks.w_space import LinearCodes
from masquerade.training import distributed

CLS = discovery.load("backbones", "generator")
KNOBS = kit.GENERATOR
FIRST, SECOND = KNOBS["small_scale"]["reconstruction"], KNOBS["small_scale"]["sharpening"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve images of a bright disc on a dark ground, with masks, at 32 pixels."""
    folder = tmp_path_factory.mktemp("generator")
    pictures, masks = kit.discs()
    kit.archive(folder / "faces.zip", pictures, masks=10 * masks, size=32)
    return folder


job = partial(kit.job, name="generator")


def made(reconstruction=FIRST, sharpening=SECOND, **changes):
    small_scale = {"reconstruction": reconstruction, "sharpening": sharpening}
    return CLS(CLS.Params(**{**KNOBS, "small_scale": small_scale, **changes}))


def test_energy_distance_equals_the_value_worked_by_hand():
    first, second = torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [5.0]])
    # twice the mean of 1, 5, 1 and 3, less 2, less 4
    torch.testing.assert_close(reconstruction.compute_energy_distance(first, second), torch.tensor(-1.0))


def test_differences_weight_pixels_and_edges():
    made_, real = torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2)
    made_[0, 0, 0, 1] = 4.0
    weights = torch.tensor([[[[1.0, 2.0], [1.0, 0.0]]]])
    pixels, edges = reconstruction.compute_differences(made_, real, weights)
    assert pixels.item() == 2.0  # 4 * 2 / 4 pixels
    assert edges.item() == 4.0  # across: 4 * 2 over two; down: 4 * 0 over two


def test_codes_are_uncorrelated_and_centered_and_linear_in_the_picture():
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(60, 3, 32, 32, generator=draw) * 2 - 1
    linear = LinearCodes(32, 8)
    linear.learn(images.split(25), torch.rand(1, 32, 32, generator=draw), seed=0)
    codes = linear(images)
    assert codes.shape == (60, 8)
    assert codes.mean(0).abs().max() < 1e-4
    correlation = torch.corrcoef(codes.T) - torch.eye(8)
    assert correlation.abs().max() < 1e-3
    mean = (linear(images[:1]) + linear(images[1:2])) / 2
    torch.testing.assert_close(linear(images[:2].mean(0, keepdim=True)), mean, atol=1e-4, rtol=1e-4)
    few = LinearCodes(32, 8)
    few.learn([images[:3]], torch.ones(1, 32, 32), seed=0)
    assert few(images).shape == (60, 8)
    assert not few(images)[:, 3:].any()


def test_larger_pictures_have_the_codes_of_their_means():
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(20, 3, 16, 16, generator=draw) * 2 - 1
    linear = LinearCodes(16, 4)
    linear.learn([images], torch.ones(1, 16, 16), seed=0)
    larger = images.repeat_interleave(2, 2).repeat_interleave(2, 3)
    torch.testing.assert_close(linear(larger), linear(images), atol=1e-4, rtol=1e-4)


def test_examples_have_mirror_images_with_weights_and_codes_of_their_own(folder):
    generator, archive = training.build(KNOBS), FaceArchive(folder / "faces.zip")
    pictures, linear = training.read_pictures(archive, "train", 32), reconstruction.build_linear_codes(generator)
    examples = reconstruction.Examples(archive, "train", pictures, generator, 4.0, linear, seed=0)
    assert examples.codes.shape == (16, 6)
    asked = SimpleNamespace(integers=lambda low, high, count: np.array([3, 8 + 3]))
    images, weights, codes = examples.batch(asked, 2)
    torch.testing.assert_close(images[0].permute(1, 2, 0), pictures[3].float() / 127.5 - 1)
    torch.testing.assert_close(images[1], images[0].flip(-1))
    torch.testing.assert_close(weights[1], weights[0].flip(-1))
    torch.testing.assert_close(codes, linear(images), atol=1e-4, rtol=1e-4)
    # parts weigh 5 where other pixels weigh 1, and the pixels beside them count as parts
    assert (weights.amax((1, 2, 3)) / weights.amin((1, 2, 3))).tolist() == pytest.approx([5.0, 5.0])
    torch.testing.assert_close(weights.mean((1, 2, 3)), torch.ones(2))


def test_texture_is_the_mean_magnitude_of_the_laplacian():
    flat, point = torch.full((1, 3, 16, 16), 0.3), torch.zeros(1, 3, 16, 16)
    assert sharpening.compute_texture(flat).abs().max() < 1e-6
    point[..., 8, 8] = 1.0
    found = sharpening.compute_texture(point)[0, 0]
    assert found[8, 8].item() == pytest.approx((4 + 4 * 1) / 49)  # of 49 pixels, five have a Laplacian
    assert found[0, 0].item() == 0.0
    moved = sharpening.compute_texture(point.roll(1, 3))[0, 0]
    assert moved[8, 8].item() == pytest.approx(found[8, 8].item()), "where in the square the detail is does not matter"


def test_critic_tells_the_codes_of_pictures_from_those_of_random_faces():
    torch.manual_seed(0)
    generator = training.build({**KNOBS})
    codes = torch.randn(400, 6) * 0.1 + torch.where(torch.rand(400, 1) < 0.5, 2.0, -2.0)
    known = argparse.Namespace(device=torch.device("cpu"), some_codes=lambda draw: codes[torch.randperm(400)[:256]])
    prior = reconstruction.Prior(0.1, generator, known)
    draw = np.random.default_rng(0)
    for _ in range(80):
        prior.loss(draw)
    critic, random = prior.modules["critic"], generator.map(torch.randn(400, 6))
    assert critic(codes).mean() > critic(random).mean() + 0.1


def test_sharpening_makes_decoded_pictures_sharper(folder):
    curves = {1: kit.Curve(), 40: kit.Curve()}
    none = {**KNOBS["adversarial"], "steps": 0}
    first = {**FIRST, "steps": 40}
    for steps, curve in curves.items():
        settings = {**SECOND, "steps": steps}
        made(reconstruction=first, sharpening=settings, adversarial=none).train(job(folder, name="sharp", log=curve))
    assert curves[40].of("texture")[-1] < curves[1].of("texture")[-1]


def test_moved_pictures_are_shifted_together_and_have_a_brightness_of_their_own():
    images = torch.rand(4, 3, 32, 32)
    found = sharpening.move_images(images, np.random.default_rng(0))
    draw = np.random.default_rng(0)
    light = torch.from_numpy(draw.uniform(-sharpening.BRIGHTNESS, sharpening.BRIGHTNESS, (4, 1, 1, 1))).float()
    down, right = draw.integers(-sharpening.SHIFT, sharpening.SHIFT + 1, 2)
    assert (down, right) != (0, 0)
    inner = slice(sharpening.SHIFT, 32 - sharpening.SHIFT)
    expected = images.roll((-int(down), -int(right)), (2, 3)) + light
    torch.testing.assert_close(found[..., inner, inner], expected[..., inner, inner])


def test_two_processes_move_their_pictures_as_one_does(monkeypatch):
    images = torch.rand(4, 3, 32, 32)
    alone = sharpening.move_images(images, np.random.default_rng(0))
    for rank in (0, 1):
        with monkeypatch.context() as patch:
            patch.setattr(distributed, "count_processes", lambda: 2)
            patch.setattr(distributed, "select_rows", lambda whole, rank=rank: whole[rank::2])
            found = sharpening.move_images(images[rank::2], np.random.default_rng(0))
        assert torch.equal(found, alone[rank::2])


def test_discriminator_of_features_learns_from_pictures_and_not_from_the_generators_turn():
    torch.manual_seed(0)
    settings = SharpeningSettings(projected=32)
    adversary = sharpening.Adversary(settings, False, torch.device("cpu"))
    draw = np.random.default_rng(0)
    real, made = torch.rand(4, 3, 32, 32).round() * 2 - 1, torch.zeros(4, 3, 32, 32, requires_grad=True)
    adversary.fooled(made, draw).backward()
    assert made.grad is not None
    assert made.grad.abs().sum() > 0
    assert all(weight.grad is None for weight in adversary.heads.parameters())
    losses = [adversary.learn(real, (made.detach(),), draw).item() for step in range(30)]
    assert losses[-1] < losses[0]


def test_mixed_training_stays_near_the_exact_one(folder):
    curves = {mixed: kit.Curve() for mixed in (True, False)}
    for mixed, curve in curves.items():
        made(arithmetic=kit.BFLOAT16 if mixed else None).train(job(folder, name=f"mixed{mixed}", log=curve))
    assert curves[True].of("pixels")[-1] == pytest.approx(curves[False].of("pixels")[-1], rel=0.2)


def test_linear_map_is_in_the_checkpoint_of_a_generator_that_decoded_codes(folder):
    made().train(job(folder, name="mapped"))
    linear = training.load_linear_map(folder / "mapped.safetensors")
    assert linear(torch.rand(2, 3, 32, 32)).shape == (2, 6)
    none = {
        "reconstruction": {**FIRST, "steps": 0},
        "sharpening": {**SECOND, "steps": 0},
    }
    made(**none).train(job(folder, name="random"))
    with pytest.raises(CheckpointError, match=r"no linear codes.*backbones.inversion.small_scale.linear"):
        training.load_linear_map(folder / "random.safetensors")


def test_reconstruction_lowers_its_loss_and_keeps_samples(folder):
    curve, pictures = kit.Curve(), {}
    settings = {**FIRST, "steps": 60}
    backbone = made(
        reconstruction=settings, sharpening={**SECOND, "steps": 0},
        adversarial={**KNOBS["adversarial"], "steps": 0}, samples_every=60, quality_samples=8,
    )  # fmt: skip
    given = job(folder, name="longer", log=curve, picture=pictures.__setitem__)
    backbone.train(given)
    assert curve.of("pixels")[-1] < 0.7 * curve[0]["pixels"]
    assert next(iter(pictures.values())).shape == (4 * 32, 8 * 32, 3)
    figures = backbone.quality(given)
    assert set(figures) >= {"detection", "frechet_distance", "frechet_distance_of_real", "variety"}
    assert figures["frechet_pictures"] == 4  # the validation split has four images, and eight faces are drawn
    assert figures["variety"] > 0


def test_all_phases_resume_bit_for_bit(folder, monkeypatch):
    made().train(job(folder, name="whole"))
    step, learn = training.GeneratorTask.step, LinearCodes.learn
    numbers = []

    def turned(self, *arguments, **more):
        """As another processor may find them: all components with the other sign."""
        learn(self, *arguments, **more)
        self.weight.neg_()
        self.bias.neg_()

    for stop in (2, 6, 10):  # in each of the phases

        def fails(self, number, stop=stop):
            if number == stop:
                raise RuntimeError("pulled the plug")
            numbers.append(number)
            return step(self, number)

        with monkeypatch.context() as patch:
            patch.setenv("MASQUERADE_SAVE_EVERY_SECONDS", "0")
            patch.setattr(training.GeneratorTask, "step", fails)
            with pytest.raises(RuntimeError, match="plug"):
                made().train(job(folder, name="cut"))
        monkeypatch.setattr(LinearCodes, "learn", turned)
    made().train(job(folder, name="cut"))
    assert numbers == list(range(10))
    assert (folder / "cut.safetensors").read_bytes() == (folder / "whole.safetensors").read_bytes()


def test_checkpoint_gives_the_mean_of_w_and_the_same_faces(folder):
    made().train(job(folder, name="kept"))
    generator = CLS.load(folder / "kept.safetensors")
    w = generator.map(torch.randn(20_000, 6))
    torch.testing.assert_close(generator.latent_avg, w.mean(0), atol=0.05, rtol=0.05)
    z = training.draw_z(0, "z", 3, 6)
    faces = training.draw_faces(generator, z, 0.7)
    assert torch.equal(faces, training.draw_faces(generator, z, 0.7))
    assert faces.shape == (3, 3, 32, 32)
    assert not any(weight.requires_grad for weight in generator.parameters())


def test_pictures_of_another_size_are_refused(folder):
    with pytest.raises(ParameterError, match=r"32 pixels.*channels"):
        made(channels=[8, 8, 4]).train(job(folder, name="wrong"))


def test_training_without_steps_is_refused(folder):
    none = {
        "reconstruction": {**FIRST, "steps": 0}, "sharpening": {**SECOND, "steps": 0},
        "adversarial": {**KNOBS["adversarial"], "steps": 0},
    }  # fmt: skip
    with pytest.raises(ParameterError, match="all 0"):
        made(**none).train(job(folder, name="none"))


def test_published_generator_of_larger_pictures_gives_those_of_the_training_faces(folder):
    channels = [*KNOBS["channels"], 2]  # it draws 64 pixels; the faces have 32
    state = training.build({**KNOBS, "channels": channels}).state_dict()
    torch.save({"g_ema": state}, folder / "larger.pt")
    backbone = made(published=str(folder / "larger.pt"), channels=channels)
    backbone.convert_official(backbone.published, job(folder, name="larger"))
    generator = CLS.load(folder / "larger.safetensors")
    assert (generator.size, generator.drawn, generator.layers) == (32, 64, 10)
    assert generator(torch.randn(1, 6)).shape == (1, 3, 32, 32)
    with pytest.raises(ParameterError, match=r"16 pixels, and image.size is 32.*never enlarged"):
        made(channels=KNOBS["channels"][:-1]).convert_official(backbone.published, job(folder, name="smaller"))


def test_altered_published_file_is_refused(folder):
    path = folder / "checked.pt"
    torch.save({"g_ema": {}}, path)
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    backbone = made(published=f"{path}#sha256={right}")
    assert backbone.published == path
    assert backbone.check_published() == right
    path.write_bytes(path.read_bytes().replace(b"g_ema", b"g_eme"))
    with pytest.raises(CheckpointError, match=r"altered or another file.*params"):
        backbone.check_published()
    with pytest.raises(CheckpointError, match="missing"):
        made(published=str(folder / "nowhere.pt")).check_published()
    made(published=str(path)).check_published()  # no published file is set
