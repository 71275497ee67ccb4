"""Intervals: against scipy's BCa, the jackknife, Jeffreys' and Newcombe's formulas, and simulated shares."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from masquerade.core.statistics import (
    combine_intervals,
    compute_interval,
    compute_weighted_means,
    correlate_draws,
    count_people,
    is_extreme,
    people_weights,
)
from masquerade.metrics._values import share
from masquerade.papers import shares
from masquerade.papers.context import Context
from masquerade.papers.declarations import Measure
from masquerade.papers.measured import DIFFERENCE, Measured, Results, combine
from masquerade.params.blocks import StandIns
from masquerade.pipeline import evaluation

PEOPLE = np.array([f"person {number}" for number in range(50)])
SKEWED = np.random.default_rng(3).exponential(size=len(PEOPLE))


@pytest.fixture(scope="module")
def draws():
    """The mean of SKEWED in 20,000 bootstrap samples of the people."""
    return compute_weighted_means(SKEWED, people_weights(PEOPLE, 20_000))


class TestBCa:
    def test_interval_of_a_skewed_mean_is_that_of_scipy(self, draws):
        """Ends within a tenth of the standard deviation; those of the percentile interval are farther away."""
        expected = stats.bootstrap(
            (SKEWED,), np.mean, method="BCa", n_resamples=20_000, rng=np.random.default_rng(0)
        ).confidence_interval
        ends = compute_interval(SKEWED.mean(), draws)
        assert ends == pytest.approx(tuple(expected), abs=0.1 * draws.std())
        assert abs(np.quantile(draws, 0.975) - expected.high) > 0.15 * draws.std()

    def test_skewness_of_the_draws_over_six_is_the_acceleration_of_the_jackknife(self, draws):
        deviations = SKEWED - SKEWED.mean()
        jackknife = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
        assert stats.skew(draws) / 6 == pytest.approx(jackknife, rel=0.1)

    @pytest.mark.parametrize(("covered", "z"), [(0.95, 1.959964), (0.9, 1.644854), (1 - 0.05 / 6, 2.638257)])
    def test_interval_of_symmetric_draws_is_that_of_their_quantiles(self, covered, z):
        normal = stats.norm.ppf((np.arange(40_000) + 0.5) / 40_000)
        assert compute_interval(0.0, normal, covered=covered) == pytest.approx((-z, z), abs=0.01)

    @pytest.mark.parametrize(
        ("value", "draws", "ends"),
        [
            (0.4, np.full(20, 0.4), (0.4, 0.4)),
            (0.3, np.full(20, 0.4), (0.3, 0.4)),
            (2.0, np.linspace(0, 1, 41), (0.025, 2.0)),
            (-1.0, np.linspace(0, 1, 41), (-1.0, 0.975)),
            (0.5, np.array([np.nan, np.nan]), None),
            (0.5, np.empty(0), None),
            (0.5, None, None),
        ],
    )
    def test_a_value_that_no_correction_reaches_extends_the_percentile_interval(self, value, draws, ends):
        found = compute_interval(value, draws)
        assert found is None if ends is None else found == pytest.approx(ends)

    @given(st.lists(st.floats(-10, 10, width=32), min_size=20, max_size=20), st.integers(0, 19))
    def test_an_interval_has_its_ends_in_order_and_among_the_draws(self, numbers, place):
        """Also with few draws of any skewness."""
        low, high = compute_interval(numbers[place], np.array(numbers))
        assert min(numbers) <= low <= high <= max(numbers)

    def test_draws_of_32_bits_tie_with_their_value(self):
        """Ties count half, so the middle of symmetric draws is not biased: its interval is the percentile one."""
        rounded = np.float32([0.5] * 10 + [0.7] * 80 + [0.9] * 10).astype(np.float64)
        assert compute_interval(0.7, rounded, covered=0.5) == pytest.approx((0.7, 0.7))
        assert compute_interval(0.7, rounded) == pytest.approx((0.5, 0.9))


class TestShares:
    @pytest.mark.parametrize("people", [1, 12, 72])
    def test_share_of_0_or_1_has_the_interval_of_jeffreys(self, people):
        none, every = (compute_interval(value, np.full(20, value), people) for value in (0.0, 1.0))
        assert none[0] == 0.0
        assert stats.beta(0.5, people + 0.5).cdf(none[1]) == pytest.approx(0.975)
        assert every == pytest.approx((1 - none[1], 1.0))

    @pytest.mark.parametrize("people", [12, 72])
    def test_mean_of_tiny_probabilities_is_no_surer_than_a_share_of_0(self, people):
        """As the share found among many strangers, of which no sample of the people shows more than a tiny part."""
        tiny, below_one = 1e-20, 1 - 1e-9
        low, high = compute_interval(tiny, np.linspace(0, 2 * tiny, 20), people)
        assert low == pytest.approx(0.0, abs=tiny)
        assert high == pytest.approx(stats.beta(0.5, people + 0.5).ppf(0.975))
        _, some = combine([Measured(tiny, draws=np.linspace(0, 2 * tiny, 20), people=people)] * 2, DIFFERENCE)
        assert some is not None
        assert some[1] > 1 / people
        assert compute_interval(below_one, np.full(20, below_one), people)[0] == pytest.approx(1 - high)

    def test_share_is_extreme_if_less_than_half_a_person_is_found_or_missed(self):
        """Of 12 people with three images each, half a person is one and a half images."""
        assert [found for found in range(37) if is_extreme(found / 36, 12)] == [0, 1, 35, 36]

    def test_share_between_has_the_interval_of_its_draws(self, draws):
        assert compute_interval(0.7, draws, 12) == compute_interval(0.7, draws)

    def test_images_of_one_person_count_once(self):
        names = np.repeat(PEOPLE[:12], 4)
        weights = people_weights(names, 20)
        assert count_people(weights) == 12
        several, once = share(np.ones(48), weights), share(np.ones(12), people_weights(PEOPLE[:12], 20))
        assert several.people == once.people == 12
        assert several.interval == once.interval
        half = share(np.where(np.arange(48) < 24, 1.0, np.nan), weights)
        assert half.people == 6, "people without a measured image are not counted"

    @pytest.mark.parametrize("found", [0, 5, 12])
    def test_tables_read_the_interval_of_a_share_from_the_file_of_its_cell(self, found):
        """Two seeds with the same faces: the people are the same people."""
        value = share((np.arange(12) < found) * 1.0, people_weights(PEOPLE[:12], 20))
        plain = evaluation.evaluate({"rate": SimpleNamespace(compute=lambda _: {"": value})}, None)
        name = {"dataset": "lfw", "method": "falco", "variant": "m_0"}
        cells = [{"cell": name | {"seed": seed}, "metrics": plain} for seed in (0, 1)]
        context = Context("tiny", (0, 1), StandIns(datasets={}, judges={}), "abc1234")
        read = Results(cells, {}, context).measure(("lfw", "falco", "m_0"), Measure(metric="rate"))
        assert (plain["rate"][""]["people"], read.people) == (12, 12)
        assert read.interval == pytest.approx(value.interval, abs=1e-6)


class TestCombinations:
    @pytest.mark.parametrize(
        ("first", "second", "low", "high"),
        [
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((6, 7), (2, 7), 0.0582, 0.8062),
            ((5, 56), (0, 29), -0.0381, 0.1926),
            ((0, 10), (0, 20), -0.1611, 0.2775),
            ((0, 10), (0, 10), -0.2775, 0.2775),
            ((10, 10), (0, 20), 0.6791, 1.0000),
            ((10, 10), (0, 10), 0.6075, 1.0000),
        ],
    )
    def test_difference_of_shares_is_the_hybrid_score_of_newcombe(self, first, second, low, high):
        """Newcombe 1998 (Statistics in Medicine 17), Table II, method 10, from Wilson's intervals."""
        sides = [stats.binomtest(*counts).proportion_ci(method="wilson") for counts in (first, second)]
        values = np.array([found / of for found, of in (first, second)])
        assert combine_intervals(values, np.array([1.0, -1.0]), np.array(sides), np.eye(2)) == pytest.approx(
            (low, high), abs=5e-5
        )

    def test_contrast_of_normal_values_has_its_exact_interval(self):
        """v +- z sqrt(c' S c), with the covariances S of correlated values."""
        draw = np.random.default_rng(0)
        samples = draw.normal(size=(4, 300)) + draw.normal(size=300)
        coefficients, values = np.array([1.5, 0.5, -0.5, -1.5]), samples.mean(axis=1)
        halves = 1.96 * samples.std(axis=1)
        ends = combine_intervals(
            values, coefficients, np.stack([values - halves, values + halves], axis=1), correlate_draws(samples)
        )
        half = 1.96 * np.sqrt(coefficients @ np.cov(samples, bias=True) @ coefficients)
        assert ends == pytest.approx((coefficients @ values - half, coefficients @ values + half))

    def test_draws_that_do_not_vary_are_not_correlated(self):
        samples = np.array([[1.0, 1.0, 1.0, 1.0], [0.1, 0.2, np.nan, 0.4], [0.2, 0.4, 0.0, 0.8]])
        assert correlate_draws(samples) == pytest.approx(np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]]))


class TestPairedShares:
    @pytest.mark.parametrize(("found", "size"), [(0, 10), (9, 10), (15, 148), (10, 10)])
    @pytest.mark.parametrize("covered", [0.95, 0.99])
    def test_score_interval_is_that_of_scipy(self, found, size, covered):
        expected = stats.binomtest(found, size).proportion_ci(covered, method="wilson")
        assert shares.find_score_interval(found / size, size, covered) == pytest.approx(tuple(expected))

    def test_correlation_is_that_of_the_table_with_half_a_person_more_in_each_cell(self):
        """20 of 30 people answer yes to both questions, 4 to the first alone, 1 to the second alone, 5 to none."""
        first, second = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [20, 4, 1, 5], axis=0).T
        plain = np.corrcoef(first, second)
        cells = np.array([20.5, 4.5, 1.5, 5.5])
        corners = np.array([[1, 1], [1, 0], [0, 1], [0, 0]]) * 1.0
        means = cells @ corners / cells.sum()
        centered = corners - means
        covariance = (centered.T * cells) @ centered / cells.sum()
        expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
        found = shares.limit_correlations(np.array([24 / 30, 21 / 30]), np.array([30.0, 30.0]), plain)
        assert found == pytest.approx(np.array([[1, expected], [expected, 1]]))

    def test_effective_people_of_a_plain_share_are_about_its_people(self):
        weights = people_weights(np.array([f"person {number}" for number in range(200)]), 20_000)
        answers = (np.arange(200) < 60) * 1.0
        draws = compute_weighted_means(answers, weights)
        assert shares.count_effective(0.3, draws, 200) == pytest.approx(200, rel=0.05)
        noisy = draws + np.random.default_rng(0).normal(scale=draws.std(), size=len(draws))
        assert shares.count_effective(0.3, noisy, 200) == pytest.approx(100, rel=0.05), "a threshold that varies"
        assert shares.count_effective(1.0, np.ones(100), 12) == 12

    @pytest.mark.parametrize("chance", [0.5, 0.9, 0.98])
    @pytest.mark.parametrize("common", [0.0, 0.5, 0.9])
    def test_difference_that_is_not_there_is_found_in_about_2_5_percent(self, chance, common):
        """On one side, of 600 sets of 72 people with two answers each, which have ``common`` of their variance."""
        people, sets = 72, 600
        draw, limit = np.random.default_rng(0), stats.norm.ppf(chance)
        weights = people_weights(np.array([f"person {number}" for number in range(people)]), 400)
        found = 0
        for _ in range(sets):
            parts = draw.normal(size=(people, 1)), draw.normal(size=(people, 2))
            answers = (np.sqrt(common) * parts[0] + np.sqrt(1 - common) * parts[1] < limit) * 1.0
            both = [
                Measured(column.mean(), draws=compute_weighted_means(column, weights), people=people)
                for column in answers.T
            ]
            found += combine(both, DIFFERENCE)[1][0] > 0
        assert found <= 0.045 * sets, "2.5 % and three standard errors"
