"""LReOrg: the invertible network, losses, anonymizers, swap training, and hidden, kept and recovered keywords."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch.nn import functional

import kit
from masquerade.core import discovery, fingerprints, seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive
from masquerade.methods import Resources
from masquerade.methods._privacy import ExponentialMechanism, LaplaceMechanism
from masquerade.methods.latent.codes import Table
from masquerade.methods.latent.space import LatentSpace
from masquerade.methods.lreorg import anonymizers, training
from masquerade.methods.lreorg.method import LReOrg
from masquerade.methods.lreorg.network import CDFNet, DisentanglementBlock, LinearBlock, Vocabulary, train_reader
from masquerade.training import checkpoints


def random_network(seed, width=6, condition=4, blocks=3, spread=0.5):
    """A network whose last layers are not zero."""
    torch.manual_seed(seed)
    network = CDFNet(width, condition, blocks, hidden=8, growth=4).double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=spread / weight.shape[-1] ** 0.5)
    return network


class TestNetwork:
    @settings(deadline=None, max_examples=40)
    @given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([(), (1,), (7,)]), st.floats(0.1, 30.0))
    def test_backward_undoes_forward_to_float_precision(self, seed, count, layers, size):
        network = random_network(seed)
        codes, condition = size * torch.randn(count, *layers, 6).double(), torch.randn(count, 4).double()
        key, residual = network.disentangle(codes, condition)
        assert key.shape == residual.shape == codes.shape
        lost, back = network.fuse(key, residual, condition)
        torch.testing.assert_close(back, codes, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(lost, torch.zeros_like(lost), rtol=0, atol=1e-9 * size)

    def test_another_keyword_does_not_restore_the_codes(self):
        network, codes = random_network(0), torch.randn(4, 6).double()
        one, other = torch.randn(2, 4, 4).double()
        _, back = network.fuse(*network.disentangle(codes, one), other)
        assert (back - codes).abs().max() > 1e-3

    def test_block_is_equations_1_and_2(self):
        block = DisentanglementBlock(5, 3, 8, 4, limit=2.0)
        with torch.no_grad():
            for weight in block.parameters():
                weight.normal_(std=0.3)
        h1, h2, k = torch.randn(4, 5), torch.randn(4, 5), torch.randn(4, 3)

        def sigma(x):
            return 2.0 * (2 / (1 + torch.exp(-x)) - 1)

        first = h1 + block.phi_1(h2, k)
        second = h2 * torch.exp(sigma(block.phi_2(first, k))) + block.phi_3(first, k)
        first_out = first + block.psi_1(second)
        second_out = second * torch.exp(sigma(block.psi_2(first_out))) + block.psi_3(first_out)
        for result, expected in zip(block(h1, h2, k), (first_out, second_out), strict=True):
            torch.testing.assert_close(result, expected)

    def test_linear_block_is_three_layers_on_the_feature_and_the_condition(self):
        block = LinearBlock(5, 3, 8)
        with torch.no_grad():
            block.out.weight.normal_()
        a, b = torch.randn(2, 5), torch.randn(2, 3)
        both = torch.cat([a @ block.of_feature.weight.T + block.of_feature.bias,
                          b @ block.of_condition.weight.T + block.of_condition.bias], 1)  # fmt: skip
        expected = functional.leaky_relu(both, 0.2) @ block.out.weight.T + block.out.bias
        torch.testing.assert_close(block(a, b), expected)

    def test_style_layers_are_disentangled_one_by_one(self):
        network, codes, condition = random_network(1), torch.randn(3, 4, 6).double(), torch.randn(3, 4).double()
        key, _ = network.disentangle(codes, condition)
        for layer in range(4):
            torch.testing.assert_close(key[:, layer], network.disentangle(codes[:, layer], condition)[0])


class TestLosses:
    """Two pairs of hand-worked numbers: rows are I_1, I_1 of another pair, I_2, I_2 of the other pair."""

    a, b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])

    def test_identity_losses_of_hand_worked_pairs(self):
        original = torch.stack([self.a, self.b])  # one pair
        exchanged = training.swapped_identity_loss(original, torch.stack([self.b, self.a]))
        unchanged = training.swapped_identity_loss(original, original)
        # Eq. 6: d(I2, I1') + d(I1, I2') - d(I1, I1') - d(I2, I2') = 0 + 0 - 1 - 1, and 1 + 1 - 0 - 0
        assert exchanged.item() == pytest.approx(-2)
        assert unchanged.item() == pytest.approx(2)
        assert training.kept_identity_loss(original, original).item() == pytest.approx(0)
        assert training.kept_identity_loss(original, torch.stack([self.b, self.a])).item() == pytest.approx(2)

    def test_codes_are_compared_by_their_euclidean_distance(self):
        original = torch.zeros(2, 2)
        swapped = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
        assert training.latent_loss(original, swapped).item() == pytest.approx(5 + 1)  # Eq. 7, one pair

    def test_attribute_losses_are_equations_9_and_10(self):
        original = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()  # D(I_1, t), D(I_2, t)
        swapped = torch.tensor([[0.3, 0.7], [0.6, 0.4]]).log()  # of I_1', I_2'
        # Eq. 9, 10: -sum_j D(I_1, t_j) log D(I_2', t_j) + D(I_2, t_j) log D(I_1', t_j)
        expected = -(0.9 * np.log(0.6) + 0.1 * np.log(0.4) + 0.2 * np.log(0.3) + 0.8 * np.log(0.7))
        assert training.swapped_attribute_loss(original, swapped).item() == pytest.approx(expected, rel=1e-6)
        kept = -(0.9 * np.log(0.3) + 0.1 * np.log(0.7) + 0.2 * np.log(0.6) + 0.8 * np.log(0.4))
        assert training.other_attributes_loss(original, swapped).item() == pytest.approx(kept, rel=1e-6)

    def test_equal_maps_have_no_perceptual_distance(self):
        maps = [torch.randn(4, 3, 8, 8), torch.randn(4, 6, 4, 4)]
        assert training.perceptual_loss(maps, maps).item() == 0
        assert training.perceptual_loss(maps, [2 * part for part in maps]).item() == pytest.approx(2)


class TestAnonymizers:
    @pytest.fixture
    def features(self):
        draw = np.random.default_rng(0)
        centers = np.repeat(4 * draw.standard_normal((5, 8)), 20, axis=0)
        return (centers + 0.3 * draw.standard_normal((100, 8))).astype(np.float32)

    def test_every_group_has_a_member_even_if_faces_are_equal(self):
        groups = anonymizers.Groups(np.ones((20, 4), dtype=np.float32), 5)
        assert np.bincount(groups.labels, minlength=5).all()

    @pytest.mark.parametrize("sampler", ["seeded", "opendp"])
    def test_groups_are_drawn_with_the_probabilities_of_the_mechanism(self, features, sampler):
        """Chi-squared over the groups of ranks 2 to 5, at epsilon 8, of 4,000 draws of one face."""
        from scipy.stats import chisquare

        groups = anonymizers.Groups(features, 5)
        mechanism = ExponentialMechanism(8.0, anonymizers.DIAMETER, sampler)
        one = anonymizers.GroupAnonymizer(groups, mechanism, 2, 5)
        face, draws = features[3][None, None], 4000
        chosen = one.anonymize(np.repeat(face, draws, 0), [f"draw {number}" for number in range(draws)], 0)
        rows = [np.flatnonzero((features == row[0]).all(1))[0] for row in chosen]
        counts = np.bincount(groups.labels[rows], minlength=5)
        distances = groups.distances(face)[0]
        ranked = np.argsort(distances)
        weights = np.exp(-8.0 * distances[ranked[1:]] / (2 * 2.0))  # exp(epsilon u / (2 Delta u)), u = -distance
        probabilities = weights / weights.sum()
        assert counts[ranked[0]] == 0
        assert probabilities.max() / probabilities.min() > 1.5  # otherwise the draws would look uniform
        assert chisquare(counts[ranked[1:]], draws * probabilities).pvalue > 1e-3

    def test_members_of_the_group_are_equally_likely(self, features):
        from scipy.stats import chisquare

        groups = anonymizers.Groups(features, 5)
        one = anonymizers.GroupAnonymizer(groups, ExponentialMechanism(1.0, 2.0, "seeded"), 5, 5)
        chosen = one.anonymize(np.repeat(features[:1, None], 2000, 0), [str(n) for n in range(2000)], 0)
        counts = [(chosen[:, 0] == row).all(1).sum() for row in features]
        used = [count for count in counts if count]
        assert len(used) == 20
        assert chisquare(used).pvalue > 1e-3

    def test_ranks_that_do_not_exist_are_refused(self, features):
        mechanism = ExponentialMechanism(1.0, 2.0, "seeded")
        with pytest.raises(ParameterError, match="from 1 to the number of groups, 5"):
            anonymizers.GroupAnonymizer(anonymizers.Groups(features, 5), mechanism, 2, 6)
        with pytest.raises(ParameterError, match="Lower `groups`"):
            anonymizers.Groups(features[:3], 5)

    def test_attribute_becomes_the_farthest_content(self, features):
        contents = np.repeat([0, 1, 2, 1, 0], 20)
        one = anonymizers.FarthestContentAnonymizer.from_faces(features, np.eye(3)[contents])
        averages = np.stack([features[contents == number].mean(0) for number in range(3)])
        for row in (5, 45, 70):
            expected = averages[np.linalg.norm(averages - features[row], axis=1).argmax()]
            made = one.anonymize(np.repeat(features[row][None, None], 4, 1), ["a"], 0)
            assert made.shape == (1, 4, 8)
            np.testing.assert_allclose(made[0], np.repeat(expected[None], 4, 0), rtol=1e-6)

    def test_content_averages_are_weighted_by_probability(self, features):
        one = anonymizers.FarthestContentAnonymizer.from_faces(features[:2], np.array([[0.75, 0.2], [0.25, 0.8]]))
        expected = [0.75 * features[0] + 0.25 * features[1], 0.2 * features[0] + 0.8 * features[1]]
        np.testing.assert_allclose(one.averages, expected, rtol=1e-6)

    def test_noise_is_one_vector_for_all_layers_and_a_large_budget_keeps_the_mean(self, features):
        layered = np.stack([features[:6], features[6:12]], axis=1)
        mechanism = LaplaceMechanism(1e6, 2 * np.sqrt(8), "bound", "seeded")
        made = anonymizers.LaplaceAnonymizer(mechanism, 3.0).anonymize(layered, list("abcdef"), 0)
        assert np.array_equal(made[:, 0], made[:, 1])
        expected = 3.0 * anonymizers.unit_directions(layered.mean(axis=1))
        np.testing.assert_allclose(made[:, 0], expected, atol=1e-3)


SIZE, STYLE = kit.SIZE, 12
WORDS = ["black", "blond", "hair", "man", "old", "person", "woman", "young"]
KEYWORDS = {
    "identity": {"condition": "person", "template": "", "contents": []},
    "gender": {"condition": "man woman", "template": "a $.", "contents": ["man", "woman"]},
    "age": {"condition": "young old", "template": "a $ person.", "contents": ["young", "old"]},
}
COLOR = {"color": {"condition": "hair", "template": "$ hair", "contents": ["black", "blond"]}}
WEIGHTS = {
    "swapped_identity": 24.0, "perceptual": 1.2, "latent": 3.0, "information": 10.0, "kept_identity": 0.2,
    "swapped_attribute": 30.0,
}  # fmt: skip
KNOBS = {
    "keywords": KEYWORDS, "blocks": 2, "hidden": 8, "growth": 4, "limit": 2.0,
    "faces": 40, "losses": WEIGHTS, "steps": 6, "batch": 4,
    "inverted": 0.0, "learning_rate": 0.01, "betas": [0.5, 0.99], "ema": 0.0, "samples_every": 3,
}  # fmt: skip
SMALL = {"pictures_every": 2, "code_batch": 8, "reader_steps": 20, "others": 1.0, "cooldown": 0.5}
VARIANT = {
    "hide": ["identity"], "keep": ["gender", "age"], "further": COLOR, "identity": "group", "groups": 6, "nearest": 3,
    "farthest": 6, "epsilon": 1.0, "sensitivity": "measured", "sampler": "seeded",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints of small networks with random weights, fakes, and an archive of smooth noise."""
    folder = tmp_path_factory.mktemp("lreorg")
    paths = kit.networks(folder, WORDS)
    splits = [{"split": "test" if number < 4 else "train"} for number in range(16)]
    kit.archive(folder / "faces.zip", kit.noise(16, tile=8), rows=splits, size=SIZE)
    with torch.no_grad():
        drawn = discovery.load("backbones", "generator").load(paths["generator"]).map(torch.randn(60, STYLE))
    columns = Table({"codes": drawn, "features": torch.randn(60, 8)})  # features of several contents
    metadata = {"generator": fingerprints.md5(paths["generator"])}
    checkpoints.save_checkpoint(folder / "fakes.safetensors", {"fakes": columns}, metadata)
    return folder


def backbones(folder):
    return job(folder, "").backbones


def job(folder, name, **more):
    return kit.job(folder, name, LReOrg.needs, **more)


def knobs(small=None, **changes):
    losses, small_scale = WEIGHTS | changes.pop("losses", {}), SMALL | (small or {})
    return LReOrg.Params(**{**KNOBS, **changes, "losses": losses, "small_scale": small_scale})


@pytest.fixture(scope="module")
def trained(folder):
    given = job(folder, "trained")
    LReOrg.train(knobs(), given)
    return given.checkpoint


def built(folder, trained, **changes):
    resources = Resources(trained, backbones(folder), None, folder / "fakes.safetensors")
    return LReOrg(knobs(), LReOrg.Variant(**{**VARIANT, **changes}), resources)


@pytest.fixture(scope="module")
def faces(folder):
    return FaceArchive(folder / "faces.zip").load("test")


class TestTraining:
    def test_identity_and_attribute_steps_alternate_and_samples_show_a_swap_of_every_keyword(self, folder):
        curves, pictures = kit.Curve(), {}
        params = knobs({"pictures_every": 3}, steps=24)
        LReOrg.train(params, job(folder, "curves", log=curves, picture=pictures.__setitem__))
        shared = {"latent", "information", "others", "total"}
        assert set(curves[0]) == {f"identity.{name}" for name in shared | {"swapped_identity", "perceptual"}}  # Eq. 5
        attribute = shared | {"kept_identity", "swapped_attribute"}
        assert set(curves[23]) == {f"codes.attribute.{name}" for name in attribute}  # Eq. 8, without images
        assert set(curves[20]) == {f"codes.identity.{name}" for name in shared | {"swapped_identity"}}
        assert next(iter(pictures.values())).shape == (6 * SIZE, 5 * SIZE, 3)  # two faces and three keywords

    def test_losses_fall(self, folder):
        curves = kit.Curve()
        weights = {"perceptual": 0.0, "latent": 0.1, "information": 0.1}
        LReOrg.train(knobs({"others": 0.0}, steps=121, losses=weights), job(folder, "falling", log=curves))
        first, last = (curves[step]["identity.swapped_identity"] for step in (0, 120))
        assert last < first - 0.2

    def test_trained_reader_predicts_features_from_codes(self, folder):
        space = LatentSpace(backbones(folder))
        codes = space.generator.map(torch.randn(200, STYLE)).detach()
        identities = functional.normalize(codes @ torch.randn(STYLE, 512))
        features = torch.tanh(codes @ torch.randn(STYLE, 8))
        predicted = train_reader(codes, identities, features, 60, 0)(codes)
        for values, expected in zip(predicted, (identities, features), strict=True):
            assert functional.cosine_similarity(values, expected).mean() > 0.8

    def test_half_of_the_faces_can_be_inverted_photographs(self, folder, caplog):
        params = knobs(steps=4, faces=16, inverted=0.5)
        LReOrg.train(params, job(folder, "inverted"))
        space = LatentSpace(backbones(folder))
        archive, given = FaceArchive(folder / "faces.zip"), job(folder, "inverted")
        codes = training.invert_images(archive, space, 8, given)
        train = space.invert(archive.load("train").images)
        assert sum((code == train).all(dim=(1, 2)).any() for code in codes) == 8
        task = training.SwapTask(params, space, kit.Identity(), 0, codes)
        assert torch.equal(task.codes[8:], codes)
        assert (task.codes[:8] == task.codes[:8, :1]).all()  # drawn from W: one style for all layers
        assert len(training.invert_images(archive, space, 20, given)) == 12  # all that there are
        assert "ask for 20 photographs, and the group 'train' has 12" in caplog.text

    def test_a_keyword_without_contents_cannot_be_trained(self):
        with pytest.raises(ValidationError, match="without contents: pose"):
            knobs(keywords={**KEYWORDS, "pose": {"condition": "pose", "template": "", "contents": []}})
        with pytest.raises(ValidationError, match="keywords must have 'identity'"):
            knobs(keywords={name: KEYWORDS[name] for name in ("gender", "age")})

    def test_content_probabilities_are_those_of_clip(self, folder):
        space = LatentSpace(backbones(folder))
        words = Vocabulary(space.semantics, knobs().keywords)
        features = torch.randn(5, 8)
        scale = space.semantics.network.logit_scale.exp()
        expected = (scale * functional.normalize(features) @ space.semantics.text(["a man.", "a woman."]).T).softmax(-1)
        torch.testing.assert_close(words.log_probabilities("gender", features).exp(), expected)

    def test_identity_and_maps_come_from_one_pass(self, folder):
        identity = discovery.load("backbones", "identity").load(folder / "identity.safetensors")
        images = torch.rand(2, 3, SIZE, SIZE) * 2 - 1
        vectors, maps = training.encode_identity(identity, images)
        torch.testing.assert_close(vectors, identity(images))
        assert [tuple(part.shape[1:]) for part in maps] == [(8, 32, 32), (8, 16, 16), (8, 8, 8)]
        assert not identity.network.input_layer._forward_hooks


class TestMethod:
    def test_hidden_identity_is_that_of_a_drawn_face(self, folder, trained, faces):
        """Without recovery, the fused key feature is that of a drawn face."""
        method = built(folder, trained, keep=[])
        drawn = method._separate(method._fakes.codes, "identity")[0].numpy()
        real, _ = method._codes.of(faces)
        key, _ = method._separate(real, "identity")
        changed = method._anonymizers["identity"].anonymize(key.numpy(), list(faces.ids), 0)
        assert all((drawn == row).all(1).any() for row in changed[:, 0])

    def test_kept_keyword_has_the_features_of_the_original(self, folder, trained, faces):
        method = built(folder, trained, keep=["age"])
        original, _ = method._codes.of(faces)
        hidden = method._hide(faces, 0)
        kept = method._restore(hidden, faces)
        expected = method._fuse(method._separate(original, "age")[0], method._separate(hidden, "age")[1], "age")
        torch.testing.assert_close(kept, expected)

    def test_order_of_keywords_changes_the_result(self, folder, trained, faces):
        one = built(folder, trained, hide=["gender", "age"], keep=[]).anonymize(faces, 0)
        other = built(folder, trained, hide=["age", "gender"], keep=[]).anonymize(faces, 0)
        assert not np.array_equal(one, other)

    def test_a_new_keyword_needs_no_training(self, folder, trained, faces):
        usual = built(folder, trained).anonymize(faces, 0)
        assert not np.array_equal(built(folder, trained, hide=["identity", "color"]).anonymize(faces, 0), usual)

    def test_saved_features_are_fused_back_in_reverse_order(self, folder, trained, faces):
        method = built(folder, trained, hide=["gender", "age"], keep=[])
        original, _ = method._codes.of(faces)
        saved = method.save(faces, 0, None)
        assert set(saved) == {"code", "gender", "age"}
        torch.testing.assert_close(saved["age"], method._separate(original, "age")[0])
        without_age = method._fuse(saved["age"], method._separate(saved["code"], "age")[1], "age")
        expected = method._fuse(saved["gender"], method._separate(without_age, "gender")[1], "gender")
        np.testing.assert_array_equal(method.recover_saved(saved, None), method._draw_images(expected))

    def test_views_are_other_draws_and_the_steps_of_recovery(self, folder, trained, faces):
        views = built(folder, trained).views(faces)
        assert set(views) == {"draw.1", "draw.2", "draw.3", "plus.gender"}
        seed = seeding.derive_seed(2, "lreorg", "draw")
        np.testing.assert_array_equal(views["draw.2"], built(folder, trained).anonymize(faces, seed))
        assert not np.array_equal(views["draw.1"], views["draw.2"])
        assert built(folder, trained, keep=[]).views(faces) == {}
        shown = built(folder, trained, hide=["gender"], keep=["identity", "age"])
        assert set(shown.views(faces)) == {"plus.identity"}  # only a hidden identity is drawn again

    def test_statement_holds_budget_ranks_and_limits(self, folder, trained):
        statement = built(folder, trained, sampler="opendp").statement()
        assert statement["epsilon"] == 1.0
        assert statement["sensitivity"] == 2.0
        assert statement["ranks"] == "3-6"
        assert "between no others" in statement["guarantee"]
        assert "not differentially private" in statement["guarantee"]
        assert "None" in built(folder, trained).statement()["guarantee"]
        assert "None" in built(folder, trained, hide=["age"], keep=[]).statement()["guarantee"]
        json.dumps(statement)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"hide": ["religion"]}, "no keyword religion. There are: identity, gender, age, color"),
            ({"further": {"hat": {"condition": "hat", "template": "", "contents": []}}, "hide": ["hat"]}, "hat cannot"),
        ],
    )
    def test_wrong_keywords_are_refused_with_a_reason(self, folder, trained, changes, message):
        with pytest.raises(ParameterError, match=message):
            built(folder, trained, **changes)
