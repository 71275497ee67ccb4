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

from masquerade.core.errors import ReferenceFileError
from masquerade.core.statistics import encode
from masquerade.papers import claims, claims_page, verdicts
from masquerade.papers.context import Context
from masquerade.papers.measured import Results
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
        draws = np.linspace(0.0, 1.0, 400)
        cells = [cell(name, number(0.5) | {"draws": encode(draws + more)}) for name, more in (("a", 0.05), ("b", 0.0))]
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
             "has no value by dlib_face for this method"),
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
        assert "|`falco`|3|1|1|1|" in counts
        assert "|`cao21`|1|1|0|0|" in counts
        assert "|all|4|2|1|1|" in counts
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
        assert [row["margin"] for row in rows][-2:] == ["0.25", "0.25"]
        assert [float(row["low"]) for row in rows[-2:]] == pytest.approx([0.25, 0.25])
        assert rows[2]["reason"] == "`deepprivacy/default`: deepprivacy is not built yet"
        assert rows[2]["greater_value"] == "0.9"
        assert rows[2]["than_value"] == ""
        assert claims_page.longtable(judged, ONE).isascii()


class TestReading:
    @pytest.mark.parametrize(
        ("change", "drop", "words"),
        [
            ({"grater": []}, (), ["unknown key 'grater'", "Did you mean 'greater'"]),
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
