"""Sections of the report: numbers of the files, comparisons by hand, addresses and knobs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from masquerade.core.errors import ReferenceFileError
from masquerade.papers import claims, claims_page, documents, ordering, tables, verdicts
from masquerade.papers.declarations import Column, Table
from masquerade.papers.measured import Cells, Measured
from masquerade.papers.ordering import Order
from masquerade.papers.printed import Printed
from masquerade.papers.report import numbers, reading, variants
from masquerade.papers.tables import Entry
from masquerade.params.slices import Slice
from report_cells import CELLS, CLAIM, CONTEXT, FACENET, KNOBS, SKIPPED, TABLE, cell


@pytest.fixture
def table():
    return Table(**TABLE)


@pytest.fixture
def built(table):
    return tables.build(table, CELLS, SKIPPED, CONTEXT)


def entry(printed=None, measured=None, direction="lower", digits=2, percent=False, judge=None):
    column = Column(title="A", metric="psnr", direction=direction, digits=digits, percent=percent, judge=judge)
    printed_number = None if printed is None else Printed(text=str(printed), value=printed * (0.01 if percent else 1))
    return Entry(
        column, printed_number, Measured(value=measured, over=9, of=9, seeds=1, reason="" if measured else "refused")
    )


def orders_of(rows, half=0.0, other=None):
    """`ordering.orders` of (printed, measured) numbers, whose samples lie evenly within ``half`` of them.

    ``other``: the factor of ``half`` in the second row.
    """
    factors = [1.0, other or 1.0, *[1.0] * len(rows)]
    return ordering.orders([
        (
            None if printed is None else Printed(text=str(printed), value=float(printed)),
            Measured(value=None if value is None else float(value),
                     draws=None if value is None else value + factor * half * np.linspace(-1, 1, 41)),
        )
        for (printed, value), factor in zip(rows, factors, strict=False)
    ])  # fmt: skip


class TestReading:
    def test_table_is_read_back_from_its_csv(self, table, built):
        again = reading.table(table, reading.records(built.csv()), Cells(CELLS), CONTEXT)
        assert again.csv() == built.csv()
        assert documents.markdown(again) == documents.markdown(built)

    @given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=4, max_size=4), st.booleans())
    def test_any_numbers_are_read_back(self, values, refused):
        cells = [cell("identitydp", "eps_6", *values[:3]), cell("original", "control", values[3], None, 1.0)]
        skipped = SKIPPED | {("synthetic_hq", "gaussian_blur", "size_7"): 'why, "quoted"'} if refused else SKIPPED
        built = tables.build(Table(**TABLE), cells, skipped, CONTEXT)
        assert reading.table(built.table, reading.records(built.csv()), Cells(cells), CONTEXT).csv() == built.csv()

    def test_undeclared_row_keeps_its_place(self, table, built):
        text = built.csv().replace('"Blur","gaussian_blur","size_7"', '"Theirs","external","default"')
        line = reading.table(table, reading.records(text), Cells(CELLS), CONTEXT).lines[2]
        assert (line.row.title, line.row.method, line.row.printed) == ("Theirs", "external", ())
        assert line.entries[0].measured.value == 0.95

    def test_csv_of_other_columns_is_refused_with_what_to_do(self, table, built):
        with pytest.raises(ReferenceFileError, match=r"identitydp/table1.*build the table again"):
            reading.table(table, reading.records(built.csv().replace("FID", "KID")), Cells(CELLS), CONTEXT)

    def test_claims_are_read_back_with_their_margins(self):
        declared = [claims.Claim(**CLAIM)]
        text = claims_page.table(verdicts.judge(declared, CELLS, SKIPPED, CONTEXT), CONTEXT)
        (assertion,) = reading.assertions(declared, reading.records(text))
        assert assertion.verdict == "holds"
        assert assertion.margin == pytest.approx(0.39)
        assert assertion.interval == pytest.approx((0.38, 0.4), abs=1e-6)
        ((greater, than),) = assertion.pairs
        assert (greater.value, than.value) == pytest.approx((0.5, 0.11))

    def test_undeclared_claim_is_refused(self):
        text = claims_page.table(verdicts.judge([claims.Claim(**CLAIM)], CELLS, SKIPPED, CONTEXT), CONTEXT)
        with pytest.raises(ReferenceFileError, match="identitydp:small_hides_more"):
            reading.assertions([], reading.records(text))


class TestComparison:
    def test_orders_of_hand_worked_rows(self):
        column = [(1, 10), (2, 5), (3, 20), (None, 7), (4, None), (3, 30)]
        # printed 1 < 2 < 3 = 3: five ordered pairs; measured 10, 5, 20, 30: only (1, 2) is the other way round
        one_off, all_right = Order(concordant=2, discordant=1), Order(concordant=2)
        assert orders_of(column) == [one_off, one_off, all_right, Order(), Order(), all_right]

    def test_a_pair_whose_difference_may_be_0_is_undecided(self):
        assert orders_of([(1, 5), (2, 5)])[0] == Order(undecided=1)
        assert orders_of([(1, 5), (2, 6)], half=0.4)[0] == Order(concordant=1), "of the same samples"
        assert orders_of([(1, 5), (2, 6)], half=0.4, other=-2.0)[0] == Order(undecided=1), "of opposite samples"

    def test_a_pair_without_an_interval_is_undecided(self):
        rows = [
            (Printed(text="1", value=1.0), Measured(value=5.0)),
            (Printed(text="2", value=2.0), Measured(value=6.0)),
        ]
        assert ordering.orders(rows) == [Order(undecided=1)] * 2

    @given(st.permutations(range(8)))
    def test_order_is_kendall_s_tau(self, measured):
        orders = orders_of([(place + 1, value + 1) for place, value in enumerate(measured)])
        total = sum(orders, Order())  # each pair twice
        assert total.pairs == total.decided == 2 * 28
        assert (total.concordant - total.discordant) / total.pairs == pytest.approx(
            kendalltau(range(8), measured).statistic
        )

    @pytest.mark.parametrize(
        ("place", "difference", "verdict"),
        [
            (entry(2.0, 1.5), "−0.50", "better"),
            (entry(2.0, 2.5), "+0.50", "worse"),
            (entry(2.0, 2.5, "higher"), "+0.50", "better"),
            (entry(2.0, 2.5, "none"), "+0.50", ""),
            (entry(2.0, 2.001), "±0", "equal"),
            (entry(40.0, 0.5, "higher", 1, True), "+10.0", "better"),
            (entry(None, 1.0), "", ""),
            (entry(1.0, None), "", ""),
        ],
    )
    def test_difference_has_the_sign_of_measured_minus_printed(self, place, difference, verdict):
        assert (numbers.difference(place), numbers.verdict(place)) == (difference, verdict)

    @pytest.mark.parametrize(
        ("place", "order", "words"),
        [
            (entry(2.0, 1.5), Order(1, 2), "Here 1.50: 0.50 less than the printed 2.0, which is better. Lower is "
             "better. Comparisons with the other rows: 1 as in the paper, 2 otherwise."),
            (entry(2.0, 2.5, "none"), Order(), "Here 2.50: 0.50 more than the printed 2.0."),
            (entry(2.0, 2.0, "higher"), Order(0, 0, 1), "Here 2.00, the same as printed at these digits. Higher is "
             "better. Comparisons with the other rows: 1 undecided."),
            (entry(2.0, None), Order(), "No number here: refused. The paper prints 2.0."),
            (entry(None, 1.0), Order(), "Measured here alone: the paper prints no such number. Lower is better."),
            (entry(1.0, 1.0, judge=FACENET), Order(2, 0), "Here 1.00, the same as printed at these digits. Lower is "
             "better. Comparisons with the other rows: 2 as in the paper. recognizer_a judges in the place of "
             "FaceNet."),
        ],
    )  # fmt: skip
    def test_sentence_states_difference_and_order(self, place, order, words):
        assert numbers.sentence(replace(place, order=order), "", CONTEXT) == words


class TestAddresses:
    RECORD = {"method": "falco", "variant": "m_0", "dataset": "synthetic_hq", "part": "", "attempt": ""}

    def record(self, group, column, metric, judge="", **more):
        return self.RECORD | {"group": group, "column": column, "metric": metric, "judge": judge} | more

    def test_column_has_the_shortest_name_that_is_its_own(self):
        names = numbers.list_addresses("falco/table1", [
            self.record("", "FID", "frechet_distance", "mobilenet_v2"),
            self.record("Face re-ID", "CASIA(%)", "re_identification_rate", "recognizer_a"),
            self.record("Rank-1", "CASIA(%)", "rank1_identification_rate", "recognizer_a"),
        ])  # fmt: skip
        assert names == [f"falco/table1:falco/m_0:{name}" for name in ("fid", "face_re_id_casia", "rank_1_casia")]

    def test_attempts_of_one_method_have_different_addresses(self):
        names = numbers.list_addresses("cao21/table3", [
            self.record("", "PSNR", "psnr", attempt="recovered"), self.record("", "PSNR", "psnr", attempt="wrong"),
        ])  # fmt: skip
        assert names == ["cao21/table3:falco/m_0:psnr_recovered", "cao21/table3:falco/m_0:psnr_wrong"]

    def test_dataset_is_named_if_a_column_has_two(self):
        records = [self.record("", "FID", "fd", dataset=name) for name in ("hq", "wild")]
        assert numbers.list_addresses("a/b", records) == ["a/b:falco/m_0:fid:hq", "a/b:falco/m_0:fid:wild"]


class TestVariants:
    LEVELS = {"random": {"level": "random"}, "d_9": {"level": 9}, "d_0": {"level": 0}, "d_3": {"level": 3}}

    def test_numbers_are_sorted_and_words_keep_their_order(self):
        assert variants.natural(self.LEVELS) == ["d_0", "d_3", "d_9", "random"]
        blurs = {"size_19": {"kind": "resample", "size": 19.0}, "wiener_8": {"kind": "gaussian", "size": 8.0},
                 "size_7": {"kind": "resample", "size": 7.0}}  # fmt: skip
        assert variants.natural(blurs) == ["size_7", "size_19", "wiener_8"]

    @given(st.lists(st.floats(-1e3, 1e3), unique=True, min_size=1, max_size=8))
    def test_variants_of_one_number_are_sorted(self, values):
        assert variants.natural({str(v): {"epsilon": v} for v in values}) == [str(v) for v in sorted(values)]

    def test_knobs_come_from_the_blocks_of_the_variants(self):
        params = Slice({"scale": "tiny", "methods.original.variants": {"control": {}}})
        assert variants.of_params(params) == {"original": {"control": {}}}

    def test_label_names_the_knob_that_differs(self):
        assert variants.label("eps_6", KNOBS["identitydp"]) == "epsilon 6"
        assert variants.label("control", KNOBS["original"]) == "control"
