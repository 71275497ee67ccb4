"""iFADIT as a method: its key, its recovery, its two phases and its refusals."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import kit
from masquerade.backbones.inversion.inverter import Inverter
from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import to_float, to_uint8
from masquerade.methods import Resources
from masquerade.methods.ifadit.frozen import FrozenNetworks, TrainingImages
from masquerade.methods.ifadit.network import Span
from masquerade.methods.ifadit.training import PhaseTwo, build_disentangler
from masquerade.networks.latent_encoders import Encoder4Editing
from masquerade.networks.linear_codes import LinearCodes
from masquerade.networks.stylegan2 import Generator
from masquerade.training import checkpoints

METHOD = discovery.load("methods", "ifadit")
SIZE, STYLE = 32, 8
WIDTHS, UNITS = kit.WIDTHS, kit.UNITS
IMAGE = {"pixels": 1.0, "lpips": 0.0, "landmarks": 0.1, "parsing": 0.01}
PARAMS = METHOD.Params(
    encoder={"kind": "e4e", "input_size": SIZE, "widths": WIDTHS, "units": UNITS},
    mapping=20,
    flow={"blocks": 2, "hidden": [8], "limit": 0.5},
    compensation_widths=[8, 8, 8],
    phase_one={"steps": 2, "batch": 4, "learning_rate": 1e-3, "structure": 0.84, "pixels": 0.16, "quality": 0.01},
    phase_two={"steps": 2, "batch": 4, "learning_rate": 1e-3, "recovered": IMAGE, "altered": IMAGE, "alone": 2},
    betas=[0.9, 0.99], region="face", diversity_loss=True, image_loss=True, compensation=True, dual_phase=True,
    samples_every=2,
    small_scale={
        "encoder_start": "inversion", "mapping_per_layer": True, "flow_start": 0.5, "flow_aligned": True,
        "residual_compensation": True, "muon": True, "cooldown": 0.4, "swapped": 0.5, "cycle": 1.0,
        "rehearsal": {"steps": 2, "batch": 4, "learning_rate": 1e-3}, "pooled_image_terms": True,
        "squared_parsing": True, "compensation_weight": 1.0, "refined": True,
    },
)  # fmt: skip
KEY, OTHER = (METHOD.capabilities.keys.experiment(0, number) for number in range(2))


def each(key):
    """One key for all `faces`."""
    return [key] * len(faces())


class SmallLandmarks(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(48, 136)

    def forward(self, images):
        return self.project(nn.functional.adaptive_avg_pool2d(images, 4).flatten(1)).view(-1, 68, 2)


class SmallParser(nn.Module):
    """Labels the middle of every picture as skin."""

    def __init__(self):
        super().__init__()
        self.project = nn.Conv2d(3, 19, 1)

    def forward(self, images):
        return self.project(images)

    def labels(self, images):
        labels = torch.zeros(len(images), *images.shape[2:], dtype=torch.uint8)
        labels[:, 8:24, 8:24] = 1
        return labels


def backbone(name):
    torch.manual_seed(5)
    generator = Generator(SIZE, (4, 4, 4, 4), style=STYLE, mapping=2)
    if name == "inversion":
        mean = torch.zeros(generator.layers, STYLE)
        network = Inverter(Encoder4Editing(generator.layers, SIZE, STYLE, WIDTHS, UNITS), mean, "its generator")
    else:
        network = {"generator": generator, "identity": kit.Identity(512, 8), "landmarks": SmallLandmarks(),
                   "parsing": SmallParser()}[name]  # fmt: skip
    return network.eval().requires_grad_(False)


def test_attributes_start_as_those_of_the_inversion_with_its_linear_codes():
    torch.manual_seed(0)
    linear, mean = LinearCodes(32, STYLE), torch.randn(8, STYLE)
    linear.learn([torch.rand(20, 3, 32, 32) * 2 - 1], torch.ones(1, 32, 32), seed=0)
    encoder = Encoder4Editing(8, SIZE, STYLE, WIDTHS, UNITS)
    inverter = Inverter(encoder, mean, "its generator", linear).eval()
    images, identity = torch.rand(3, 3, 32, 32) * 2 - 1, torch.randn(3, 512)
    chosen = changed(small={"linear": True})
    disentangler = build_disentangler(chosen, mean, kit.Identity(512, 8), inverter).eval()
    codes = disentangler.codes(identity, disentangler.attributes(images))
    torch.testing.assert_close(codes, inverter(images), atol=1e-4, rtol=1e-4)
    with pytest.raises(ParameterError, match=r"linear must be backbones\.inversion\.small_scale\.linear"):
        build_disentangler(PARAMS, mean, kit.Identity(512, 8), inverter)
    with pytest.raises(ParameterError, match="linear must be"):
        build_disentangler(chosen, mean, kit.Identity(512, 8), Inverter(encoder, mean, "its generator"))


@pytest.fixture(autouse=True)
def small_backbones(monkeypatch):
    kit.replace_backbones(monkeypatch, **{name: backbone(name) for name in METHOD.needs})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An archive, placeholder files for the backbones, and a trained checkpoint."""
    folder = tmp_path_factory.mktemp("ifadit")
    for name in METHOD.needs:
        (folder / f"{name}.safetensors").write_bytes(f"stands for the {name}".encode())
    kit.archive(folder / "faces.zip", kit.noise(10), size=SIZE)
    with pytest.MonkeyPatch.context() as patch:
        kit.replace_backbones(patch, **{name: backbone(name) for name in METHOD.needs})
        METHOD.train(PARAMS, job(folder, "checkpoint"))
    return folder


def job(folder, name, **more):
    return kit.job(folder, name, METHOD.needs, **more)


def changed(small=None, **fields):
    small_scale = PARAMS.small_scale.model_copy(update=small or {})
    return PARAMS.model_copy(update={"small_scale": small_scale, **fields})


faces = partial(kit.faces, 5)


def method(folder, params=PARAMS, name="checkpoint"):
    resources = Resources(folder / f"{name}.safetensors", job(folder, name).backbones)
    return METHOD(params, METHOD.Variant(), resources)


def logged(folder, params, base):
    """The phases of a training."""
    curve = kit.Curve()
    METHOD.train(params, job(folder, "ablation", base=base, log=curve))
    return {name.partition("/")[0] for values in curve.values() for name in values}


def test_the_background_stays_and_the_face_does_not(folder):
    original = faces().images
    made = method(folder).anonymize(faces(), 0, each(KEY))
    assert np.array_equal(made[..., :4], original[..., :4])
    assert np.abs(made - original)[..., 12:20, 12:20].mean() > 0.1


def test_a_smaller_drawn_face_leaves_the_original_around_it(folder, monkeypatch):
    first = method(folder, changed({"overlap": True}))
    whole, parser = first.anonymize(faces(), 0, each(KEY)), first._networks.parsing
    middle = parser.labels(torch.zeros(5, 3, SIZE, SIZE))
    upper = middle.clone()
    upper[:, 16:] = 0
    sizes = iter([middle, upper])
    monkeypatch.setattr(parser, "labels", lambda images: next(sizes))
    made = method(folder, changed({"overlap": True})).anonymize(faces(), 0, each(KEY))
    np.testing.assert_array_equal(made[:, :, 8:15], whole[:, :, 8:15])
    np.testing.assert_array_equal(made[:, :, 18:], faces().images[:, :, 18:])


def test_the_saved_representation_does_not_depend_on_the_key(folder):
    saved = method(folder).save(faces(), 0, each(KEY))
    everything = b"".join(part.tobytes() for part in (saved.identity, saved.attributes, saved.images))
    assert KEY not in everything
    assert KEY.hex().encode() not in everything


def test_recover_keeps_the_background_of_the_picture_and_recover_onto_that_of_the_original(folder):
    chosen = method(folder)
    public = to_float(to_uint8(chosen.anonymize(faces(), 0, each(KEY))))
    originals = faces().images
    assert np.array_equal(chosen.recover(public, each(KEY))[..., :4], public[..., :4])
    assert np.array_equal(chosen.recover_onto(public, each(KEY), originals)[..., :4], originals[..., :4])


def test_views_show_the_face_without_its_identity_or_its_attributes(folder):
    views = method(folder).views(faces())
    assert set(views) == {"reconstructed", "de_identity", "de_attributes"}
    assert not np.allclose(views["reconstructed"], views["de_attributes"], atol=1e-4)


def test_the_second_phase_does_not_change_the_networks_of_the_first(folder):
    longer = changed(phase_two=PARAMS.phase_two.model_copy(update={"steps": 4}))
    METHOD.train(longer, job(folder, "longer"))
    parts = [checkpoints.load_checkpoint(folder / f"{name}.safetensors")[0] for name in ("checkpoint", "longer")]
    assert all(torch.equal(parts[0]["disentangler"][key], value) for key, value in parts[1]["disentangler"].items())
    assert any(not torch.equal(parts[0]["transform"][key], value) for key, value in parts[1]["transform"].items())


def test_an_ablation_that_reuses_the_first_phase_ends_with_the_same_weights(folder):
    without = changed(diversity_loss=False)
    METHOD.train(without, job(folder, "alone"))
    assert logged(folder, without, folder / "checkpoint.safetensors") == {"rehearsal", "phase_two"}
    assert fingerprints.md5(folder / "alone.safetensors") == fingerprints.md5(folder / "ablation.safetensors")


def test_the_first_phase_of_another_training_is_not_reused(folder):
    other = changed(phase_one=PARAMS.phase_one.model_copy(update={"quality": 0.5}))
    assert "phase_one" in logged(folder, other, folder / "checkpoint.safetensors")
    assert "phase_one" in logged(folder, PARAMS, folder / "missing.safetensors")


@pytest.mark.parametrize("switch", ["image_loss", "compensation", "dual_phase"])
def test_every_ablation_trains_and_anonymizes(folder, switch):
    params = changed(**{switch: False})
    phases = logged(folder, params, folder / "checkpoint.safetensors")
    assert phases == ({"phase_two"} if switch == "dual_phase" else {"rehearsal", "phase_two"})
    assert method(folder, params, "ablation").anonymize(faces(), 0, each(KEY)).shape == faces().images.shape


def test_an_encoder_unlike_the_inversion_cannot_start_from_it(folder):
    encoder = PARAMS.encoder.model_copy(update={"kind": "psp"})
    with pytest.raises(ParameterError, match="set it to 'identity'"):
        METHOD.train(changed(encoder=encoder), job(folder, "refused"))


def test_the_inversion_itself_can_encode_attributes_and_is_neither_trained_nor_saved(folder):
    encoder = PARAMS.encoder.model_copy(update={"kind": "inversion"})
    METHOD.train(changed(encoder=encoder), job(folder, "frozen"))
    tensors = checkpoints.load_checkpoint(folder / "frozen.safetensors")[0]
    assert not any(name.startswith("encoder") for name in tensors["disentangler"])
    (folder / "inversion.safetensors").write_bytes(b"another inversion")
    with pytest.raises(CheckpointError, match="inversion"):
        method(folder, changed(encoder=encoder), "frozen")
    (folder / "inversion.safetensors").write_bytes(b"stands for the inversion")
    chosen, images = method(folder, changed(encoder=encoder), "frozen"), faces().images
    codes = backbone("inversion")(torch.from_numpy(images)) - chosen._networks.mean
    np.testing.assert_allclose(chosen.save(faces(), 0, each(KEY)).attributes, codes, atol=1e-5)


def test_the_published_start_is_the_identity_encoder_with_unrefined_pictures(folder):
    encoder = PARAMS.encoder.model_copy(update={"kind": "psp"})
    published = changed({"encoder_start": "identity", "refined": False}, encoder=encoder)
    network = backbone("identity")
    network.network = nn.Module()
    with pytest.MonkeyPatch.context() as patch:
        kit.replace_backbones(patch, identity=network)
        METHOD.train(published, job(folder, "published"))
    assert (folder / "published.safetensors").is_file()


def test_image_loss_is_a_mean_for_each_kind_of_face_or_one_over_all_changed_faces(folder):
    networks = FrozenNetworks(job(folder, "image").backbones, METHOD.needs, "face")
    data = TrainingImages(networks, kit.noise(4), masks=False)
    pixels = {"pixels": 1.0, "lpips": 0.0, "landmarks": 0.0, "parsing": 0.0}
    weights = {"recovered": type(PARAMS.phase_two.recovered)(**pixels),
               "altered": type(PARAMS.phase_two.altered)(**pixels | {"pixels": 0.5})}  # fmt: skip
    batch = data.batch(np.array([0, 1]))
    apart = (0.1, 0.2, 0.4)  # of faces anonymized, recovered and wrongly recovered
    hidden, right, wrong = (batch.images + value for value in apart)
    for pooled, expected in ((False, 0.2 + 0.5 * (0.1 + 0.4)), (True, 0.2 + 0.5 * (2 * 0.1 + 0.4) / 3)):
        chosen = changed({"pooled_image_terms": pooled}, phase_two=PARAMS.phase_two.model_copy(update=weights))
        phase = PhaseTwo(chosen, networks, data, 0, nn.Identity(), nn.Linear(1, 1), joint=False)
        value = phase.sum_image_losses(torch.cat([hidden, hidden]), right, wrong, batch)
        assert value.item() == pytest.approx(expected, rel=1e-5)


OPTIONS = {
    "usual": {},
    "published": {"mapping_per_layer": False, "residual_compensation": False, "pooled_image_terms": False,
                  "squared_parsing": False},
    "span": {"span": 4},
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_saved_representation_and_the_right_key_alone_recover_the_reconstruction(folder, options):
    if options:
        METHOD.train(changed(options), job(folder, "options"))
    chosen = method(folder, changed(options), "options" if options else "checkpoint")
    saved = chosen.save(faces(), 0, each(KEY))
    back, wrong = (chosen.recover_saved(saved, each(key)) for key in (KEY, OTHER))
    middle = (slice(None), slice(None), slice(12, 20), slice(12, 20))
    np.testing.assert_allclose(back[middle], chosen.views(faces())["reconstructed"][middle], atol=1e-4)
    assert np.abs(wrong - back)[middle].max() > 1e-3


def test_a_span_has_the_directions_of_the_people_and_nothing_else():
    torch.manual_seed(0)
    span, plane = Span(changed({"span": 2})), torch.linalg.qr(torch.randn(512, 3))[0].T
    people = functional.normalize(torch.randn(20, 2) @ plane[:2])
    coordinates = span.fit(people)
    torch.testing.assert_close(coordinates @ coordinates.T, people @ people.T, atol=1e-5, rtol=0)
    torch.testing.assert_close(span(people + torch.randn(20, 1) * plane[2]), coordinates, atol=1e-5, rtol=0)
