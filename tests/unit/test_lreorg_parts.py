"""LReOrg: the invertible network, the losses and the anonymizers of codes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from masquerade.core.errors import ParameterError
from masquerade.methods._privacy import ExponentialMechanism, LaplaceMechanism
from masquerade.methods.lreorg import anonymizers, training
from masquerade.methods.lreorg.network import CDFNet, DisentanglementBlock, LinearBlock


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
