"""LReOrg: the invertible network, swap training, the anonymizers, and hidden, kept and recovered keywords."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch.nn import functional

from masquerade.backbones._recognition import training as _recognition
from masquerade.backbones.generator import training as _generator
from masquerade.backbones.inversion import training as _inversion
from masquerade.backbones.semantics import network as _semantics
from masquerade.core import discovery, fingerprints, seeding
from masquerade.core.errors import CheckpointError, ParameterError, PictureError
from masquerade.core.images import ArchiveWriter, FaceArchive, to_uint8
from masquerade.methods import Resources
from masquerade.methods._latent.space import LatentSpace
from masquerade.methods._latent.store import Table
from masquerade.methods._privacy import ExponentialMechanism, LaplaceMechanism
from masquerade.methods.lreorg import anonymizers, losses, reader, training
from masquerade.methods.lreorg.keywords import Vocabulary
from masquerade.methods.lreorg.method import LReOrg
from masquerade.methods.lreorg.settings import Keyword
from masquerade.networks.cdfnet import CDFNet, DisentanglementBlock, LinearBlock
from masquerade.networks.ir_se import IRSE
from masquerade.training import checkpoints
from masquerade.training.job import TrainingJob

SIZE, STYLE = 32, 12
WORDS = ["black", "blond", "hair", "man", "old", "person", "woman", "young"]
KEYWORDS = {
    "identity": {"condition": "person", "template": "", "contents": []},
    "gender": {"condition": "man woman", "template": "a $.", "contents": ["man", "woman"]},
    "age": {"condition": "young old", "template": "a $ person.", "contents": ["young", "old"]},
}
COLOR = {"color": {"condition": "hair", "template": "$ hair", "contents": ["black", "blond"]}}
WEIGHTS = {
    "swapped_identity": 24.0, "perceptual": 1.2, "latent": 3.0, "information": 10.0, "kept_identity": 0.2,
    "swapped_attribute": 30.0, "others": 1.0, "distribution": 1.0,
}  # fmt: skip
KNOBS = {
    "keywords": KEYWORDS, "blocks": 2, "hidden": 8, "growth": 4, "limit": 2.0, "truncation": 1.0,
    "faces": 40, "losses": WEIGHTS, "steps": 6, "batch": 4, "pictures_every": 2, "code_batch": 8, "reader_steps": 20,
    "inverted": 0.0, "reader_every": 0, "reader_faces": 10,
    "optimiser": "muon", "learning_rate": 0.01, "betas": [0.5, 0.99], "cooldown": 0.5, "ema": 0.0, "samples_every": 3,
}  # fmt: skip
VARIANT = {
    "hide": ["identity"], "keep": ["gender", "age"], "further": COLOR, "identity": "group", "groups": 6, "nearest": 3,
    "farthest": 6, "epsilon": 1.0, "sensitivity": "measured", "sampler": "seeded",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints of small networks with random weights, fakes, and an archive of smooth noise."""
    folder = tmp_path_factory.mktemp("lreorg")
    torch.manual_seed(0)
    architecture = {"channels": [16, 16, 16, 8], "style": STYLE, "mapping": 2, "mapping_rate": 1.0}
    generator = _generator.build(architecture)
    _generator.measure_mean(generator, 0)
    _generator.save(folder / "generator.safetensors", generator, architecture)
    shape = {"kind": "e4e", "linear": False, "input_size": 32, "widths": [8, 8, 8, 8, 8], "units": [1, 1, 1, 1]}
    mean = generator.latent_avg.expand(generator.layers, -1).contiguous()
    inverter = _inversion.build(shape, fingerprints.md5(folder / "generator.safetensors"), mean)
    facts = {**shape, "generator": inverter.generator}
    checkpoints.save_checkpoint(folder / "inversion.safetensors", {"inverter": inverter}, facts)
    text = {"vocabulary": "captions", "words": WORDS, "context": 8, "width": 8, "layers": 1, "heads": 2}
    vision = {"image_size": 32, "patch": 16, "width": 8, "layers": 1, "heads": 2, "embedding": 8, "stem": []}
    facts = {**vision, "activation": "gelu", "text": text, **_semantics.OURS}
    checkpoints.save_checkpoint(folder / "semantics.safetensors", {"clip": _semantics.build(facts)}, facts)
    narrow = {"widths": [8, 8, 8, 8, 8], "units": [1, 1, 1, 1], "input_size": 32}
    recogniser = _recognition.Recogniser(IRSE(32, narrow["widths"], narrow["units"]), 32)
    checkpoints.save_checkpoint(
        folder / "identity.safetensors", {"network": recogniser.network}, {**narrow, "identities": 2}
    )
    draw = np.random.default_rng(0)
    with ArchiveWriter(folder / "faces.zip", {"size": SIZE}) as out:
        for number in range(4):
            picture = np.kron(draw.integers(0, 256, (4, 4, 3)), np.ones((8, 8, 1))).astype(np.uint8)
            out.add(picture, {"id": f"f{number}", "identity": f"p{number}", "split": "test"})
        for number in range(4, 16):
            picture = np.kron(draw.integers(0, 256, (4, 4, 3)), np.ones((8, 8, 1))).astype(np.uint8)
            out.add(picture, {"id": f"f{number}", "identity": f"p{number}", "split": "train"})
    with torch.no_grad():
        drawn = generator.map(torch.randn(60, STYLE))
    columns = Table({"codes": drawn, "features": torch.randn(60, 8)})  # features of several contents
    facts = {"generator": fingerprints.md5(folder / "generator.safetensors")}
    checkpoints.save_checkpoint(folder / "fakes.safetensors", {"fakes": columns}, facts)
    return folder


def backbones(folder):
    return {name: folder / f"{name}.safetensors" for name in LReOrg.needs}


def job(folder, name, log=None, picture=None):
    return TrainingJob(
        folder / "faces.zip", backbones(folder), folder / f"{name}.safetensors", folder / f"{name}.pt", 0, 1,
        log or (lambda step, values: None), picture or (lambda label, pixels: None),
        people="train",
    )  # fmt: skip


def knobs(**changes):
    return LReOrg.Params(**{**KNOBS, **changes, "losses": {**WEIGHTS, **changes.pop("losses", {})}})


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

    @settings(deadline=None, max_examples=20)
    @given(st.integers(0, 10**6))
    def test_backward_undoes_forward_in_single_precision(self, seed):
        network = random_network(seed).float()
        codes, condition = torch.randn(8, 5, 6), torch.randn(8, 4)
        _, back = network.fuse(*network.disentangle(codes, condition), condition)
        torch.testing.assert_close(back, codes, rtol=1e-4, atol=1e-4)

    def test_another_keyword_does_not_restore_the_codes(self):
        network, codes = random_network(0), torch.randn(4, 6).double()
        one, other = torch.randn(2, 4, 4).double()
        _, back = network.fuse(*network.disentangle(codes, one), other)
        assert (back - codes).abs().max() > 1e-3

    def test_untrained_network_leaves_most_of_the_code_in_the_residual_and_can_learn(self):
        torch.manual_seed(0)
        codes, condition = torch.randn(50, 6), torch.randn(50, 4)
        network = CDFNet(6, 4, 2, 8, 4)
        key, residual = network.disentangle(codes, condition)
        assert 0 < key.square().mean() < residual.square().mean() / 4
        _, swapped = network.fuse(key.roll(1, 0), residual, condition)
        (swapped - codes.roll(1, 0)).square().mean().backward()
        still = [name for name, weight in network.named_parameters() if not weight.grad.any()]
        assert still == ["blocks.1.psi_3.out.bias"]  # its term is added last and subtracted first: no gradient

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
        exchanged = losses.swapped_identity(original, torch.stack([self.b, self.a]))
        unchanged = losses.swapped_identity(original, original)
        # Eq. 6: d(I2, I1') + d(I1, I2') - d(I1, I1') - d(I2, I2') = 0 + 0 - 1 - 1, and 1 + 1 - 0 - 0
        assert exchanged.item() == pytest.approx(-2)
        assert unchanged.item() == pytest.approx(2)
        assert losses.kept_identity(original, original).item() == pytest.approx(0)
        assert losses.kept_identity(original, torch.stack([self.b, self.a])).item() == pytest.approx(2)

    def test_codes_are_compared_by_their_euclidean_distance(self):
        original = torch.zeros(2, 2)
        swapped = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
        assert losses.latent(original, swapped).item() == pytest.approx(5 + 1)  # Eq. 7, one pair

    def test_attribute_losses_are_equations_9_and_10(self):
        original = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()  # D(I_1, t), D(I_2, t)
        swapped = torch.tensor([[0.3, 0.7], [0.6, 0.4]]).log()  # of I_1', I_2'
        # Eq. 9, 10: -sum_j D(I_1, t_j) log D(I_2', t_j) + D(I_2, t_j) log D(I_1', t_j)
        expected = -(0.9 * np.log(0.6) + 0.1 * np.log(0.4) + 0.2 * np.log(0.3) + 0.8 * np.log(0.7))
        assert losses.swapped_attribute(original, swapped).item() == pytest.approx(expected, rel=1e-6)
        kept = -(0.9 * np.log(0.3) + 0.1 * np.log(0.7) + 0.2 * np.log(0.6) + 0.8 * np.log(0.4))
        assert losses.others(original, swapped).item() == pytest.approx(kept, rel=1e-6)

    def test_equal_maps_have_no_perceptual_distance(self):
        maps = [torch.randn(4, 3, 8, 8), torch.randn(4, 6, 4, 4)]
        assert losses.perceptual(maps, maps).item() == 0
        assert losses.perceptual(maps, [2 * part for part in maps]).item() == pytest.approx(2)


class TestAnonymizers:
    @pytest.fixture
    def features(self):
        draw = np.random.default_rng(0)
        centres = np.repeat(4 * draw.standard_normal((5, 8)), 20, axis=0)
        return (centres + 0.3 * draw.standard_normal((100, 8))).astype(np.float32)

    def test_groups_are_the_clusters_of_the_features(self, features):
        groups = anonymizers.Groups(features, 5)
        parts = groups.labels.reshape(5, 20)
        assert (parts == parts[:, :1]).all()
        assert len(set(parts[:, 0])) == 5
        np.testing.assert_allclose(groups.averages[parts[2, 0]], features[40:60].mean(0), rtol=1e-5)

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
        np.testing.assert_allclose(mechanism.probabilities(-distances[ranked[1:]]), probabilities)

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

    @settings(deadline=None, max_examples=30)
    @given(st.floats(0.1, 20), st.lists(st.floats(-2, 0), min_size=2, max_size=8), st.data())
    def test_no_score_moves_a_probability_by_more_than_epsilon(self, epsilon, scores, data):
        """Scores that differ by the sensitivity at most change no probability by more than the factor e^epsilon."""
        moved = [min(0.0, max(-2.0, score + data.draw(st.floats(-2, 2)))) for score in scores]
        mechanism = ExponentialMechanism(epsilon, anonymizers.DIAMETER, "seeded")
        first, second = (mechanism.probabilities(np.array(values)) for values in (scores, moved))
        assert np.abs(np.log(first / second)).max() <= epsilon + 1e-9

    def test_attribute_becomes_the_farthest_content(self, features):
        contents = np.repeat([0, 1, 2, 1, 0], 20)
        one = anonymizers.FarthestContentAnonymizer.of(features, np.eye(3)[contents])
        averages = np.stack([features[contents == number].mean(0) for number in range(3)])
        for row in (5, 45, 70):
            expected = averages[np.linalg.norm(averages - features[row], axis=1).argmax()]
            made = one.anonymize(np.repeat(features[row][None, None], 4, 1), ["a"], 0)
            assert made.shape == (1, 4, 8)
            np.testing.assert_allclose(made[0], np.repeat(expected[None], 4, 0), rtol=1e-6)

    def test_content_averages_are_weighted_by_probability(self, features):
        one = anonymizers.FarthestContentAnonymizer.of(features[:2], np.array([[0.75, 0.2], [0.25, 0.8]]))
        expected = [0.75 * features[0] + 0.25 * features[1], 0.2 * features[0] + 0.8 * features[1]]
        np.testing.assert_allclose(one.averages, expected, rtol=1e-6)

    def test_near_faces_get_the_same_farthest_group(self, features):
        groups = anonymizers.Groups(features, 5)
        made = anonymizers.FarthestGroupAnonymizer(groups).anonymize(features[:20, None], [""] * 20, 0)
        assert (made == made[0]).all()

    def test_noise_keeps_the_length_and_loses_the_direction(self, features):
        mechanism = LaplaceMechanism(1.0, 2 * np.sqrt(8), "bound", "seeded")
        made = anonymizers.LaplaceAnonymizer(mechanism, 3.0).anonymize(
            features[:50, None], [str(n) for n in range(50)], 0
        )
        np.testing.assert_allclose(np.linalg.norm(made[:, 0], axis=1), 3.0, rtol=1e-5)
        cosines = (anonymizers.directions(made) * anonymizers.directions(features[:50])).sum(1)
        assert abs(cosines.mean()) < 0.3

    def test_noise_is_one_vector_for_all_layers_and_a_large_budget_keeps_the_mean(self, features):
        layered = np.stack([features[:6], features[6:12]], axis=1)
        mechanism = LaplaceMechanism(1e6, 2 * np.sqrt(8), "bound", "seeded")
        made = anonymizers.LaplaceAnonymizer(mechanism, 3.0).anonymize(layered, list("abcdef"), 0)
        assert np.array_equal(made[:, 0], made[:, 1])
        expected = 3.0 * anonymizers.directions(layered.mean(axis=1))
        np.testing.assert_allclose(made[:, 0], expected, atol=1e-3)


class TestTraining:
    def test_samples_show_a_swap_of_every_keyword(self, folder):
        pictures = {}
        LReOrg.train(knobs(steps=1), job(folder, "samples", picture=pictures.__setitem__))
        assert next(iter(pictures.values())).shape == (6 * SIZE, 5 * SIZE, 3)  # two faces and three keywords

    def test_identity_and_attribute_steps_alternate(self, folder):
        curves = {}
        params = knobs(steps=24, pictures_every=3)
        LReOrg.train(params, job(folder, "curves", log=lambda step, values: curves.setdefault(step, values)))
        shared = {"latent", "information", "others", "distribution", "total"}
        assert set(curves[0]) == {f"identity.{name}" for name in shared | {"swapped_identity", "perceptual"}}  # Eq. 5
        attribute = shared | {"kept_identity", "swapped_attribute"}
        assert set(curves[23]) == {f"codes.attribute.{name}" for name in attribute}  # Eq. 8, without pictures
        assert set(curves[20]) == {f"codes.identity.{name}" for name in shared | {"swapped_identity"}}

    def test_losses_fall(self, folder):
        curves = {}
        params = knobs(
            steps=121, truncation=1.0, losses={"perceptual": 0.0, "others": 0.0, "latent": 0.1, "information": 0.1}
        )
        LReOrg.train(params, job(folder, "falling", log=lambda step, values: curves.setdefault(step, values)))
        first, last = (curves[step]["identity.swapped_identity"] for step in (0, 120))
        assert last < first - 0.2

    def test_trained_reader_predicts_features_from_codes(self, folder):
        space = LatentSpace(backbones(folder))
        codes = space.generator.map(torch.randn(200, STYLE)).detach()
        identities = functional.normalize(codes @ torch.randn(STYLE, 512))
        features = torch.tanh(codes @ torch.randn(STYLE, 8))
        untrained = reader.agreement(reader.train(codes, identities, features, 0, 0), codes, identities, features)
        read = reader.agreement(reader.train(codes, identities, features, 60, 0), codes, identities, features)
        assert read["identity"] > max(0.8, untrained["identity"])
        assert read["features"] > max(0.8, untrained["features"])

    def test_half_of_the_faces_can_be_inverted_photographs(self, folder, caplog):
        pictures = {}
        params = knobs(steps=4, faces=16, inverted=0.5)
        LReOrg.train(params, job(folder, "inverted", picture=pictures.__setitem__))
        assert next(iter(pictures.values())).shape == (6 * SIZE, 5 * SIZE, 3)
        space = LatentSpace(backbones(folder))
        archive, given = FaceArchive(folder / "faces.zip"), job(folder, "inverted")
        codes = training.inverted(archive, space, 8, given)
        train = space.invert(archive.load("train").images)
        assert len(codes) == 8
        assert all((code == train).all(dim=(1, 2)).any() for code in codes)
        identity = discovery.load("backbones", "identity").load(given.backbones["identity"])
        task = training.SwapTask(params, space, identity, 0, codes)
        assert task.codes.shape == (16, space.generator.layers, STYLE)
        assert torch.equal(task.codes[8:], codes)
        assert (task.codes[:8] == task.codes[:8, :1]).all()  # drawn from W: one style for all layers
        drawn = to_uint8(space.draw(codes).numpy()).astype(int)
        assert np.abs(task.pictures[8:].astype(int) - drawn).max() <= 1
        assert len(training.inverted(archive, space, 20, given)) == 12  # all that there are
        assert "ask for 20 photographs, and the group 'train' has 12" in caplog.text

    def test_reader_learns_from_swapped_codes_during_the_training(self, folder):
        space = LatentSpace(backbones(folder))
        identity = discovery.load("backbones", "identity").load(backbones(folder)["identity"])
        params = knobs(reader_every=3, reader_faces=24, pictures_every=2, reader_steps=60)
        task = training.SwapTask(params, space, identity, 0)
        with torch.no_grad():
            for weight in task.network.parameters():
                weight.mul_(1.5)  # swapped codes that lie far from those of training faces
        before = [weight.clone() for weight in task.reader.parameters()]
        for step in (1, 2):
            task.step(step)
        assert all(map(torch.equal, before, task.reader.parameters()))
        task.step(3)
        assert not any(map(torch.equal, before, task.reader.parameters()))
        assert not any(weight.requires_grad for weight in task.reader.parameters())
        assert set(task.modules) == {"network", "reader"}
        with pytest.raises(ValidationError, match="there is no reader"):
            knobs(reader_every=3, pictures_every=1)

    def test_interrupted_training_with_a_changing_reader_goes_on_as_if_it_had_not_stopped(self, folder, monkeypatch):
        params = knobs(steps=8, reader_every=2, reader_faces=12)
        LReOrg.train(params, job(folder, "whole"))
        step = training.SwapTask.step

        def stopped(task, number):
            if number == 5:
                raise RuntimeError("pulled the plug")
            return step(task, number)

        with monkeypatch.context() as patch:
            patch.setenv("MASQUERADE_SAVE_EVERY_SECONDS", "0")
            patch.setattr(training.SwapTask, "step", stopped)
            with pytest.raises(RuntimeError, match="plug"):
                LReOrg.train(params, job(folder, "halves"))
        assert job(folder, "halves").state.is_file()
        LReOrg.train(params, job(folder, "halves"))
        assert job(folder, "halves").checkpoint.read_bytes() == job(folder, "whole").checkpoint.read_bytes()

    def test_a_keyword_without_contents_cannot_be_trained(self):
        with pytest.raises(ValidationError, match="without contents: pose"):
            knobs(keywords={**KEYWORDS, "pose": {"condition": "pose", "template": "", "contents": []}})
        with pytest.raises(ValidationError, match="keywords must have 'identity'"):
            knobs(keywords={name: KEYWORDS[name] for name in ("gender", "age")})
        with pytest.raises(ValidationError, match=r"a template with \$"):
            Keyword(condition="age", template="a person", contents=["young", "old"])

    def test_updates_on_codes_need_a_trained_reader(self):
        with pytest.raises(ValidationError, match="reader_steps must be 1 or more"):
            knobs(pictures_every=2, reader_steps=0)
        assert knobs(pictures_every=1, reader_steps=0).pictures_every == 1

    def test_sentences_fill_the_template(self):
        assert Keyword(**KEYWORDS["gender"]).sentences == ["a man.", "a woman."]

    def test_content_probabilities_are_those_of_clip(self, folder):
        space = LatentSpace(backbones(folder))
        words = Vocabulary(space.semantics, knobs().keywords)
        features = torch.randn(5, 8)
        scale = space.semantics.network.logit_scale.exp()
        expected = (scale * functional.normalize(features) @ space.semantics.text(["a man.", "a woman."]).T).softmax(-1)
        torch.testing.assert_close(words.log_shares("gender", features).exp(), expected)

    def test_identity_and_maps_come_from_one_pass(self, folder):
        from masquerade.core import discovery

        identity = discovery.load("backbones", "identity").load(folder / "identity.safetensors")
        images = torch.rand(2, 3, SIZE, SIZE) * 2 - 1
        vectors, maps = training.observed(identity, images)
        torch.testing.assert_close(vectors, identity(images))
        assert [tuple(part.shape[1:]) for part in maps] == [(8, 32, 32), (8, 16, 16), (8, 8, 8)]
        assert not identity.network.input_layer._forward_hooks


class TestMethod:
    def test_hidden_identity_is_that_of_a_drawn_face(self, folder, trained, faces):
        """Without recovery, the fused key feature is that of a drawn face."""
        method = built(folder, trained, keep=[])
        drawn = method._separated(method._fakes.codes, "identity")[0].numpy()
        real, _ = method._codes.of(faces)
        key, _ = method._separated(real, "identity")
        changed = method._anonymizers["identity"].anonymize(key.numpy(), list(faces.ids), 0)
        assert all((drawn == row).all(1).any() for row in changed[:, 0])

    def test_kept_keyword_has_the_features_of_the_original(self, folder, trained, faces):
        method = built(folder, trained, keep=["age"])
        original, _ = method._codes.of(faces)
        hidden = method._hidden(faces, 0)
        kept = method._recovered(hidden, faces)
        expected = method._fused(method._separated(original, "age")[0], method._separated(hidden, "age")[1], "age")
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
        torch.testing.assert_close(saved["age"], method._separated(original, "age")[0])
        without_age = method._fused(saved["age"], method._separated(saved["code"], "age")[1], "age")
        expected = method._fused(saved["gender"], method._separated(without_age, "gender")[1], "gender")
        np.testing.assert_array_equal(method.recover_saved(saved, None), method._drawn(expected))

    def test_views_are_other_draws_and_the_steps_of_recovery(self, folder, trained, faces):
        views = built(folder, trained).views(faces)
        assert set(views) == {"draw.1", "draw.2", "draw.3", "plus.gender"}
        seed = seeding.derive(2, "lreorg", "draw")
        np.testing.assert_array_equal(views["draw.2"], built(folder, trained).anonymize(faces, seed))
        assert not np.array_equal(views["draw.1"], views["draw.2"])
        assert built(folder, trained, keep=[]).views(faces) == {}

    def test_only_the_hidden_identity_is_drawn_again(self, folder, trained, faces):
        views = built(folder, trained, hide=["gender"], keep=["identity", "age"]).views(faces)
        assert set(views) == {"plus.identity"}

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
            ({"further": {"age": KEYWORDS["age"]}}, "age is already a keyword of the training"),
            ({"further": {"hat": {"condition": "hat", "template": "", "contents": []}}, "hide": ["hat"]}, "hat cannot"),
        ],
    )
    def test_wrong_keywords_are_refused_with_a_reason(self, folder, trained, changes, message):
        with pytest.raises(ParameterError, match=message):
            built(folder, trained, **changes)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"hide": ["age"], "keep": ["age"]}, "age cannot be hidden and kept"),
            ({"hide": [], "keep": []}, "hide must name a keyword"),
            ({"hide": ["age", "age"], "keep": []}, "age is named twice"),
        ],
    )
    def test_contradicting_variants_are_refused(self, changes, message):
        with pytest.raises(ValidationError, match=message):
            LReOrg.Variant(**{**VARIANT, **changes})

    @pytest.mark.parametrize("name", ["generator", "semantics", "identity"])
    def test_checkpoint_of_other_backbones_is_refused(self, folder, trained, tmp_path, name):
        files, other = backbones(folder), tmp_path / "other.safetensors"
        other.write_bytes(files[name].read_bytes() + b" ")
        with pytest.raises(CheckpointError, match=f"another {name}"):
            training.load(knobs(), trained, {**files, name: other}, LatentSpace(backbones(folder)))

    def test_checkpoint_of_another_width_is_refused(self, folder, trained):
        with pytest.raises(CheckpointError, match="does not fit CDFNet"):
            training.load(knobs(hidden=16), trained, backbones(folder), LatentSpace(backbones(folder)))

    def test_picture_of_another_size_is_refused(self, folder, trained, faces):
        from masquerade.core.images import Faces

        small = Faces(faces.images[:, :, ::2, ::2].copy(), faces.index)
        with pytest.raises(PictureError, match="16 x 16 pixels"):
            built(folder, trained).anonymize(small, 0)
