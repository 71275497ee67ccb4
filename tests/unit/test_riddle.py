"""RiDDLE: network, password, losses, optimizer, training, and recovery with right and wrong keys."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import kit
from masquerade.assets import packaged
from masquerade.backbones.inversion import RefinementSettings
from masquerade.core import keys
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import FaceArchive, to_float, to_uint8
from masquerade.methods import Resources
from masquerade.methods.latent.space import LatentSpace
from masquerade.methods.riddle import derive_password, training
from masquerade.methods.riddle.method import Riddle
from masquerade.methods.riddle.network import CORRECTABLE, LatentEncryptor, divide_layers
from masquerade.methods.riddle.training import EVERY, Ranger
from masquerade.methods.riddle.visible import LONGEST, VisibleCodes

SIZE, STYLE = kit.SIZE, 12
WEIGHTS = {"lpips": 0.0, "reversed_identity": 1.0, "identity_recovery": 1.0, "pixels": 0.05}
FURTHER = dict.fromkeys(("layout", "latents", "reversed_latents", "distribution", "reinverted"), 1.0)
SMALL_SCALE = {"target": "original", "pixels_of": "recovered", "pairs": "six", "pictures_every": 2, "code_batch": 8}
KNOBS = {
    "groups": [4, 4, 6], "width": 16, "heads": 4, "hidden": 32, "margin": 0.1, "steps": 6, "batch": 2,
    "learning_rate": 0.002, "cooldown": 0.5, "ema": 0.0, "samples_every": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints of small networks with random weights, and an archive of smooth noise."""
    folder = tmp_path_factory.mktemp("riddle")
    kit.networks(folder)
    splits = [{"split": "train" if number < 8 else "validation" if number < 10 else "test"} for number in range(14)]
    kit.archive(folder / "faces.zip", kit.noise(14, tile=8), rows=splits, size=SIZE)
    return folder


def backbones(folder):
    return job(folder, "").backbones


def job(folder, name, **more):
    return kit.job(folder, name, Riddle.needs, **more)


def knobs(losses=None, small_scale=None, **changes):
    """KNOBS with changes; ``losses`` are those of the paper and further ones."""
    every = WEIGHTS | FURTHER | (losses or {})
    further = {"losses": {name: every[name] for name in FURTHER}}
    paper = {name: every[name] for name in WEIGHTS}
    return Riddle.Params(**KNOBS | changes, losses=paper, small_scale=SMALL_SCALE | (small_scale or {}) | further)


CODES = {
    "losses": {"reversed_identity": 0.0, "identity_recovery": 0.0, "layout": 0.0, "reinverted": 0.0, "latents": 4.0},
    "small_scale": {"pictures_every": 1000, "code_batch": 48, "optimizer": "muon"},
    "steps": 250, "learning_rate": 0.01, "hidden": 64, "width": 24,
}  # fmt: skip


@pytest.fixture(scope="module")
def method(folder):
    """A method that was trained for a few seconds on codes."""
    given, params = job(folder, "trained"), knobs(**CODES)
    Riddle.train(params, given)
    return Riddle(params, Riddle.Variant(), Resources(given.checkpoint, backbones(folder)))


@pytest.fixture(scope="module")
def faces(folder):
    return FaceArchive(folder / "faces.zip").load("test")


def key(*purpose):
    return keys.Secret().experiment(0, *purpose)


def each(faces, *purpose):
    """One key for all faces."""
    return [key(*purpose)] * len(faces)


@given(st.integers(4, 18))
def test_groups_cover_all_layers_and_none_is_empty(layers):
    sizes = divide_layers((4, 4, 6), layers)
    assert sum(sizes) == layers
    assert min(sizes) >= 1
    assert divide_layers((4, 4, 6), 14) == [4, 4, 6]  # 256 pixels: the paper's
    assert divide_layers((4, 4, 6), 10) == [3, 3, 4]  # 64 pixels
    with pytest.raises(ValueError, match="cannot be divided"):
        divide_layers((1, 1, 1, 1, 1), 4)


def test_group_depends_only_on_its_layers_and_the_password():
    torch.manual_seed(0)
    network = LatentEncryptor(8, STYLE, width=16, hidden=16).eval()  # groups of 2, 3 and 3
    codes, secret = torch.randn(1, 8, STYLE), torch.randn(1, STYLE)
    changed = codes.clone()
    changed[:, 3] += 1
    first, second = network(codes, secret), network(changed, secret)
    same = (first == second).all(dim=2)[0]
    assert same.tolist() == [True, True, False, False, False, True, True, True]
    assert not torch.isclose(network(codes, secret + 1), first).any()


def test_password_is_the_normal_quantile_of_the_derived_bytes():
    derived = np.frombuffer(keys.expand(b"k" * 32, 8 * 7, "riddle password"), dtype=">u8")
    expected = stats.norm.ppf(((derived >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53)
    np.testing.assert_allclose(derive_password(b"k" * 32, 7), expected, rtol=1e-6)


@given(st.binary(min_size=32, max_size=32))
def test_password_is_finite_and_one_bit_makes_another(secret):
    z, near = derive_password(secret, 64), derive_password(keys.Secret().near(secret)["bit"], 64)
    assert z.dtype == np.float32
    assert np.isfinite(z).all()
    assert np.array_equal(z, derive_password(secret, 64))
    assert (z != near).all()


def test_only_similarity_above_the_margin_adds_to_the_loss():
    known, hidden = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]])
    opposite = -known
    cosines = training.compare_different(known, hidden, opposite, hidden, opposite)
    expected = [0.6, -1.0, -0.6, 0.6, -1.0, -0.6]  # by hand, in the order of `different`
    torch.testing.assert_close(cosines[:, 0], torch.tensor(expected))
    assert training.reversed_identity_loss(cosines, 0.1).item() == pytest.approx((0.5 + 0.5) / 6)
    assert training.reversed_latent_loss(cosines, 0.1).item() == pytest.approx((4 * 0.5 + 2 * 0.9) / 6)


def test_identity_recovery_loss_is_the_cosine_distance():
    recovered, original = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert training.identity_recovery_loss(recovered, original).item() == pytest.approx(0.1)  # 1 - (1 + 0.8) / 2


def test_published_identity_losses_are_those_worked_by_hand():
    known, hidden, other = (torch.tensor([row]) for row in ([1.0, 0.0], [0.6, 0.8], [0.0, 1.0]))
    recovered, unlocked, unlocked_other = (torch.tensor([row]) for row in ([0.8, 0.6], [0.0, -1.0], [0.8, -0.6]))
    reversing, recovering = training.published_identity_losses(
        known, hidden, other, recovered, unlocked, unlocked_other, 0.1
    )
    # enc: cosines 0.6 and 0; dec: -0.6, 0.28, 0 and 0.8; nothing counts for less than the margin
    assert reversing.item() == pytest.approx((0.6 + 0.1) / 2 + (0.1 + 0.28 + 0.1 + 0.8) / 4)
    assert recovering.item() == pytest.approx(1 - 0.8)
    _, opposite = training.published_identity_losses(known, hidden, other, -known, unlocked, unlocked_other, 0.1)
    assert opposite.item() == pytest.approx(0.9)


def test_published_pixel_loss_is_the_sum_over_the_five_pictures():
    target = torch.zeros(2, 3, 4, 4)
    five = torch.stack([torch.full_like(target, value) for value in (0.1, -0.2, 0.3, -0.4, 0.5)])
    five[0, 1] = 0.3  # of the first image of a pair: mean of 0.1 and 0.3
    assert training.pixel_loss(five, target).item() == pytest.approx(0.2 + 0.2 + 0.3 + 0.4 + 0.5)


def flat_distance(made, target):
    """In place of LPIPS: the largest difference of each image, (N, 1, 1, 1)."""
    return (made - target).abs().amax(dim=(1, 2, 3), keepdim=True)


def test_update_as_published_compares_five_pictures_with_the_inverted_one(folder, monkeypatch):
    """The terms of one update, computed again from the images that the generator drew."""
    monkeypatch.setattr(training, "load_loss", lambda device, knob, trunk: {"vgg": flat_distance}[trunk])
    drawn, curves = [], {}
    draw = LatentSpace(backbones(folder)).generator.synthesize

    def synthesize(self, codes):
        drawn.append(draw(codes))
        return drawn[-1]

    monkeypatch.setattr("masquerade.networks.stylegan2.Generator.synthesize", synthesize)
    published = dict.fromkeys(FURTHER, 0.0) | {"lpips": 1.0}
    paper = {"target": "inverted", "pixels_of": "five", "pairs": "published", "pictures_every": 1}
    Riddle.train(
        knobs(published, paper, steps=1),
        job(folder, "as_published", log=lambda step, values: curves.update(values)),
    )
    (target, five), count = (part.detach() for part in drawn[:2]), 2
    assert target.shape[0] == count
    assert five.shape[0] == 5 * count
    apart = (five.unflatten(0, (5, count)) - target).abs()
    assert curves["pixels"] == pytest.approx(apart.mean(dim=(1, 2, 3, 4)).sum().item(), rel=1e-5)
    assert curves["lpips"] == pytest.approx(apart.amax(dim=(2, 3, 4)).mean(dim=1).sum().item(), rel=1e-5)
    assert curves["total"] == pytest.approx(
        sum(weight * curves[name] for name, weight in (WEIGHTS | {"lpips": 1.0}).items()), rel=1e-5
    )


def test_layout_loss_compares_colors_and_ignores_fine_detail():
    flat = torch.zeros(1, 3, SIZE, SIZE)
    fine = torch.ones(1, 3, SIZE, SIZE)
    fine[..., ::2] = -1
    assert training.layout_loss(fine, flat).item() == 0
    assert training.layout_loss(flat + 0.25, flat).item() == pytest.approx(0.25)


def test_distribution_loss_is_zero_for_equal_sets_and_grows_with_distance():
    torch.manual_seed(0)
    first, second = torch.randn(400, 6), torch.randn(400, 6)
    near, far = training.distribution_loss(first, second), training.distribution_loss(first, second + 2)
    assert abs(near.item()) < 0.02 < far.item()


def test_ranger_is_radam_that_steps_back_half_of_the_way_every_sixth_step():
    torch.manual_seed(0)
    mine = torch.nn.Parameter(torch.randn(5))
    start, theirs = mine.detach().clone(), torch.nn.Parameter(mine.detach().clone())
    ranger, radam = Ranger([mine], lr=0.1), torch.optim.RAdam([theirs], lr=0.1, betas=(0.95, 0.999), eps=1e-5)
    for number in range(1, EVERY + 1):
        for weight, optimizer in ((mine, ranger), (theirs, radam)):
            weight.grad = torch.arange(5.0) * number
            optimizer.step()
        expected = theirs if number < EVERY else start + 0.5 * (theirs - start)
        torch.testing.assert_close(mine, expected, msg=f"step {number}")
    assert "slow" in ranger.state_dict()["state"][0]


def test_error_for_missing_perceptual_weights_names_the_parameter(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(packaged, "STAND_INS", {})
    for trunk, role in (("vgg", "vgg16"), ("alex", "alexnet")):
        with pytest.raises(CheckpointError, match=rf"{role}.* methods.riddle.params.losses.lpips"):
            Riddle.train(knobs({"lpips": 1.0}, {"perceptual": trunk}), job(folder, "lpips"))


def code_error(method, faces, saved, secret):
    codes = method._space.invert(faces.images)
    return (method._transform(torch.from_numpy(saved), [secret] * len(saved)) - codes).square().mean().item()


def test_right_key_decrypts_and_wrong_or_nearly_right_keys_do_not(method, faces):
    saved = method.save(faces, 0, each(faces))
    right = code_error(method, faces, saved, key())
    assert method.save(faces, 1, each(faces)).dtype == np.float32
    for wrong in (key("wrong"), *keys.Secret().near(key()).values()):
        assert code_error(method, faces, saved, wrong) > 1.5 * right


def test_picture_is_drawn_from_the_saved_code(method, faces):
    drawn = method._space.draw(torch.from_numpy(method.save(faces, 0, each(faces)))).numpy()
    np.testing.assert_array_equal(method.anonymize(faces, 0, each(faces)), drawn)


def test_recovery_needs_only_picture_and_key(method, faces):
    picture = to_float(to_uint8(method.anonymize(faces, 0, each(faces))))
    expected = method.recover_saved(method._space.invert(picture).numpy(), each(faces))
    np.testing.assert_array_equal(method.recover(picture, each(faces)), expected)


class TestVisibleCodes:
    LAYERS, COUNT = 3, 4

    @pytest.fixture
    def codes(self):
        """Codes that differ in six directions, two of them little."""
        draw = np.random.default_rng(0)
        scales, directions = np.array([4.0, 3.0, 2.0, 1.0, 0.01, 0.001]), draw.normal(size=(6, self.LAYERS * STYLE))
        flat = 5 + (draw.normal(size=(200, 6)) * scales) @ directions
        return torch.from_numpy(flat.astype(np.float32)).unflatten(1, (self.LAYERS, STYLE))

    @pytest.fixture
    def visible(self, codes):
        visible = VisibleCodes(self.LAYERS, STYLE, self.COUNT)
        visible.measure(codes)
        return visible

    def test_directions_are_the_principal_ones(self, codes, visible):
        centered = codes.flatten(1).numpy() - codes.flatten(1).numpy().mean(axis=0)
        _, values, rows = np.linalg.svd(centered, full_matrices=False)
        expected = rows[: self.COUNT] * values[: self.COUNT, None] / np.sqrt(len(codes))
        found = visible.directions.numpy()
        signs = np.sign((expected * found).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(found, signs * expected, rtol=1e-3, atol=1e-4)

    def test_faces_have_coordinates_of_deviation_1(self, codes, visible):
        coordinates = visible.find_coordinates(codes)
        torch.testing.assert_close(coordinates.mean(dim=0), torch.zeros(self.COUNT), atol=1e-4, rtol=0)
        torch.testing.assert_close(coordinates.square().mean(dim=0), torch.ones(self.COUNT), atol=1e-3, rtol=0)
        torch.testing.assert_close(visible.build_codes(coordinates, self.LAYERS), codes, atol=0.2, rtol=0)

    def test_long_codes_get_the_length_of_faces_and_short_ones_stay(self, visible):
        short, long = torch.full((1, self.COUNT), 0.5), torch.full((1, self.COUNT), 5.0)
        kept, cut = (
            visible.find_coordinates(visible(visible.build_codes(part, self.LAYERS))) for part in (short, long)
        )
        torch.testing.assert_close(kept, short, atol=1e-4, rtol=0)
        torch.testing.assert_close(cut, torch.full((1, self.COUNT), LONGEST), atol=1e-4, rtol=0)

    def test_lengthened_codes_keep_their_direction(self, visible):
        short = torch.full((2, self.COUNT), 0.5)
        longer = visible.lengthen(visible.build_codes(short, self.LAYERS), torch.tensor([1.4, 100.0]))
        expected = torch.tensor([[0.7], [LONGEST]]).expand(2, self.COUNT)
        torch.testing.assert_close(visible.find_coordinates(longer), expected, atol=1e-4, rtol=0)

    def test_code_is_read_from_its_image(self, codes, visible):
        """From a start that is wrong by a deviation, with a generator that draws each pixel as a sum of numbers."""
        draw = torch.Generator().manual_seed(0)
        weights = torch.randn(self.LAYERS * STYLE, 3 * SIZE * SIZE, generator=draw) / 300
        generator = SimpleNamespace(
            layers=self.LAYERS, synthesize=lambda codes: (codes.flatten(1) @ weights).unflatten(1, (3, SIZE, SIZE))
        )
        secret = torch.randn(5, self.COUNT, generator=draw)
        images = generator.synthesize(visible.build_codes(secret, self.LAYERS))
        wrong = visible.build_codes(secret + torch.randn(5, self.COUNT, generator=draw), self.LAYERS)
        search = RefinementSettings(
            steps=150, learning_rate=0.1, pixels=1.0, coarse=0.0, perceptual=0.0, prior=0.0, identity=0.0
        )
        found = visible.find_coordinates(visible.read(images, wrong, generator, search))
        torch.testing.assert_close(found, secret, atol=0.05, rtol=0)


@pytest.fixture(scope="module")
def visible_method(folder):
    """A method that encrypts in three directions, trained for a few seconds on codes."""
    given = job(folder, "visible")
    params = knobs(CODES["losses"], CODES["small_scale"] | {"visible": 3, "noise": 0.1}, steps=100, learning_rate=0.01)
    Riddle.train(params, given)
    search = {"steps": 40, "learning_rate": 0.1, "pixels": 1.0, "coarse": 0.0, "perceptual": 0.0, "prior": 0.0,
              "identity": 0.0}  # fmt: skip
    return Riddle(params, Riddle.Variant(search=search), Resources(given.checkpoint, backbones(folder)))


def test_encrypted_codes_lie_in_the_visible_directions(visible_method, faces):
    saved = torch.from_numpy(visible_method.save(faces, 0, each(faces)))
    torch.testing.assert_close(visible_method._network.visible(saved), saved, atol=1e-3, rtol=1e-3)


def test_search_finds_the_code_of_an_image(visible_method, faces):
    """From a start that is wrong by half a deviation."""
    visible, generator = visible_method._network.visible, visible_method._space.generator
    saved = torch.from_numpy(visible_method.save(faces, 0, each(faces)))
    noise = torch.randn(len(faces), 3, generator=torch.Generator().manual_seed(0)) / 2
    start = visible.build_codes(visible.find_coordinates(saved) + noise, saved.shape[1])
    with torch.no_grad():
        images = generator.synthesize(saved)
        found = visible_method._search(images.numpy(), start)
        before, after = ((generator.synthesize(codes) - images).square().mean() for codes in (start, found))
    assert after < 0.1 * before


def test_image_is_read_from_the_answer_of_the_encoder(visible_method, faces):
    images = visible_method.anonymize(faces, 0, each(faces))
    found = visible_method._search(images, visible_method._space.encode(images))
    expected = visible_method.recover_saved(found.numpy(), each(faces))
    np.testing.assert_array_equal(visible_method.recover(images, each(faces)), expected)


def test_correction_finds_the_code_that_was_encrypted(visible_method, faces, monkeypatch):
    """Nearer to the original's code than the answer of the network, and encrypted to what was read."""
    monkeypatch.setattr("masquerade.methods.riddle.network.CORRECTABLE", np.inf)
    original, decrypted, corrected, distances = correct_answers(visible_method, faces, each(faces))

    def measure(codes):
        find = visible_method._network.visible.find_coordinates
        return (find(codes) - find(original)).norm()

    assert measure(corrected) < 0.9 * measure(decrypted)
    assert distances(corrected).mean() < 0.01 * distances(decrypted).mean()


def test_answer_that_is_not_encrypted_to_nearly_what_was_read_is_left_as_it_is(visible_method, faces):
    _, decrypted, corrected, distances = correct_answers(visible_method, faces, each(faces, "wrong"))
    unchanged = (corrected == decrypted).all(dim=2).all(dim=1)
    assert unchanged.tolist() == (distances(decrypted) > CORRECTABLE).tolist()
    assert 0 < unchanged.sum() < len(faces)  # so the test has both kinds


def correct_answers(method, faces, password_keys):
    """Codes of originals, encrypted under one key, decrypted under others, corrected; and the distance that decides."""
    network, passwords = method._network, method._find_passwords(password_keys)
    find = network.visible.find_coordinates
    original = network.visible(torch.from_numpy(method._codes.w_plus(faces).numpy()))
    with torch.no_grad():
        encrypted = method._transform(original, each(faces))
        decrypted = method._transform(encrypted, password_keys)

    def distances(codes):
        with torch.no_grad():
            return (find(network(codes, passwords)) - find(encrypted)).square().mean(dim=1)

    return original, decrypted, network.correct(decrypted, encrypted, passwords, 100), distances


@pytest.mark.parametrize("variant", [{"correction_steps": 1}])
def test_correction_without_directions_is_refused(variant):
    with pytest.raises(ParameterError, match=r"correction_steps.*small_scale\.visible"):
        Riddle(knobs(), Riddle.Variant(**variant), Resources())


def test_search_without_directions_is_refused():
    search = {"steps": 1, "learning_rate": 0.1, "pixels": 1.0, "coarse": 0.0, "perceptual": 0.0, "prior": 0.0,
              "identity": 0.0}  # fmt: skip
    with pytest.raises(ParameterError, match=r"small_scale\.visible"):
        Riddle(knobs(), Riddle.Variant(search=search), Resources())


def test_noise_without_directions_is_refused():
    with pytest.raises(ValueError, match=r"needs small_scale\.visible"):
        knobs(small_scale={"noise": 0.1})
