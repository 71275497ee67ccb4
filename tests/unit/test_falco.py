"""FALCO: its equations, batches, refusals and latent space."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

import kit
from masquerade.backbones.generator import random_face
from masquerade.backbones.generator import training as _generator
from masquerade.backbones.semantics.network import SemanticEncoder
from masquerade.core import discovery, seeding
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import ArchiveWriter, FaceArchive, Faces, to_uint8
from masquerade.methods import Resources
from masquerade.methods import falco as falco_method
from masquerade.methods.controls import RandomGenerated
from masquerade.methods.falco import Falco, attribute_loss, identity_loss
from masquerade.methods.latent import codes, fakes
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks.stylegan2 import scale_layers
from masquerade.networks.w_space import PNSpace
from masquerade.papers import reference
from masquerade.params import loading
from masquerade.pipeline import anonymization
from masquerade.training import precision

FACES = 6
KNOBS = {"first_layer": 3, "last_layer": 7, "steps": 12, "learning_rate": 0.05, "tokens": "all"}  # fmt: skip
FULL = {"margin": 0.0, "identity": 10.0, "attributes": 0.1, "start": "nearest"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Checkpoints of small networks with random weights, a set of fakes, and an archive of noise."""
    folder = tmp_path_factory.mktemp("falco")
    paths = kit.networks(folder)
    fakes.write_fakes(LatentSpace(paths), folder / "fakes.safetensors", 40, 0.7, seed=0)
    kit.archive(folder / "faces.zip", kit.noise(FACES), rows=[{"split": "test"}] * FACES, size=kit.SIZE)
    return folder, paths


def falco(world, small=None, knobs=None, **variant):
    folder, paths = world
    resources = Resources(backbones=paths, fakes=folder / "fakes.safetensors")
    return Falco(
        Falco.Params(**{**KNOBS, "small_scale": small or {}, **(knobs or {})}),
        Falco.Variant(**{**FULL, **variant}),
        resources,
    )


@pytest.fixture(scope="module")
def faces(world):
    return FaceArchive(world[0] / "faces.zip").load()


def test_identity_loss_is_the_distance_of_the_cosine_from_the_margin():
    drawn, real = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    torch.testing.assert_close(identity_loss(drawn, real, 0.9), torch.tensor([0.1, 0.3]))  # |1 - .9|, |.6 - .9|
    torch.testing.assert_close(identity_loss(drawn, real, 0.0), torch.tensor([1.0, 0.6]))


def test_attribute_loss_is_the_mean_of_a_token_summed_over_tokens():
    drawn, real = torch.zeros(1, 3, 2), torch.tensor([[[1.0, -3.0], [0.0, 0.0], [2.0, 2.0]]])
    torch.testing.assert_close(attribute_loss(drawn, real), torch.tensor([4.0]))  # 2 + 0 + 2


@pytest.mark.parametrize(("layers", "expected"), [(18, [3, 4, 5, 6, 7]), (14, [2, 3, 4, 5, 6]), (10, [2, 3, 4])])
def test_layer_ranges_scale_with_the_generator(layers, expected):
    assert list(scale_layers(3, 7, layers)) == expected


def test_result_of_a_face_does_not_depend_on_its_batch(world, faces):
    together, alone = falco(world).anonymize(faces, 0), falco(world, {"batch": 1}).anonymize(faces, 0)
    np.testing.assert_allclose(together, alone, atol=2e-3)  # a quarter of a gray level after 12 updates
    assert np.abs(together - falco(world, knobs={"steps": 1}).anonymize(faces, 0)).max() > 0.02


def test_too_few_fakes_stop_the_anonymization_with_advice(world, faces):
    with pytest.raises(ParameterError, match=r"There are 40 fakes for .* Raise `fakes.count` in params.yaml"):
        falco(world).observe([faces] * 40)


@pytest.fixture
def bfloat16(monkeypatch):
    """Knobs of an optimization with bfloat16, also on a processor that has no instructions for it."""
    monkeypatch.setattr(precision, "bfloat16_pays", lambda device: True)
    return {"arithmetic": {**kit.BFLOAT16, "channels_last": True}}


@pytest.mark.parametrize("margin", [0.0, 0.9])
def test_optimization_with_bfloat16_reaches_the_loss_of_32_bits(world, drawn_codes, bfloat16, margin):
    """Within 1 % over 8 faces, at the published learning rate. The losses of both codes are computed in 32 bits."""
    faces, method, losses = kit.faces(8), falco(world), {}
    for name, knobs in {"32 bits": {}, "bfloat16": bfloat16, "start": {"steps": 1, "learning_rate": 1e-9}}.items():
        falco(world, knobs={"learning_rate": 0.01, **knobs}, margin=margin).anonymize(faces, 0)
        with torch.no_grad():
            pictures = method._space.generator.synthesize(drawn_codes.pop()), torch.from_numpy(faces.images)
            (vectors, tokens), (own, real) = map(method._encode_images, pictures)
        loss = 10.0 * identity_loss(vectors, own, margin) + 0.1 * attribute_loss(tokens, real)
        losses[name] = loss.mean().item()
    assert losses["32 bits"] < 0.9 * losses["start"]
    assert losses["bfloat16"] == pytest.approx(losses["32 bits"], rel=0.01)
    assert losses["bfloat16"] != losses["32 bits"]


def test_results_are_drawn_in_32_bits_and_the_statement_names_the_precision(world, faces, monkeypatch, bfloat16):
    seen, draw = [], LatentSpace.draw
    flags = lambda: torch.is_autocast_enabled("cpu")  # noqa: E731
    monkeypatch.setattr(LatentSpace, "draw", lambda *given: seen.append(flags()) or draw(*given))
    method = falco(world, knobs=bfloat16)
    synthesize = method._space.generator.synthesize
    method._space.generator.synthesize = lambda *given, **more: seen.append(flags()) or synthesize(*given, **more)
    method.anonymize(faces, 0)
    assert seen == [True] * KNOBS["steps"] + [False] * 2
    assert method.statement()["precision"] == "bfloat16"
    assert "precision" not in falco(world).statement()


@pytest.fixture
def drawn_codes(monkeypatch):
    """The codes whose images a method returns, in order."""
    drawn, draw = [], LatentSpace.draw
    monkeypatch.setattr(LatentSpace, "draw", lambda self, codes, names=(): drawn.append(codes) or draw(self, codes))
    return drawn


USED = list(scale_layers(3, 7, 8))  # layers
REACH = KNOBS["steps"] * KNOBS["learning_rate"] * 1.01  # the largest step of Adam is its learning rate


@pytest.mark.parametrize("number", [0, 1])
def test_middle_layers_start_from_the_nearest_fake_or_the_next_and_the_others_keep_the_code_of_the_face(
    world, faces, drawn_codes, number
):
    method = falco(world)
    method.resample(faces, number) if number else method.anonymize(faces, 0)
    (optimized,), (inverted, features) = drawn_codes, method._codes.of(faces)
    start = method._fakes.codes[fakes.find_nearest(features, method._fakes.features, number)]
    rest = [layer for layer in range(8) if layer not in USED]
    assert torch.equal(optimized[:, rest], inverted[:, rest])
    assert 0 < (optimized[:, USED] - start[:, None]).abs().max() <= REACH


def test_the_weight_of_the_fake_keeps_the_codes_near_it(world, faces, drawn_codes):
    for weight in (0.0, 1000.0):
        method = falco(world, {"fake_weight": weight}, {"steps": 4, "learning_rate": 0.1})
        method.anonymize(faces, 0)
    free, held = drawn_codes
    start = method._fakes.codes[fakes.find_nearest(method._codes.of(faces)[1], method._fakes.features)][:, None]
    assert (held[:, USED] - start).square().mean() < 0.5 * (free[:, USED] - start).square().mean()


def test_random_start_depends_on_the_face_alone(world, faces, drawn_codes):
    for count in (FACES, 2):
        some = Faces(faces.images[:count], faces.index.iloc[:count])
        falco(world, start="random", knobs={"steps": 1, "learning_rate": 1e-6}).anonymize(some, 0)
    together, first = (codes[:, USED[0]] for codes in drawn_codes)
    torch.testing.assert_close(together[:2], first, atol=1e-5, rtol=0)
    assert torch.pdist(together).max() > 0.01, "not one fake for all faces"


@pytest.mark.parametrize("number", [0, 1])
def test_without_optimization_the_result_is_the_mixture_from_which_it_starts(world, faces, drawn_codes, number):
    method = falco(world, optimization=False)
    method.resample(faces, number) if number else method.anonymize(faces, 0)
    (mixture,), (inverted, features) = drawn_codes, method._codes.of(faces)
    start = method._fakes.codes[fakes.find_nearest(features, method._fakes.features, number)]
    rest = [layer for layer in range(8) if layer not in USED]
    assert torch.equal(mixture[:, rest], inverted[:, rest])
    assert torch.equal(mixture[:, USED], start[:, None].expand(-1, len(USED), -1))
    assert method.statement()["steps"] == 0 < falco(world).statement()["steps"]


def test_margin_of_strangers_is_the_median_cosine_with_the_fakes(world, faces, monkeypatch):
    identity, space = discovery.load("backbones", "identity").load(world[1]["identity"]), LatentSpace(world[1])
    codes = fakes.load_fakes(world[0] / "fakes.safetensors", space).codes  # fewer than STRANGERS
    with torch.no_grad():
        people = identity(space.generator.synthesize(space.generator.broadcast(codes)).clamp(-1, 1)).numpy()
        own = identity(torch.from_numpy(faces.images)).numpy()
    margins = []
    monkeypatch.setattr(falco_method, "identity_loss", lambda *given: margins.append(given[2]) or identity_loss(*given))
    falco(world, knobs={"steps": 1}, margin="strangers").anonymize(faces, 0)
    np.testing.assert_allclose(margins[0], np.median(own @ people.T, axis=1), atol=1e-4)
    assert np.ptp(margins[0].numpy()) > 1e-2, "each face has its own"


def test_larger_margin_ends_closer_to_the_original(world, faces):
    identity = discovery.load("backbones", "identity").load(world[1]["identity"])

    def cosine(margin):
        made = falco(world, margin=margin, attributes=0.0).anonymize(faces, 0)
        return (identity(torch.from_numpy(made)) * identity(torch.from_numpy(faces.images))).sum(1).mean().item()

    assert cosine(0.9) > cosine(0.0) + 0.05


@pytest.mark.parametrize(("tokens", "seen"), [("all", [0, 1]), ("patches", [1])])
def test_attribute_loss_sees_the_tokens_that_its_parameter_names(world, faces, monkeypatch, tokens, seen):
    """The class token is the first one. A token that is always 0 adds nothing to the loss."""
    every = SemanticEncoder.tokens

    def result(without=None):
        def some(self, images):
            found = every(self, images)
            hidden = (torch.arange(found.shape[1]) > 0) == bool(without) if without is not None else torch.tensor(False)
            return torch.where(hidden[..., None], 0.0, found)

        monkeypatch.setattr(SemanticEncoder, "tokens", some)
        return falco(world, knobs={"tokens": tokens}, identity=0.0, attributes=1.0).anonymize(faces, 0)

    assert [part for part in (0, 1) if not np.array_equal(result(without=part), result())] == seen


def test_nearest_fake_has_the_smallest_distance():
    draw = np.random.default_rng(1)
    real, made = draw.normal(size=(5, 4)), draw.normal(size=(30, 4))
    ranked = np.linalg.norm(real[:, None] - made[None], axis=2).argsort(1)
    for number in (0, 1):
        found = fakes.find_nearest(torch.from_numpy(real), torch.from_numpy(made), number)
        assert found.tolist() == ranked[:, number].tolist()


def test_set_of_fakes_that_is_too_small_is_refused(world, tmp_path):
    fakes.write_fakes(LatentSpace(world[1]), tmp_path / "fakes.safetensors", FACES, 0.7, seed=0)
    method = falco((tmp_path, world[1]))
    with pytest.raises(ParameterError, match=r"6 fakes for 6 faces.*fakes\.count"):
        method.observe(FaceArchive(world[0] / "faces.zip").batches(4))


def test_diverged_inversion_refuses_only_its_face(world, tmp_path, monkeypatch):
    archive = FaceArchive(world[0] / "faces.zip")
    method, invert = falco(world), LatentSpace.invert

    def astray(self, images):
        codes = invert(self, images)
        strange = torch.from_numpy(images[:, 0, 0, 0] == archive.load().images[2, 0, 0, 0])
        codes[strange] = torch.nan
        return codes

    monkeypatch.setattr(LatentSpace, "invert", astray)
    anonymization.anonymize(
        archive, tmp_path / "out.zip", method, archive.select(status=None), anonymization.Plan("m_0", 0, 4)
    )
    rows = FaceArchive(tmp_path / "out.zip").index
    assert rows["status"].tolist() == ["ok", "ok", "refused", "ok", "ok", "ok"]
    assert "diverged" in rows["reason"][2]


def test_stored_codes_equal_computed_codes(world, faces, tmp_path):
    known, archive = LatentSpace(world[1]), FaceArchive(world[0] / "faces.zip")
    codes.write_codes(known, archive, tmp_path / "codes.safetensors")
    stored, fresh = codes.Codes(known, tmp_path / "codes.safetensors").of(faces), codes.Codes(known).of(faces)
    for one, other in zip(stored, fresh, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_codes_are_stored_of_the_faces_that_methods_anonymize(tmp_path):
    splits = {"a": ("test", ""), "b": ("train", "attackers"), "c": ("train", "methods"), "d": ("validation", "")}
    with ArchiveWriter(tmp_path / "faces.zip", metadata={}) as out:
        for name, (split, group) in splits.items():
            row = {"id": name, "source_id": name, "identity": name, "split": split, "group": group}
            out.add(np.zeros((8, 8, 3), np.uint8), row)
    assert codes.select_anonymized(FaceArchive(tmp_path / "faces.zip"))["id"].tolist() == ["a", "b"]


def test_inversion_of_another_generator_is_refused(world, tmp_path):
    _, paths = world
    other = _generator.load(paths["generator"])
    other.input.input.add_(1.0)
    _generator.save(tmp_path / "generator.safetensors", other, kit.ARCHITECTURE)
    with pytest.raises(CheckpointError, match="another backbone 'generator'"):
        LatentSpace({**paths, "generator": tmp_path / "generator.safetensors"})


@pytest.mark.parametrize(("deterministic", "fitting"), [(False, 20), (True, 16)])
def test_batch_size_fits_into_the_memory_and_is_that_of_the_kind_of_gpu_if_deterministic(
    world, monkeypatch, deterministic, fitting
):
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: deterministic)
    method, peaks = falco(world), iter([3_000, 5_000])  # each additional image takes 2,000 bytes
    answers = {"reset_peak_memory_stats": None, "memory_allocated": 1_000, "mem_get_info": (50_000, 80_000)}
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, lambda answer=answer: answer)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: next(peaks))
    assert method._largest_batch == fitting  # 80 % of 50,000 or 40 % of 80,000, by 2,000
    assert (method._optimization_batch(7), method.choose_batch_size(7)) == (7, 7)  # on a CPU: the whole input
    assert falco(world, {"batch": 3})._optimization_batch(7) == 3
    method._space.device = torch.device("cuda")
    assert method.choose_batch_size(7) == fitting, "the batches of a set are full"
    assert method._optimization_batch(fitting + 4) == fitting // 2 + 2, "equal parts"


def test_a_generator_of_two_sizes_draws_the_results_large(tmp_path):
    """`random_generated` stands for all methods with a latent space; the head for 256 pixels is empty here."""
    checkpoint = tmp_path / "generator.safetensors"
    params = loading.load(Path(__file__).parents[2], "photo_evening").backbones["generator"]
    network = random_face.build_without_head()
    _generator.save_head(checkpoint, network, params)
    method = RandomGenerated(
        RandomGenerated.Params(psi=0.5), RandomGenerated.Variant(), Resources(backbones={"generator": checkpoint})
    )
    draw = method.enlarge()
    faces = kit.faces(1, size=256)
    assert method.anonymize(faces, 0).shape == (1, 3, 256, 256)
    (name,) = faces.ids
    with torch.no_grad():
        z = seeding.make_generator(0, "random_generated", name).standard_normal((1, 512), dtype=np.float32)
        codes = network.broadcast(network.truncate(network.map(torch.from_numpy(z)), 0.5))
        expected = to_uint8(network.synthesize_large(codes).clamp(-1, 1).numpy())[0]
    assert np.abs(draw(name).astype(int) - expected).mean() < 1


def test_the_row_that_its_author_calls_attributes_alone_runs_the_attribute_loss_alone(root):
    """Table 1, "Ours (ID+attributes)": a mislabel (docs/falco.md)."""
    (row,) = [row for row in reference.load(root / "reference/falco/table1.yaml").rows if "ID+attributes" in row.title]
    variant = loading.load(root, "paper").methods["falco"].variants[row.variant]
    assert variant.identity == 0 < variant.attributes


@pytest.fixture
def random_codes():
    draw = torch.Generator().manual_seed(0)
    mixed = torch.randn(4000, 6, generator=draw) @ torch.randn(6, 6, generator=draw) + 1
    return functional.leaky_relu(mixed, 0.2)  # as a mapping ends


def test_coordinates_are_standard_normal(random_codes):
    coordinates = PNSpace(random_codes)(random_codes)
    torch.testing.assert_close(coordinates.mean(0), torch.zeros(6), atol=1e-3, rtol=0)
    torch.testing.assert_close(coordinates.T.cov(), torch.eye(6), atol=1e-3, rtol=0)


def test_a_step_that_no_random_face_takes_is_far(random_codes):
    """A direction in which random codes do not vary at all counts as one of a hundredth of the largest deviation."""
    flat = torch.cat([random_codes, torch.zeros(len(random_codes), 1)], 1)
    space = PNSpace(flat)
    step = torch.zeros(7)
    step[6] = 0.1
    largest = torch.linalg.eigvalsh(functional.leaky_relu(random_codes, 5.0).T.cov().double())[-1].sqrt().item()
    moved = (space(step) - space(torch.zeros(7))).norm()
    assert moved.item() == pytest.approx(0.1 / (0.01 * largest), rel=0.2)


def test_codes_of_each_layer_are_measured_alike(random_codes):
    space, several = PNSpace(random_codes), random_codes[:10].view(5, 2, 6)
    torch.testing.assert_close(space(several), space(random_codes[:10]).view(5, 2, 6))
