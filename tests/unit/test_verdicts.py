"""Tests of claims: margins worked out by hand, claims with missing numbers, and errors in files of claims."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from masquerade.core.errors import ReferenceFileError
from masquerade.core.statistics import compute_weighted_means, encode, people_weights
from masquerade.papers import claims, claims_page, verdicts
from masquerade.papers.context import Context
from masquerade.papers.measured import Measured, Results, combine
from masquerade.params.blocks import StandIns

CONTEXT = Context(
    scale="tiny",
    seeds=(0, 1, 2),
    stand_ins=StandIns(datasets={"celeba_hq": "synthetic_hq"}, judges={"azure": "dlib_face"}),
    commit="abc1234",
    caution="Numbers mean nothing.",
)
ONE = CONTEXT.__class__(**(vars(CONTEXT) | {"seeds": (0,)}))
AZURE = {"metric": "protection_success_rate", "judge": {"name": "Azure Face", "role": "azure"}}
CLAIM = {
    "paper": "falco",
    "name": "a_is_greater",
    "says": "A protects more than B.",
    "source": "Table 1, section 4",
    "dataset": {"name": "CelebA-HQ", "role": "celeba_hq"},
    "measure": AZURE,
    "greater": [{"method": "falco", "variant": "a"}],
    "than": [{"method": "falco", "variant": "b"}],
}


NORMAL = stats.norm.ppf((np.arange(400) + 0.5) / 400)
"""Bootstrap samples with the quantiles of a normal distribution."""


def side(variant, method="falco", **more):
    return {"method": method, "variant": variant, **more}


PAIRS = {"greater": [side("a"), side("c")], "than": [side("b"), side("d")]}
CHAIN = {"descending": [side(name) for name in "abcd"]}


def declared(tmp_path, *changes, drop=()):
    """One claim for each change of CLAIM, written to a file and read again."""
    tree = [{key: value for key, value in (CLAIM | change).items() if key not in drop} for change in changes]
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return claims.load(path)


def share_of(found, people, seed=0):
    """A share of people of whom one image each was counted, with its bootstrap samples."""
    answers = np.random.default_rng(seed).permutation(np.arange(people) < found).astype(float)
    weights = people_weights(np.array([f"person {place}" for place in range(people)]), 400)
    return number(found / people, people, people, draws=encode(compute_weighted_means(answers, weights)), people=people)


def number(value, over=10, of=10, half=0.0, **more):
    """A value whose bootstrap samples lie within ``half`` of it; those of two numbers are independent."""
    value_known = value is not None and np.isfinite(value)
    around = np.random.default_rng(int(1000 * abs(value))).uniform(-half, half, 400) if half else np.zeros(400)
    drawn = {"draws": encode(value + around), "low": value - half, "high": value + half} if value_known else {}
    return {"value": value, "over": over, "of": of, "spread": None, "spread_of": "", "note": "", **drawn, **more}


def cell(variant, value, seed=0, method="falco", metrics=None, attempts=None):
    name = {"dataset": "synthetic_hq", "method": method, "variant": variant, "seed": seed}
    value = value if isinstance(value, dict) else number(value)
    metrics = {"protection_success_rate": {"dlib_face": value}} if metrics is None else metrics
    return {"cell": name, "statement": {"faces": 10, "refused": 0}, "metrics": metrics, "attempts": attempts or {}}


def verdict(tmp_path, cells, change=None, skipped=None, context=ONE, drop=()):
    [claim] = declared(tmp_path, change or {}, drop=drop)
    return verdicts.judge([claim], Results(cells, skipped or {}, context))[0]


class TestMargins:
    @pytest.mark.parametrize(
        ("numbers", "compared", "word", "margin", "pair"),
        [
            ((0.9, 0.5, 0.8, 0.6), PAIRS, verdicts.HOLDS, 0.8 - 0.6, "cd"),
            ((0.9, 0.5, 0.4, 0.1), PAIRS, verdicts.FAILS, 0.4 - 0.5, "cb"),
            ((0.9, 0.5, 0.4, 0.1), PAIRS | {"paired": True}, verdicts.HOLDS, 0.4 - 0.1, "cd"),
            ((0.9, 0.7, 0.65, 0.1), CHAIN, verdicts.HOLDS, 0.7 - 0.65, "bc"),
            ((0.9, 0.65, 0.7, 0.1), CHAIN, verdicts.FAILS, 0.65 - 0.7, "bc"),
            ((1.0, 1.0), {}, verdicts.UNDECIDED, 0.0, "ab"),
        ],
    )
    def test_the_margin_is_the_smallest_difference_of_the_compared_pairs(
        self, tmp_path, numbers, compared, word, margin, pair
    ):
        """Of all pairs, of `paired` ones, or of the steps of a chain; equal numbers tell nothing."""
        cells = [cell(name, value) for name, value in zip("abcd", numbers, strict=False)]
        result = verdict(tmp_path, cells, compared, drop=("greater", "than") if "descending" in compared else ())
        assert result.word == word
        assert result.smallest.value == pytest.approx(margin)
        assert [result.sides[place].compared.variant for place in result.smallest.pair] == list(pair)

    def test_numbers_that_a_paper_calls_alike_may_differ_by_what_the_claim_allows(self, tmp_path):
        both = {"greater": [side("a"), side("b")], "than": [side("b"), side("a")], "paired": True}
        allowed = both | {"within": 0.25, "note": "as printed"}
        for low, word, margin in ((0.5, verdicts.FAILS, -0.15), (0.7, verdicts.HOLDS, 0.05)):
            result = verdict(tmp_path, [cell("a", 0.9), cell("b", low)], allowed)
            assert result.word == word
            assert result.smallest.value == pytest.approx(margin)
        assert verdict(tmp_path, [cell("a", 0.9), cell("b", 0.7)], both).word == verdicts.FAILS

    def test_a_margin_whose_interval_contains_0_tells_nothing(self, tmp_path):
        """The half-width of the difference is at most twice that of one number."""
        word = {}
        for margin in (0.3, 0.1, -0.1, -0.3):
            cells = [cell("a", number(0.5 + margin, half=0.1)), cell("b", number(0.5, half=0.1))]
            result = verdict(tmp_path, cells)
            low, high = result.smallest.interval
            assert margin - 0.2 < low < margin < high < margin + 0.2
            word[margin] = result.word, result.reason
        undecided = verdicts.UNDECIDED, "the interval of its margin contains 0"
        assert word == {0.3: (verdicts.HOLDS, ""), 0.1: undecided, -0.1: undecided, -0.3: (verdicts.FAILS, "")}

    def test_two_numbers_of_the_same_people_are_compared_person_by_person(self, tmp_path):
        """Wide intervals that overlap decide a claim if every sample of the people gives the same order."""
        draws = np.linspace(-0.5, 0.5, 400)
        cells = [
            cell(name, number(value) | {"draws": encode(draws + value)}) for name, value in (("a", 0.55), ("b", 0.5))
        ]
        assert verdict(tmp_path, cells).word == verdicts.HOLDS

    def test_a_number_without_an_interval_tells_nothing(self, tmp_path):
        result = verdict(tmp_path, [cell("a", number(0.9, draws=None)), cell("b", 0.1)])
        assert result.word == verdicts.UNDECIDED
        assert "several people" in result.reason

    def test_one_comparison_that_fails_decides_the_claim(self, tmp_path):
        cells = [cell("a", 0.9), cell("b", 0.5), cell("c", number(1.0, half=0.5)), cell("d", 0.95)]
        than = {"than": [side("b"), side("c"), side("d")]}
        assert verdict(tmp_path, cells, than).word == verdicts.FAILS
        assert verdict(tmp_path, cells[:3], {"than": [side("b"), side("c")]}).word == verdicts.UNDECIDED

    def test_equal_shares_of_1_are_not_alike_within_a_thousandth(self, tmp_path):
        """48 of 48 on both sides allow 7 % without a find on one of them (Wilson)."""
        alike = {
            "greater": [side("a"), side("b")],
            "than": [side("b"), side("a")],
            "paired": True,
            "note": "as printed",
        }
        cells = [cell("a", share_of(48, 48)), cell("b", share_of(48, 48))]
        for within, word in ((0.001, verdicts.UNDECIDED), (0.1, verdicts.HOLDS)):
            result = verdict(tmp_path, cells, alike | {"within": within})
            assert result.word == word
            low, high = result.smallest.interval
            assert high - within == pytest.approx(within - low)
            assert 0.05 < within - low < 0.1

    @pytest.mark.parametrize(
        ("found", "word"), [(40, verdicts.HOLDS), (46, verdicts.UNDECIDED), (48, verdicts.UNDECIDED)]
    )
    def test_share_of_1_is_greater_than_another_only_by_more_than_chance(self, tmp_path, found, word):
        """As the exact test of signs: eight people of 48 that differ in one direction tell, two do not."""
        result = verdict(tmp_path, [cell("a", share_of(48, 48)), cell("b", share_of(found, 48))])
        assert result.word == word

    def test_three_people_of_72_decide_nothing(self, tmp_path):
        """71 against 68: the exact test of signs gives p = 0.25, and the bootstrap alone no sample below 0."""
        answers = np.arange(72)[:, None] < [71, 68]
        weights = people_weights(np.array([f"person {place}" for place in range(72)]), 2000)
        draws = [compute_weighted_means(column * 1.0, weights) for column in answers.T]
        assert (draws[0] >= draws[1]).all()
        cells = [
            cell(name, number(found / 72, 72, 72, draws=encode(drawn), people=72))
            for name, found, drawn in zip("ab", (71, 68), draws, strict=True)
        ]
        assert verdict(tmp_path, cells).word == verdicts.UNDECIDED

    def test_one_of_several_differences_that_lies_below_0_by_chance_decides_nothing(self, tmp_path):
        """Its 95 % interval lies below 0, and that of 1 - 0.05 / 4 does not; alone it decides."""
        cells = [cell("a", 0.5), *(cell(name, 0.1) for name in "cde")]
        cells.append(cell("b", number(0.5 + 2.2) | {"draws": encode(0.5 + 2.2 + NORMAL)}))
        assert verdict(tmp_path, cells).word == verdicts.FAILS
        result = verdict(tmp_path, cells, {"than": [side(name) for name in "bcde"]})
        assert result.smallest.interval[1] < 0 < result.smallest.corrected[1]
        assert (result.word, result.reason) == (
            verdicts.UNDECIDED,
            "the interval of its margin lies below 0, but not if corrected for 4 tests",
        )

    def test_every_difference_above_0_needs_no_correction(self, tmp_path):
        """The second word of an intersection-union test is as strict as its weakest part."""
        cells = [cell("a", number(2.2) | {"draws": encode(2.2 + NORMAL)}), *(cell(name, 0.0) for name in "bcde")]
        result = verdict(tmp_path, cells, {"than": [side(name) for name in "bcde"]})
        assert result.smallest.corrected[0] < 0 < result.smallest.interval[0]
        assert result.word == verdicts.HOLDS

    def test_seeds_that_disagree_tell_nothing(self, tmp_path):
        a = [cell("a", value, seed) for seed, value in enumerate((0.9, 0.8, 0.9))]
        b = [cell("b", value, seed) for seed, value in enumerate((0.5, 0.7, 0.6))]
        result = verdict(tmp_path, [*a, *b], context=CONTEXT)
        assert result.word == verdicts.HOLDS
        assert result.smallest.value == pytest.approx((0.4 + 0.1 + 0.3) / 3)
        b[1] = cell("b", 0.99, 1)  # the means are still in order, the second seed is not
        result = verdict(tmp_path, [*a, *b], context=CONTEXT)
        assert result.word == verdicts.UNDECIDED
        low, high = result.smallest.interval
        assert low < 0 < result.smallest.value < high

    def test_a_side_can_have_its_own_measure_and_attempt(self, tmp_path):
        back = {"recovered": {"identity_similarity": {"dlib_face.eyes": number(0.7, over=4, of=4)}}}
        cells = [cell("a", 0.2, attempts=back), cell("b", 0.5)]
        measure = {"metric": "identity_similarity", "part": "eyes", "judge": {"name": "dlib", "role": "dlib_face"}}
        result = verdict(tmp_path, cells, {"greater": [side("a", attempt="recovered", measure=measure)]})
        assert result.word == verdicts.HOLDS
        assert result.smallest.value == pytest.approx(0.2)


class TestSweeps:
    """Numbers that should fall from the first to the last."""

    SWEEP = {"descending": [side(name) for name in "abcde"]}

    def judge(self, tmp_path, numbers, change=None):
        cells = [cell(name, value) for name, value in zip("abcde", numbers, strict=False)]
        return verdict(tmp_path, cells, change or self.SWEEP, drop=("greater", "than"))

    @staticmethod
    def around(value, deviation, seed):
        """A number with normal bootstrap samples, independent of those of other seeds."""
        return number(value) | {"draws": encode(value + deviation * np.random.default_rng(seed).permutation(NORMAL))}

    def test_trend_is_the_least_squares_slope(self, tmp_path):
        numbers = (0.9, 0.7, 0.75, 0.2, 0.1)
        result = self.judge(tmp_path, numbers)
        assert result.trend.value == pytest.approx(-np.polyfit(range(5), numbers, 1)[0])
        assert result.margin == result.trend

    def test_order_of_two_equal_numbers_does_not_undo_a_trend(self, tmp_path):
        """The second step goes up by less than its interval."""
        numbers = [self.around(value, 0.05, seed) for seed, value in enumerate((0.9, 0.7, 0.72, 0.3, 0.1))]
        result = self.judge(tmp_path, numbers)
        assert result.smallest.value < 0
        assert result.smallest.interval[0] < 0 < result.smallest.interval[1]
        assert result.word == verdicts.HOLDS

    @pytest.mark.parametrize(
        ("numbers", "word"),
        [
            ((0.9, 0.3, 0.7, 0.2, 0.1), verdicts.FAILS),  # a step that is reversed for certain
            ((0.1, 0.2, 0.3, 0.4, 0.5), verdicts.FAILS),  # it rises
            ((0.51, 0.49, 0.52, 0.5, 0.49), verdicts.UNDECIDED),
        ],
    )
    def test_reversed_step_or_a_rise_contradicts(self, tmp_path, numbers, word):
        result = self.judge(tmp_path, [self.around(value, 0.04, seed) for seed, value in enumerate(numbers)])
        assert result.word == word

    def test_interval_of_the_trend_is_paired_over_people(self, tmp_path):
        """What moves all numbers alike does not widen it."""
        numbers = [number(value) | {"draws": encode(value + NORMAL)} for value in (0.5, 0.4, 0.3, 0.2, 0.1)]
        result = self.judge(tmp_path, numbers)
        assert result.trend.interval == pytest.approx((0.1, 0.1), abs=1e-6)
        assert result.word == verdicts.HOLDS

    def test_sweep_that_lacks_a_number_does_not_hold(self, tmp_path):
        result = self.judge(tmp_path, (0.9, 0.7, 0.5, 0.3))
        assert (result.trend, result.word) == (None, verdicts.UNDECIDED)
        assert self.judge(tmp_path, (0.3, 0.5, 0.7, 0.9)).word == verdicts.FAILS

    def test_interval_of_a_trend_with_shares_of_1_covers_the_true_one(self, tmp_path):
        """Simulated shares of the same 40 people, of which the first is nearly always 1."""
        chances, draw, covered = np.array([0.999, 0.9, 0.6, 0.3]), np.random.default_rng(0), 0
        claim = claims.Claim(**(CLAIM | {"greater": (), "than": (), "descending": self.SWEEP["descending"][:4]}))
        weights = people_weights(np.array([f"person {place}" for place in range(40)]), 400)
        for _ in range(200):
            answers = (
                draw.normal(size=(40, 4)) + draw.normal(size=(40, 1)) < np.sqrt(2) * stats.norm.ppf(chances)
            ) * 1.0
            numbers = [
                Measured(answers[:, place].mean(), draws=compute_weighted_means(answers[:, place], weights), people=40)
                for place in range(4)
            ]
            low, high = combine(numbers, claim.trend)[1]
            covered += low <= np.dot(claim.trend, chances) <= high
        assert 0.92 * 200 <= covered <= 0.99 * 200


@given(
    a=st.lists(st.integers(0, 10), min_size=3, max_size=3),
    b=st.lists(st.integers(0, 10), min_size=3, max_size=3),
    c=st.lists(st.integers(0, 10), min_size=3, max_size=3),
)
def test_a_claim_holds_if_every_difference_of_every_seed_is_above_zero(a, b, c):
    claim = claims.Claim(**(CLAIM | {"greater": [side("a")], "than": [side("b"), side("c")]}))
    cells = [
        cell(name, value, seed) for name, of in zip("abc", (a, b, c), strict=True) for seed, value in enumerate(of)
    ]
    [result] = verdicts.judge([claim], Results(cells, {}, CONTEXT))
    differences = [[one - other for one, other in zip(a, others, strict=True)] for others in (b, c)]
    if min(map(min, differences)) > 0:
        assert result.word == verdicts.HOLDS
    if min(map(max, differences)) < 0:
        assert result.word == verdicts.FAILS
    if result.word == verdicts.HOLDS:
        assert min(map(sum, differences)) > 0
    if result.word == verdicts.FAILS:
        assert min(map(sum, differences)) < 0


class TestMissingNumbers:
    @pytest.mark.parametrize(
        ("cells", "skipped", "reason"),
        [
            ([cell("a", 1.0)], {("synthetic_hq", "falco", "b"): "not in the matrix at scale tiny"},
             "`falco/b`: not in the matrix at scale tiny"),
            ([cell("a", 1.0)], {}, "`falco/b`: it has no metrics"),
            ([cell("a", 1.0), cell("b", number(None, 0, note="too few strangers."))], {},
             "`falco/b`: too few strangers"),
            ([cell("a", 1.0), cell("b", number(float("nan"), 0))], {}, "`falco/b`: not a number"),
            ([cell("a", 1.0), cell("b", 0, metrics={})], {}, "protection_success_rate was not computed"),
            ([cell("a", 1.0), cell("b", 0, metrics={"protection_success_rate": {"haar": number(0)}})], {},
             "has no value by dlib_face here"),
        ],
    )  # fmt: skip
    def test_a_claim_without_its_numbers_is_undecided(self, tmp_path, cells, skipped, reason):
        result = verdict(tmp_path, cells, skipped=skipped)
        assert result.word == verdicts.UNDECIDED
        assert reason in result.reason
        assert result.margins == ()

    def test_a_missing_attempt_is_the_reason_of_an_undecided_claim(self, tmp_path):
        result = verdict(tmp_path, [cell("a", 1.0), cell("b", 0.0)], {"than": [side("b", attempt="wrong")]})
        assert result.word == verdicts.UNDECIDED
        assert "falco has no attempt 'wrong'" in result.reason

    def test_one_seed_without_a_number_makes_a_claim_undecided(self, tmp_path):
        a = [cell("a", 0.9, seed) for seed in range(3)]
        result = verdict(tmp_path, [*a, cell("b", 0.1, 0), cell("b", 0.2, 2)], context=CONTEXT)
        assert result.word == verdicts.UNDECIDED
        assert "seed 1 was not measured" in result.reason

    def test_a_comparison_that_contradicts_decides_even_if_another_is_missing(self, tmp_path):
        result = verdict(tmp_path, [cell("a", 0.9), cell("b", 0.95)], {"than": [side("b"), side("c")]})
        assert result.word == verdicts.FAILS


class TestParts:
    """A sentence about several attributes, of which a scale may lack some."""

    @pytest.mark.parametrize(
        ("c", "word", "doubt"),
        [(0.4, verdicts.HOLDS, ""), (0.95, verdicts.FAILS, ""), (0.9, verdicts.UNDECIDED, "contains 0; ")],
    )
    def test_what_is_there_decides_and_the_verdict_counts_it(self, tmp_path, c, word, doubt):
        cells, change = [cell("a", 0.9), cell("b", 0.1), cell("c", c)], {"parts": True}
        result = verdict(tmp_path, cells, change | {"than": [side(name) for name in "bcd"]})
        assert result.word == word
        assert result.reason.endswith(f"{doubt}2 of 3 comparisons; left out: `falco/d`: it has no metrics")

    def test_a_number_that_a_cell_failed_to_give_is_no_part_to_spare(self, tmp_path):
        cells = [cell("a", 0.9), cell("b", 0.1), cell("c", number(None, 0, 10, note="no face could be measured"))]
        result = verdict(tmp_path, cells, {"parts": True, "than": [side("b"), side("c")]})
        assert (result.word, result.reason) == (
            verdicts.UNDECIDED, "1 of 2 comparisons; left out: `falco/c`: no face could be measured"
        )  # fmt: skip

    def test_without_any_part_nothing_is_decided(self, tmp_path):
        result = verdict(tmp_path, [cell("a", 0.9)], {"parts": True})
        assert (result.word, result.reason) == (verdicts.UNDECIDED, "`falco/b`: it has no metrics")

    def test_a_sweep_has_no_part_to_spare(self, tmp_path):
        with pytest.raises(ReferenceFileError, match="a sweep has none to spare"):
            declared(tmp_path, CHAIN | {"parts": True}, drop=("greater", "than"))


class TestPage:
    @pytest.fixture
    def judged(self, tmp_path):
        tree = declared(
            tmp_path,
            {},
            {"name": "fails", "says": "B protects more than A.", "greater": CLAIM["than"], "than": CLAIM["greater"]},
            {"name": "undecided", "than": [side("default", "deepprivacy")], "note": "a note"},
            {"name": "chain", "paper": "cao21", "descending": [side("a"), side("b"), side("c")],
             "greater": [], "than": []},
        )  # fmt: skip
        cells = [
            cell("a", number(0.9, spread=0.2, spread_of="folds")), cell("b", 0.5), cell("c", number(0.25, 8, 10)),
        ]  # fmt: skip
        skipped = {("synthetic_hq", "deepprivacy", "default"): "deepprivacy is not built yet"}
        return verdicts.judge(tree, Results(cells, skipped, ONE))

    def test_the_page_counts_the_claims_that_hold_below_the_caution_of_the_scale(self, judged):
        page = claims_page.markdown(judged, ONE)
        counts = [re.sub(r"\s+", "", line) for line in page.splitlines()]
        assert "|`falco`|3|0|1|1|1|" in counts
        assert "|`cao21`|1|0|1|0|0|" in counts
        assert "|all|4|0|2|1|1|" in counts
        assert "> Scale `tiny`. Numbers mean nothing." in page
        assert "`synthetic_hq` takes the place of CelebA-HQ" in page
        assert "Azure Face" in page
        assert "`dlib_face`" in page
        assert "No evaluator of this page took part in the training of a method." in page

    def test_a_row_shows_both_sides_with_denominators_and_the_margin_with_its_interval(self, judged):
        rows = [re.sub(r" +", " ", line) for line in claims_page.markdown(judged, ONE).splitlines()]
        first = next(row for row in rows if row.startswith("| A protects more than B. | **holds** |"))
        assert "| 0.4 [0.4, 0.4] | `falco/a` 0.9 ± 0.2 > `falco/b` 0.5; over 10 |" in first
        assert "`protection_success_rate` by `dlib_face` on `synthetic_hq` | Table 1, section 4 |" in first
        assert any("| **does not hold** | -0.4 [-0.4, -0.4] |" in row for row in rows)
        undecided = next(row for row in rows if "inconclusive**" in row)
        assert "**inconclusive**: `deepprivacy/default`: deepprivacy is not built yet | – |" in undecided
        chain = next(row for row in rows if "(over 8 of 10)" in row)
        assert (
            "`falco/a` 0.9 ± 0.2 (over 10) > `falco/b` **0.5** (over 10) > `falco/c` **0.25** (over 8 of 10)" in chain
        )

    def test_the_page_says_of_which_methods_the_numbers_measure_evasion(self, judged, tmp_path):
        assert "evasion" not in claims_page.markdown(judged, ONE)
        tree = declared(tmp_path, {"name": "poisons", "than": [side("default", "fawkes")]})
        text = claims_page.markdown(verdicts.judge(tree, Results([cell("a", 0.9)], {}, ONE)), ONE)
        assert "- fawkes: these numbers measure evasion" in text

    def test_the_page_marks_every_compared_stand_in_and_says_what_runs(self, judged):
        plain = claims_page.markdown(judged, ONE)
        method = judged[0].sides[0].compared.method
        marked = claims_page.markdown(judged, replace(ONE, latent_stand_ins={method: "a frozen generator draws"}))
        assert "latent stand-in" not in plain
        sides = len(re.findall(rf"`{method}/\w+`", plain))
        assert len(re.findall(rf"`{method}/\w+` \(latent stand-in\)", marked)) == sides > 0
        assert f"{method}: a frozen generator draws." in marked

    def test_the_csv_holds_every_comparison_of_every_seed(self, judged):
        rows = list(csv.DictReader(io.StringIO(claims_page.table(judged, ONE))))
        assert [row["name"] for row in rows] == ["a_is_greater", "fails", "undecided", "chain", "chain"]
        assert [row["difference"] for row in rows] == ["0.4", "-0.4", "", "0.4", "0.25"]
        assert [float(row["margin"]) for row in rows[-2:]] == pytest.approx([0.325, 0.325]), "the mean fall per step"
        assert [float(row["low"]) for row in rows[-2:]] == pytest.approx([0.325, 0.325])
        assert [float(row["compared"]) for row in rows[-2:]] == pytest.approx([0.4, 0.25])
        assert [float(row["compared_low"]) for row in rows[-2:]] == pytest.approx([0.4, 0.25])
        assert rows[2]["reason"] == "`deepprivacy/default`: deepprivacy is not built yet"
        assert rows[2]["greater_value"] == "0.9"
        assert rows[2]["than_value"] == ""
        assert claims_page.longtable(judged, ONE).isascii()


class TestRepeatedClaims:
    """Claims that compare the same numbers where stand-ins take the place of several datasets and evaluators."""

    CONTEXT = replace(
        ONE,
        stand_ins=StandIns(
            datasets={"celeba_hq": "synthetic_hq", "lfw": "synthetic_hq"},
            judges={"azure": "dlib_face", "arcface": "dlib_face"},
        ),
    )
    LFW = {"name": "LFW", "role": "lfw"}
    ARCFACE = {"metric": "protection_success_rate", "judge": {"name": "ArcFace", "role": "arcface"}}

    def judge(self, tmp_path, *changes):
        cells = [cell(name, value) for name, value in (("a", 0.9), ("b", 0.5), ("c", 0.2))]
        return verdicts.judge(declared(tmp_path, *changes), Results(cells, {}, self.CONTEXT))

    def test_same_comparison_on_one_stand_in_counts_once(self, tmp_path):
        again = {"name": "again", "paper": "cao21", "dataset": self.LFW, "measure": self.ARCFACE}
        judged = self.judge(tmp_path, {}, again, {"name": "fails", "greater": [side("c")]})
        assert [each.repeats and each.repeats.name for each in judged] == [None, "a_is_greater", None]
        assert verdicts.count_tests(judged) == 2
        page = claims_page.markdown(judged, self.CONTEXT)
        counts = [re.sub(r"\s+", "", line) for line in page.splitlines()]
        assert "|`falco`|2|0|1|1|0|" in counts
        assert "|`cao21`|1|1|0|0|0|" in counts
        assert "|all|3|1|1|1|0|" in counts
        assert "**holds** (repeats `falco: a_is_greater`)" in page
        assert "2 different comparisons" in page
        rows = csv.DictReader(io.StringIO(claims_page.table(judged, self.CONTEXT)))
        assert [row["repeats"] for row in rows] == ["", "falco: a_is_greater", ""]

    def test_order_of_the_pairs_makes_no_other_test(self, tmp_path):
        than = [side("b"), side("c")]
        judged = self.judge(tmp_path, {"than": than}, {"name": "again", "than": than[::-1]})
        assert judged[1].repeats.name == "a_is_greater"

    @pytest.mark.parametrize(
        "change",
        [
            {"greater": CLAIM["than"], "than": CLAIM["greater"]},
            {"than": [side("b"), side("c")]},
            {"within": 0.1, "note": "as printed"},
            {"measure": AZURE | {"part": "eyes"}},
            {"greater": [side("a", attempt="recovered")]},
        ],
    )
    def test_another_comparison_is_another_test(self, tmp_path, change):
        assert self.judge(tmp_path, {}, {"name": "other", **change})[1].repeats is None

    def test_sweep_is_another_test_than_its_steps(self, tmp_path):
        steps = {"greater": [side("a"), side("b")], "than": [side("b"), side("c")], "paired": True}
        sweep = {"name": "sweep", "greater": [], "than": [], "descending": [side(name) for name in "abc"]}
        assert self.judge(tmp_path, steps, sweep)[1].repeats is None

    def test_chance_alone_gives_one_verdict_of_forty_on_either_side(self, tmp_path):
        judged = self.judge(tmp_path, *({"name": f"c{place}", "within": place, "note": "n"} for place in range(20)))
        assert "chance alone would let at most 0.5 of them hold on average" in claims_page.describe_chance(judged)


class TestReading:
    @pytest.mark.parametrize(
        ("change", "drop", "words"),
        [
            ({"grater": []}, (), ["unknown key 'grater'", "Did you mean 'greater'"]),
            ({"greater": [], "than": [], "descending": [side("a"), side("b")]}, (), ["needs three cells or more"]),
            ({"greater": [side("a", methud="x")]}, (), ["greater.0.methud", "Did you mean 'method'"]),
            ({}, ("source",), ["'source' is missing"]),
            ({}, ("than",), ["'than' is missing: a comparison has both sides"]),
            ({"descending": [side("a"), side("b")]}, (), ["either 'greater' and 'than', or 'descending'"]),
            ({"paired": True, "than": [side("b"), side("c")]}, (), ["1 greater and 2 than"]),
            ({}, ("measure",), ["falco/a has no 'measure', and neither has the claim"]),
            ({"measure": AZURE | {"attempt": "wrong"}}, (), ["'attempt' stands beside method and variant"]),
            ({"than": [side("a")]}, (), ["falco/a is compared with itself"]),
            ({"within": 0.1}, (), ["the 'note' must say from where it is"]),
        ],
    )
    def test_an_error_names_file_claim_and_key(self, tmp_path, change, drop, words):
        with pytest.raises(ReferenceFileError) as error:
            declared(tmp_path, change, drop=drop)
        for word in ["claims.yaml: claim 1 ('a_is_greater'): ", *words]:
            assert word in str(error.value)

    def test_a_name_is_used_once_in_a_paper(self, tmp_path):
        assert len(declared(tmp_path, {}, {"paper": "cao21"})) == 2
        with pytest.raises(ReferenceFileError, match="falco has two claims with the name 'a_is_greater'"):
            declared(tmp_path, {}, {})

    def test_a_broken_file_is_named(self, tmp_path):
        path = tmp_path / "claims.yaml"
        with pytest.raises(ReferenceFileError, match=r"claims\.yaml cannot be read"):
            claims.load(path)
        path.write_text("- [")
        with pytest.raises(ReferenceFileError, match="not valid YAML"):
            claims.load(path)
        path.write_text("paper: falco")
        with pytest.raises(ReferenceFileError, match="must be a list of claims"):
            claims.load(path)
