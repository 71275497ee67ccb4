"""Encoders into W+: the published layout key by key, progressive training, and the refusal of wrong files."""

import argparse

import pytest
import torch

import kit
from kit import UNITS, WIDTHS
from masquerade.backbones.generator import training as _generator
from masquerade.backbones.inversion import inverter
from masquerade.backbones.inversion import training as _inversion
from masquerade.core import discovery
from masquerade.core.errors import CheckpointError
from masquerade.networks.latent_encoders import Encoder4Editing, GradualStyleEncoder
from masquerade.networks.w_space import CodeDiscriminator, LinearCodes

CLS = discovery.load("backbones", "inversion")
ARCHITECTURE = {"channels": [8, 8, 8, 4], "style": 6, "mapping": 2, "mapping_rate": 1.0}
KNOBS = {
    "published": "", "kind": "e4e", "input_size": 32, "widths": WIDTHS, "units": UNITS, "steps": 6, "batch": 2,
    "learning_rate": 0.003, "offsets_from": 2, "offsets_every": 2,
    "weights": {"pixels": 1.0, "lpips": 0.0, "identity": 0.1, "offsets": 2e-4, "adversarial": 0.1},
    "small_scale": {"optimizer": "muon", "absolute": 0.5, "edges": 0.5, "texture": 0.5, "codes": 0.1},
    "code_discriminator": {"layers": 3, "equalized": False, "learning_rate": 2e-5, "betas": [0.9, 0.999]},
    "samples_every": 3, "floor_identity": -1.0, "floor_psnr": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A generator and an identity encoder with random weights, and an archive of colored noise."""
    folder = tmp_path_factory.mktemp("inversion")
    kit.networks(folder, architecture=ARCHITECTURE)
    kit.archive(folder / "faces.zip", kit.noise(12), size=32)
    return folder


def job(folder, name="inversion", **more):
    return kit.job(folder, name, CLS.needs, **more)


def made(**changes):
    return CLS(CLS.Params(**{**KNOBS, **changes}))


def test_offsets_start_in_sequence():
    torch.manual_seed(0)
    encoder = Encoder4Editing(8, 32, 6, WIDTHS, UNITS).eval()
    images = torch.randn(2, 3, 32, 32)
    first = encoder(images, stage=0)
    assert torch.equal(first, first[:, :1].expand(-1, 8, -1))
    some, whole = encoder(images, stage=3), encoder(images)
    torch.testing.assert_close(some[:, :4], whole[:, :4])
    torch.testing.assert_close(some[:, 4:], first[:, 4:])
    assert not torch.allclose(whole[:, 4:], first[:, 4:])


def test_psp_gives_each_layer_its_own_code():
    torch.manual_seed(0)
    codes = GradualStyleEncoder(8, 32, 6, WIDTHS, UNITS).eval()(torch.randn(1, 3, 32, 32))
    assert codes.shape == (1, 8, 6)
    assert len({tuple(code.tolist()) for code in codes[0]}) == 8


def test_discriminator_of_codes_is_e4es_unless_equalized():
    """Three plain hidden layers and one to a logit, as in encoder4editing's models/discriminator.py."""
    torch.manual_seed(0)
    codes = torch.randn(5, 6)
    published, equalized = CodeDiscriminator(6, 3, False), CodeDiscriminator(6, 3, True)
    assert [tuple(weight.shape) for weight in published.parameters()] == [(6, 6), (6,)] * 3 + [(1, 6), (1,)]
    weights, biases = list(published.parameters())[::2], list(published.parameters())[1::2]
    expected = codes
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        expected = expected @ weight.T + bias
        if number < 3:
            expected = torch.where(expected > 0, expected, 0.2 * expected)
    torch.testing.assert_close(published(codes), expected)
    assert equalized(codes).shape == (5, 1)
    assert next(equalized.parameters()).std() > 2 * weights[0].std(), "scaled at run time"


def test_training_starts_from_the_identity_network_and_reconstructs_better(folder):
    curve, pictures = kit.Curve(), {}
    backbone = made(steps=30)
    given = job(folder, log=curve, picture=pictures.__setitem__)
    backbone.train(given)
    assert curve.of("total")[-1] < curve[0]["total"]
    assert next(iter(pictures.values())).shape == (64, 4 * 32, 3)
    assert set(backbone.quality(given)) == {"identity", "psnr", "perceptual"}
    encoder = Encoder4Editing(8, 32, 6, WIDTHS, UNITS)
    identity = discovery.load("backbones", "identity").load(folder / "identity.safetensors")
    inverter.start_from(identity, encoder)
    assert torch.equal(encoder.body[0].res_layer[1].weight, identity.network.body[0].res_layer[1].weight)


def test_linear_inversion_starts_as_the_linear_codes_and_learns_what_to_add(folder, tmp_path):
    torch.manual_seed(0)
    generator = _generator.load(folder / "generator.safetensors")
    linear = LinearCodes(32, 6)
    linear.learn([torch.rand(20, 3, 32, 32) * 2 - 1], torch.ones(1, 32, 32), seed=0)
    for name in ("faces.zip", "faces.parquet", "identity.safetensors"):
        (tmp_path / name).symlink_to(folder / name)
    _generator.save(tmp_path / "generator.safetensors", generator, ARCHITECTURE, linear)
    images = torch.rand(3, 3, 32, 32) * 2 - 1
    for steps, changes in ((1, False), (6, True)):
        backbone = made(
            small_scale={**KNOBS["small_scale"], "linear": True},
            steps=steps,
            learning_rate=1e-12 if steps == 1 else 0.003,
        )
        backbone.train(job(tmp_path))
        inverter = CLS.load(tmp_path / "inversion.safetensors")
        start = linear(images)[:, None].expand(-1, 8, -1)
        assert torch.allclose(inverter(images), start, atol=1e-4) != changes
    with pytest.raises(CheckpointError, match="no linear codes"):
        made(small_scale={"linear": True}).train(job(folder, "none"))


def test_stage_follows_the_schedule(folder):
    params = CLS.Params(**KNOBS)

    class Known:
        params = None
        inverter = type("Inverter", (), {"encoder": type("Encoder", (), {"layers": 8})})

    Known.params = params
    stages = [_inversion.InversionTask.stage(Known, step) for step in range(20)]
    assert stages[:8] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert max(stages) == 7


def published(folder, change=None, layers=8):
    """A file in the published layout, with the folder's generator inside."""
    torch.manual_seed(1)
    encoder = Encoder4Editing(layers, 32, 6, WIDTHS, UNITS)
    generator = _generator.load(folder / "generator.safetensors")
    state = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    decoder = generator.state_dict()
    del decoder["latent_avg"]
    state |= {f"decoder.{name}": value.clone() for name, value in decoder.items()}
    content = {"state_dict": state, "latent_avg": torch.randn(layers, 6), "opts": argparse.Namespace(device="cuda:0")}
    if change:
        change(content)
    torch.save(content, folder / "published.pt")
    return folder / "published.pt", encoder, content


def test_published_file_is_loaded_with_every_key(folder):
    path, encoder, content = published(folder)
    made(published=str(path)).convert_official(path, job(folder, "adopted"))
    inverter = CLS.load(folder / "adopted.safetensors")
    for name, value in inverter.encoder.state_dict().items():
        assert torch.equal(value, encoder.state_dict()[name]), name
    images = torch.randn(2, 3, 32, 32)
    expected = encoder.eval()(images) + content["latent_avg"]
    torch.testing.assert_close(inverter(images), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["state_dict"].update({"discriminator.x": torch.zeros(1)}), "left over"),
        (lambda content: content["state_dict"]["decoder.input.input"].add_(1.0), "another generator"),
        (lambda content: content.pop("latent_avg"), "latent_avg"),
    ],
)
def test_error_for_a_wrong_file_gives_the_reason(folder, change, message):
    path, _, _ = published(folder, change)
    with pytest.raises(CheckpointError, match=message):
        made().convert_official(path, job(folder, "refused"))
    assert not (folder / "refused.safetensors").exists()


def test_file_for_another_resolution_names_the_style_layers(folder):
    path, _, _ = published(folder, layers=10)
    with pytest.raises(CheckpointError, match=r"10 style layers.*has 8"):
        made().convert_official(path, job(folder, "refused"))
