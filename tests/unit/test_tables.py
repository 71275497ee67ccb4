"""Tables of the papers and of the backbones: what is printed beside what was measured, and why a number is missing."""

import csv
import io
import re
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest

from masquerade.core import discovery, files
from masquerade.core.errors import ReferenceFileError
from masquerade.papers import backbones_table, cautions, documents, reference, tables
from masquerade.papers.context import Context
from masquerade.papers.measured import fact_text
from masquerade.params.blocks import StandIns
from masquerade.params.slices import Slice
from paper_cells import CELLS, CURVES, TABLE, cell, number, results, rows_of, tar, written


@pytest.fixture
def table(tmp_path):
    return reference.load(written(tmp_path, TABLE))


@pytest.fixture
def result(table):
    return tables.build(table, results())


class TestReference:
    def test_printed_numbers_keep_their_digits(self, table):
        assert table.rows[0].printed[0].text == "0.020"
        assert table.rows[0].printed[0].value == 0.02
        assert (table.rows[2].printed[0].value, table.rows[2].printed[0].spread) == (0.908, 0.010)
        assert table.rows[1].printed[1] is None

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("digits: 2", "digitz: 2", ["columns.0.digitz", "Did you mean 'digits'"]),
            ("caption:", "captoin:", ["captoin", "Did you mean 'caption'", "'caption' is missing"]),
            ("method: noise", "methud: noise", ["rows.0.methud", "Did you mean 'method'"]),
            ("kind: table", "kind: tabel", ["'kind' is 'tabel'", "table, leaderboard, curves, tradeoff, grid"]),
            ("[0.020, 7.10]", "[0.020]", ["Noise(σ=9)", "1 printed values for 2 printed columns"]),
            ("7.10", "7,1", ["3 printed values"]),
            ("7.10", "about 7", ["'about 7' is not a printed number"]),
            (", note: the paper gives no FID", "", ["Blur_1", "'note' must say why"]),
            ("direction: lower, digits: 1", "direction: down, digits: 1", ["columns.1.direction"]),
            ("digits: 2}", "digits: 2, printed: false}", ["come after those that it prints"]),
        ],
    )
    def test_error_for_a_mistake_names_file_and_key(self, tmp_path, old, new, words):
        assert old in TABLE
        path = written(tmp_path, TABLE.replace(old, new, 1))
        with pytest.raises(ReferenceFileError) as error:
            reference.load(path)
        for word in [str(path), *words]:
            assert word in str(error.value)

    def test_broken_yaml_missing_files_and_unknown_papers_are_named(self, tmp_path):
        path = written(tmp_path, "kind: [")
        with pytest.raises(ReferenceFileError, match="not valid YAML"):
            reference.load(path)
        with pytest.raises(ReferenceFileError, match="cannot be read"):
            reference.load(tmp_path / "none.yaml")
        with pytest.raises(ReferenceFileError, match="Did you mean 'paper'"):
            reference.find("papers", tmp_path)

    def test_needs_hold_each_row_once(self, table):
        assert reference.needs(table) == [
            ("celeba_hq", "noise", "sigma_9"), ("celeba_hq", "blur", "size_7"), ("celeba_hq", "ours", "eps_6"),
            ("celeba_hq", "other", "default"), ("celeba_hq", "original", "control"),
        ]  # fmt: skip

    def test_pattern_matches_every_offered_variant_of_its_method(self, tmp_path):
        offered = [("ours", "eps_1"), ("ours", "eps_800"), ("ours", "plain"), ("noise", "eps_1")]
        needs = reference.needs(reference.load(written(tmp_path, CURVES)), offered)
        assert needs == [("celeba_hq", "ours", "eps_1"), ("celeba_hq", "ours", "eps_800"),
                         ("celeba_hq", "original", "control")]  # fmt: skip


class TestTables:
    def test_mean_and_spread_run_over_the_seeds(self, result):
        entry = result.lines[2].entries[0]
        assert entry.measured.value == pytest.approx(fmean([0.8, 0.9, 0.7]))
        assert entry.spread == (pytest.approx(stdev([0.8, 0.9, 0.7])), "3 seeds")
        assert (entry.measured.over, entry.measured.of, entry.measured.seeds) == (30, 30, 3)

    def test_a_protocols_own_spread_is_pooled_over_seeds(self, result):
        spread, of = result.lines[2].entries[2].spread
        assert spread == pytest.approx(np.sqrt((0.03**2 + 0.04**2 + 0.05**2) / 3))
        assert of == "10 folds"

    def test_printed_and_measured_stand_side_by_side_with_denominators_and_reasons(self, result):
        text = documents.markdown(result)
        assert list(rows_of(text).items())[2:] == [
            ("Noise(σ=9)", ["0.020 / 0.25", "7.10 / **3.0**", "0.900 ± 0.100"]),
            ("Blur_1", ["0.5 / 0.50 (7/10)", "– / [a]", "0.500 ± 0.100"]),
            ("Ours(ε=6)", ["0.908 ± 0.010 / **0.80 ± 0.10**", "2.0 / 4.0 ± 0.0", "**0.200 ± 0.041**"]),
            ("Other: *other is not built yet*", ["0.1 / –", "9 / –", "–"]),
            ("Original †", ["– / 1.00", "– / 0.0", "0.000 ± 0.100"]),
        ]
        assert "[a] fewer than 2 images." in text
        assert "other is not built yet" in documents.latex(result)
        assert result.csv().count("other is not built yet") == 3

    def test_best_follows_the_direction_after_rounding_and_is_never_a_control(self, tmp_path, result):
        def best(result):
            return [[line.row.method for line in result.lines if line.entries[place].best] for place in range(3)]

        assert best(result) == [["ours"], ["noise"], ["ours"]]
        text = TABLE.replace("direction: lower, digits: 1", "direction: none, digits: 1")
        cells = [cell("noise", "sigma_9", number(0.8012), number(3.0), tar(0.9)), *CELLS[2:5]]
        result = tables.build(reference.load(written(tmp_path, text)), results(cells))
        assert best(result) == [["noise", "ours"], [], ["ours"]]

    @pytest.mark.parametrize(
        ("psr", "reason"),
        [
            ({"mtcnn": number(1.0)}, "psr has no value by dlib_face here"),
            ({}, "psr was not measured here"),
            (None, "psr was not computed at this scale"),
            ({"dlib_face": number(float("inf"), note="identical images")}, "identical images"),
        ],
    )
    def test_a_missing_number_has_its_reason(self, table, psr, reason):
        others = {name: metric for name, metric in CELLS[0]["metrics"].items() if name != "psr"}
        cells = [CELLS[0] | {"metrics": others if psr is None else others | {"psr": psr}}]
        first, second, *_ = tables.build(table, results(cells)).lines
        assert (first.entries[0].measured.value, first.entries[0].measured.reason) == (None, reason)
        assert (first.reason, second.reason) == ("", "it has no metrics")

    def test_seeds_that_fail_are_left_out_and_reported(self, table):
        cells = [*CELLS[2:4], cell("ours", "eps_6", number(None, over=0, note="no face"), number(4.0), tar(0.2), 2)]
        result = tables.build(table, results(cells))
        assert result.lines[2].entries[0].measured.value == pytest.approx(0.85)
        assert "1 of 3 seeds gave no number: no face" in documents.markdown(result)

    def test_stand_ins_scale_and_caution_are_stated(self, result):
        text = documents.markdown(result)
        assert "FID / FD ↓<br>`mobilenet`" in text
        for words in ("Scale `tiny`. Numbers mean nothing.", "`synthetic_hq` takes the place of CelebA-HQ",
                      "Azure Face", "sensitivity = 27.5 to 29.5", "commit abc1234", "Seeds 0, 1, 2"):  # fmt: skip
            assert words in text

    def test_page_without_stand_ins_names_none(self, table):
        plain = Context("paper", (0,), StandIns(datasets={}, judges={}), "abc1234")
        text = documents.markdown(tables.build(table, results([], {}, plain)))
        assert "FID ↓<br>`inception`" in text
        assert "Measured on CelebA-HQ." in text
        assert "FD" not in text

    def test_csv_parses_back_to_the_full_precision(self, result):
        records = list(csv.DictReader(io.StringIO(result.csv())))
        assert len(records) == 15
        ours = next(record for record in records if record["row"] == "Ours(ε=6)" and record["column"] == "PSR")
        entry = result.lines[2].entries[0]
        assert float(ours["measured"]) == entry.measured.value
        assert float(ours["spread"]) == entry.spread[0]
        assert float(ours["difference"]) == entry.measured.value - 0.908
        assert (ours["printed"], ours["printed_spread"], ours["judge"]) == ("0.908 ± 0.010", "0.01", "dlib_face")
        blur = next(record for record in records if record["row"] == "Blur_1" and record["column"] == "FID")
        assert (blur["measured"], blur["difference"], blur["reason"]) == ("", "", "fewer than 2 images")

    def test_no_title_of_a_row_is_a_formula_in_a_spreadsheet(self, result):
        line = replace(result.lines[0], row=result.lines[0].row.model_copy(update={"title": "=1+1"}))
        text = replace(result, lines=(line,)).csv()
        assert text.splitlines()[1].startswith('"\'=1+1",')
        assert {record["row"] for record in files.parse_csv(text)} == {"=1+1"}

    def test_latex_is_balanced_escaped_and_rectangular(self, result):
        text = documents.latex(result)
        assert text.isascii()
        bare = re.sub(r"\\[\\{}%&$#_]", "", text.replace("\\\\", "\n"))
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert "#" not in bare
        assert "_" not in re.sub(r"\\label\{[^}]*\}", "", bare)
        begun, ended = (re.findall(rf"\\{word}{{(\w+\*?)}}", text) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended)
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        for line in body.splitlines():
            if line.endswith(r"\\"):
                assert len(re.findall(r"(?<!\\)&", line)) == 3

    def test_latex_special_characters_are_escaped(self):
        assert documents.escape("a_b & 5 % of {x} ~ ^ \\ #1 $") == (
            r"a\_b \& 5 \% of \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \#1 \$"
        )

    def test_only_numeric_facts_become_a_range(self):
        assert fact_text([27.5, 28.25]) == "27.5 to 28.25"
        assert fact_text(["a", "b"]) == "a or b"
        assert fact_text([6.0]) == "6"


def test_judge_that_trained_a_method_is_named(monkeypatch, root):
    table = reference.load(root / "reference/identitydp/table1.yaml")
    judges = ["recognizer_a", "dlib_face"]
    assert (
        cautions.list_judges_in_training(table, judges, [])
        == "No evaluator of this table took part in the training of a method."
    )
    monkeypatch.setattr(discovery.load("judges", "recognizer_a"), "needs", ("identity",))
    sentence = cautions.list_judges_in_training(table, judges, [])
    assert sentence.startswith(
        "Evaluators that took part in the training of a method: `recognizer_a` by Fawkes, Ours(ε=0.57), Ours(ε=6)"
    )
    assert cautions.list_judges_in_training(table, [], []) == ""


class TestEvasion:
    """Methods that are made for later recognition."""

    POISONING = TABLE.replace("method: noise, variant: sigma_9", "method: fawkes, variant: default")

    def test_row_and_latex_say_that_evasion_is_measured_and_a_note_explains_it(self, tmp_path):
        result = tables.build(reference.load(written(tmp_path, self.POISONING)), results())
        text, printed = documents.markdown(result), documents.latex(result)
        assert "Noise(σ=9) (evasion): *it has no metrics*" in rows_of(text)
        assert "- Noise(σ=9): these numbers measure evasion" in text
        assert text.count("evasion") == 2
        assert r"Noise($\sigma$=9) (evasion)" in printed
        assert r"Noise($\sigma$=9): these numbers measure evasion" in printed

    def test_other_methods_and_tables_of_what_the_methods_are_made_for_have_no_mark(self, tmp_path, result):
        poisoning = self.POISONING
        for metric in ("psr", "fd", "tar"):
            poisoning = poisoning.replace(f"metric: {metric},", "metric: poisoning_protection_rate,")
        table = reference.load(written(tmp_path, poisoning))
        assert "evasion" not in documents.markdown(tables.build(table, results()))
        assert "evasion" not in documents.markdown(result)


WIDE = """
kind: table
title: Table 6
caption: Several datasets, groups and units
source: Table 6, section 4
dataset: {name: CelebA-HQ, role: celeba_hq}
columns:
  - {title: MTCNN(%), group: Detection, metric: rate, judge: {name: MTCNN, role: mtcnn}, direction: higher, digits: 1,
     percent: true}
  - {title: Male, group: Inner, metric: accuracy, part: Male, direction: higher, digits: 2}
  - {title: Bald, group: Inner, dataset: {name: LFW, role: lfw}, metric: accuracy, part: Male,
     judge: {name: Predictor, role: predictor}, direction: higher, digits: 2}
  - {title: Bangs, group: Outer, metric: accuracy, part: Bangs, direction: higher, digits: 2, printed: false}
rows:
  - {title: Ours, method: ours, variant: m_0, printed: [99.85, 0.84, 0.71]}
  - {title: Other, method: other, variant: default, printed: [98.2, 0.69, 0.72]}
  - {title: Original, method: original, variant: control, control: true, note: "control: the picture itself"}
"""
WIDE_CONTEXT = Context(
    "tiny", (0,), StandIns(datasets={"celeba_hq": "drawn", "lfw": "wild"}, judges={"predictor": "pseudo_a"}), "abc1234"
)


def on(dataset, method, variant, rate, **accuracy):
    metrics = {"rate": {"mtcnn": rate}, "accuracy": {name.replace("__", "."): v for name, v in accuracy.items()}}
    key = {"dataset": dataset, "method": method, "variant": variant, "seed": 0}
    return {"cell": key, "statement": {"faces": 10, "refused": 1}, "metrics": metrics}


WIDE_CELLS = [
    on("drawn", "ours", "m_0", number(0.9876), Male=number(0.8), Bangs=number(None, over=0, note="no such label")),
    on("wild", "ours", "m_0", number(0.1), pseudo_a__Male=number(0.7)),
    on("drawn", "original", "control", number(1.0), Male=number(0.9), Bangs=number(0.6)),
]
WIDE_SKIPPED = {(place, "other", "default"): "other is not built yet" for place in ("drawn", "wild")}


class TestWideTables:
    """A column with its own dataset, groups, parts of a metric, percent, and a transposed table."""

    @pytest.fixture(params=[False, True], ids=["upright", "transposed"])
    def wide(self, request, tmp_path):
        text = WIDE + "transpose: true\n" * request.param
        table = reference.load(written(tmp_path, text))
        return tables.build(table, results(WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT))

    def test_needs_name_every_dataset(self, wide):
        assert reference.needs(wide.table) == [
            (role, *pair)
            for role in ("celeba_hq", "lfw")
            for pair in (("ours", "m_0"), ("other", "default"), ("original", "control"))
        ]

    def test_columns_take_their_own_dataset_judge_and_part(self, wide):
        assert [entry.measured.value for entry in wide.lines[0].entries] == [0.9876, 0.8, 0.7, None]
        assert wide.lines[0].refused == (2, 20)
        records = list(csv.DictReader(io.StringIO(wide.csv())))
        assert [record["dataset"] for record in records[:4]] == ["drawn", "drawn", "wild", "drawn"]
        assert (records[2]["judge"], records[2]["part"], records[2]["group"]) == ("pseudo_a", "Male", "Inner")

    def test_a_reason_is_that_of_a_row_only_if_no_dataset_was_run(self, wide):
        assert [line.reason for line in wide.lines] == ["", "other is not built yet", ""]
        assert wide.lines[2].entries[2].measured.reason == "it has no metrics"

    def test_percent_is_shown_as_printed_and_stored_as_a_share(self, wide):
        record = next(csv.DictReader(io.StringIO(wide.csv())))
        assert (record["printed"], float(record["printed_value"])) == ("99.85", pytest.approx(0.9985))
        assert float(record["measured"]) == 0.9876
        assert float(record["difference"]) == pytest.approx(0.9876 - 0.9985)
        assert wide.lines[0].entries[0].rounded == 98.8
        assert "99.85 / **98.8**" in documents.markdown(wide)

    def test_every_line_has_the_same_width(self, wide):
        text = documents.latex(wide)
        width = 1 + len(re.search(r"\\begin\{tabular\}\{l(r+)\}", text)[1])
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {width}
        assert len(lines) >= 4
        for block in documents.markdown(wide).split("\n\n"):
            assert len({line.count("|") for line in block.splitlines() if line.startswith("|")}) <= 1

    def test_transposed_rows_are_the_columns_under_their_group(self, tmp_path):
        table = reference.load(written(tmp_path, WIDE + "transpose: true\n"))
        rows = rows_of(documents.markdown(tables.build(table, results(WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT))))
        assert list(rows)[2:] == [
            "**Detection**", "MTCNN(%) ↑ `mtcnn`", "**Inner**", "Male ↑", "Bald ↑ `wild`, `pseudo_a`",
            "**Outer**", "Bangs ↑ †",
        ]  # fmt: skip
        assert rows[""] == ["Ours", "Other [a]", "Original †"]
        assert rows["Male ↑"] == ["0.84 / **0.80**", "0.69 / –", "0.90"]
        assert rows["Bangs ↑ †"] == ["[b]", "–", "0.60"]

    def test_legend_names_few_equal_columns_and_counts_many(self, tmp_path):
        column = "  - {{title: {0}, metric: accuracy, part: {0}, direction: higher, digits: 2, printed: false}}"
        many = [column.format(f"T{number}") for number in range(7)]  # they agree with the column Bangs
        for count, legend in ((7, "| Outer: Bangs, T0, T1 and 5 more |"), (2, "| Outer: Bangs, T0, T1 ")):
            table = reference.load(written(tmp_path, WIDE.replace("rows:", "\n".join([*many[:count], "rows:"]))))
            text = documents.markdown(tables.build(table, results([], {}, WIDE_CONTEXT)))
            assert legend in text
            assert ("more" in text) == (count == 7)

    def test_a_sign_in_a_percent_column_is_refused(self, tmp_path):
        with pytest.raises(ReferenceFileError, match=r"'99.85%' has a sign, and column 'MTCNN"):
            reference.load(written(tmp_path, WIDE.replace("99.85", "99.85%")))

    def test_table_without_printed_numbers_has_no_daggers(self, tmp_path):
        ours = WIDE.replace("digits: 2}", "digits: 2, printed: false}").replace(
            "percent: true}", "percent: true, printed: false}"
        )
        ours = re.sub(r", printed: \[.*?\]", ", note: ours", ours)
        table = reference.load(written(tmp_path, ours))
        text = documents.markdown(tables.build(table, results(WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT)))
        assert table.ours
        assert "†" not in text
        assert "no paper has this table" in text


QUALITY = {
    "backbone": "generator", "title": "generator (StyleGAN2)", "published": "", "sha256": "",
    "quality": {"detection": 0.98, "pictures": 120.0, "zero_shot.Male": 0.5}, "floors": {"detection": 0.95},
}  # fmt: skip
MINI = Slice({"scale": "mini", "caution": "Small networks."})
PAPER = Slice({"scale": "paper", "caution": ""})


def test_figures_stand_beside_their_floors():
    page = backbones_table.markdown([QUALITY], MINI, "abc")
    line = next(line for line in page.splitlines() if "detection" in line)
    assert [cell.strip() for cell in line.split("|")][1:-1] == [
        "`generator`", "generator (StyleGAN2)", "trained here", "detection", "0.98", "0.95",
    ]  # fmt: skip
    assert "| 120 |" in page.replace("  ", "") or " 120 " in page
    assert "Male" not in page
    assert "> Scale `mini`. Small networks." in page
    page = backbones_table.markdown(
        [{**QUALITY, "published": "weights/g.pt", "quality": {"tar_at_far_0.01": 0.8}}], PAPER, "abc"
    )
    assert "`weights/g.pt`" in page
    assert "tar at far 0.01" in page, "a rate at a false accept rate is no detail of a figure"


def test_figures_of_a_card_and_adopted_methods_are_named():
    quality = {**QUALITY, "published": "weights:generator", "figures_of": "evening"}
    published = {"riddle.published": "weights:riddle", "fit.published": "", "ifadit.published": ""}
    published |= {"ifadit.published_ablations": {"without_img": "weights:ifadit.without_img"}}
    params = Slice({**MINI.values, **{f"methods.{key}": value for key, value in published.items()}})
    page = backbones_table.markdown([quality], params, "abc")
    assert "those of their model cards: scale evening measured them" in page
    assert "not trained here: `riddle` (`weights:riddle`), `ifadit/without_img` (`weights:ifadit.without_img`)." in page
    assert "adopted" not in backbones_table.markdown([QUALITY], MINI, "abc")


def test_data_of_an_official_file_of_a_method_are_named():
    page = backbones_table.markdown(
        [QUALITY], Slice({**PAPER.values, "methods.ciagan.published": "asset:ciagan"}), "abc"
    )
    assert "not trained here: `ciagan` (`asset:ciagan`)." in page
    assert "Official files of methods: `ciagan` (CIAGAN, 128 pixels, 1,200 people of CelebA)." in page
    assert "may have seen people who are tested here" in page
