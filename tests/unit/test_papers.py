"""Tables and figures: printed and measured numbers, a reason in each empty place, repeatable bytes."""

import csv
import io
import re
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from PIL import Image

from masquerade.core.errors import ArchiveError, ReferenceFileError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.papers import declarations, face_selection, figures, latex, markdown, reference, tables
from masquerade.papers.context import Context
from masquerade.papers.measured import fact_text
from masquerade.params.blocks import StandIns

CONTEXT = Context(
    scale="tiny",
    seeds=(0, 1, 2),
    stand_ins=StandIns(datasets={"celeba_hq": "synthetic_hq"}, judges={"azure": "dlib_face", "inception": "mobilenet"}),
    commit="abc1234",
    caution="Numbers mean nothing.",
)
TABLE = """
kind: table
title: Table I
caption: A caption with 100 % & more
source: Table I, section V
dataset: {name: CelebA-HQ, role: celeba_hq}
columns:
  - {title: PSR, metric: psr, judge: {name: Azure Face, role: azure}, direction: higher, digits: 2}
  - {title: FID, substitute: FD, metric: fd, judge: {name: InceptionV3, role: inception}, direction: lower, digits: 1}
  - {title: TAR, metric: tar, judge: {name: dlib, role: dlib_face}, direction: lower, digits: 3, spread: metric,
     printed: false}
rows:
  - {title: Noise(σ=9), method: noise, variant: sigma_9, printed: [0.020, 7.10]}
  - {title: Blur_1, method: blur, variant: size_7, printed: [0.5, null], note: the paper gives no FID}
  - {title: Ours(ε=6), method: ours, variant: eps_6, printed: [0.908 ± 0.010, 2.0]}
  - {title: Other, method: other, variant: default, printed: [0.1, 9]}
  - {title: Original, method: original, variant: control, control: true, note: "control: the picture itself"}
"""


def number(value, over=10, of=10, **more):
    return {"value": value, "over": over, "of": of, "spread": None, "spread_of": "", "note": "", **more}


def cell(method, variant, psr, fd, tar, seed=0, **statement):
    metrics = {"psr": {"dlib_face": psr}, "fd": {"mobilenet": fd}, "tar": {"dlib_face": tar}}
    key = {"dataset": "synthetic_hq", "method": method, "variant": variant, "seed": seed}
    return {"cell": key, "statement": {"faces": 10, "refused": 0, **statement}, "metrics": metrics}


def tar(value, spread=0.1):
    return number(value, spread=spread, spread_of="10 folds")


CELLS = [
    cell("noise", "sigma_9", number(0.25), number(3.0), tar(0.9)),
    cell("blur", "size_7", number(0.5, over=7), number(None, over=0, note="fewer than 2 pictures"), tar(0.5)),
    *(
        cell("ours", "eps_6", number(value), number(4.0), tar(0.2, spread), seed, epsilon=6.0, sensitivity=27.5 + seed)
        for seed, value, spread in [(0, 0.8, 0.03), (1, 0.9, 0.04), (2, 0.7, 0.05)]
    ),
    cell("original", "control", number(1.0), number(0.0), tar(0.0)),
]
SKIPPED = {("synthetic_hq", "other", "default"): "other is not built yet"}


def written(folder: Path, text: str, name: str = "table1") -> Path:
    path = folder / "paper" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    return reference.load(written(tmp_path, TABLE))


@pytest.fixture
def result(table):
    return tables.build(table, CELLS, SKIPPED, CONTEXT)


def rows_of(markdown: str) -> dict[str, list[str]]:
    lines = [line for line in markdown.split("## What")[0].splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in ([part.strip() for part in line.strip("|").split("|")] for line in lines)}


class TestReference:
    def test_printed_numbers_keep_their_digits(self, table):
        assert table.rows[0].printed[0].text == "0.020"
        assert table.rows[0].printed[0].value == 0.02
        assert (table.rows[2].printed[0].value, table.rows[2].printed[0].spread) == (0.908, 0.010)
        assert table.rows[1].printed[1] is None

    def test_name_and_paper_come_from_the_path(self, table):
        assert (table.key, table.paper, table.name) == ("paper/table1", "paper", "table1")

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("digits: 2", "digitz: 2", ["columns.0.digitz", "Did you mean 'digits'"]),
            ("caption:", "captoin:", ["captoin", "Did you mean 'caption'", "'caption' is missing"]),
            ("method: noise", "methud: noise", ["rows.0.methud", "Did you mean 'method'"]),
            ("kind: table", "kind: tabel", ["'kind' is 'tabel'", "table, curves, grid"]),
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

    def test_broken_yaml_and_missing_files_are_named(self, tmp_path):
        path = written(tmp_path, "kind: [")
        with pytest.raises(ReferenceFileError, match="not valid YAML"):
            reference.load(path)
        with pytest.raises(ReferenceFileError, match="cannot be read"):
            reference.load(tmp_path / "none.yaml")

    def test_error_for_an_unknown_paper_gives_the_nearest(self, tmp_path):
        written(tmp_path, TABLE)
        assert [item.key for item in reference.find("paper", tmp_path)] == ["paper/table1"]
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

    def test_printed_and_measured_stand_side_by_side(self, result):
        rows = rows_of(markdown.page(result))
        assert rows["Noise(σ=9)"] == ["0.020 / 0.25", "7.10 / **3.0**", "0.900 ± 0.100"]
        assert rows["Ours(ε=6)"] == ["0.908 ± 0.010 / **0.80 ± 0.10**", "2.0 / 4.0 ± 0.0", "**0.200 ± 0.041**"]

    def test_best_follows_the_direction_and_is_never_a_control(self, result):
        best = [[line.row.method for line in result.lines if line.entries[place].best] for place in range(3)]
        assert best == [["ours"], ["noise"], ["ours"]]

    def test_values_that_round_to_the_best_are_all_best(self, table):
        cells = [cell("noise", "sigma_9", number(0.8012), number(3.0), tar(0.9)), *CELLS[2:5]]
        result = tables.build(table, cells, SKIPPED, CONTEXT)
        assert [line.row.method for line in result.lines if line.entries[0].best] == ["noise", "ours"]

    def test_a_column_without_direction_has_no_best(self, tmp_path):
        plain = reference.load(
            written(tmp_path, TABLE.replace("direction: lower, digits: 1", "direction: none, digits: 1"))
        )
        result = tables.build(plain, CELLS, SKIPPED, CONTEXT)
        assert not any(line.entries[1].best for line in result.lines)

    def test_a_method_that_is_not_built_shows_the_printed_number_and_the_reason(self, result):
        assert rows_of(markdown.page(result))["Other: *other is not built yet*"] == ["0.1 / –", "9 / –", "–"]
        assert "other is not built yet" in latex.table(result)
        assert result.csv().count("other is not built yet") == 3

    def test_cell_without_metrics_has_a_reason(self, table):
        text = markdown.page(tables.build(table, CELLS[1:], SKIPPED, CONTEXT))
        assert "Noise(σ=9): *it has no metrics*" in text

    def test_a_measured_failure_shows_its_reason(self, result):
        text = markdown.page(result)
        assert rows_of(text)["Blur_1"][1] == "– / [a]"
        assert "[a] fewer than 2 pictures." in text

    def test_a_judge_that_did_not_measure_is_named(self, table):
        cells = [dict(CELLS[0], metrics={**CELLS[0]["metrics"], "psr": {"mtcnn": number(1.0)}})]
        assert "psr has no value by dlib_face" in markdown.page(tables.build(table, cells, SKIPPED, CONTEXT))

    def test_seeds_that_fail_are_left_out_and_reported(self, table):
        cells = [*CELLS[2:4], cell("ours", "eps_6", number(None, over=0, note="no face"), number(4.0), tar(0.2), 2)]
        result = tables.build(table, cells, SKIPPED, CONTEXT)
        assert result.lines[2].entries[0].measured.value == pytest.approx(0.85)
        assert "1 of 3 seeds gave no number: no face" in markdown.page(result)

    def test_infinite_value_is_left_out_with_its_reason(self, table):
        cells = [cell("noise", "sigma_9", number(float("inf"), note="identical pictures"), number(3.0), tar(0.9))]
        entry = tables.build(table, cells, SKIPPED, CONTEXT).lines[0].entries[0]
        assert entry.measured.value is None
        assert entry.measured.reason == "identical pictures"

    def test_a_short_denominator_is_shown(self, result):
        assert rows_of(markdown.page(result))["Blur_1"][0] == "0.5 / 0.50 (7/10)"

    def test_stand_ins_scale_and_caution_are_stated(self, result):
        text = markdown.page(result)
        assert "| FID / FD ↓<br>`mobilenet` |" in text
        for words in ("Scale `tiny`. Numbers mean nothing.", "`synthetic_hq` stands in the place of CelebA-HQ",
                      "Azure Face", "sensitivity = 27.5 to 29.5", "commit abc1234", "Seeds 0, 1, 2"):  # fmt: skip
            assert words in text

    def test_page_without_stand_ins_names_none(self, table):
        plain = Context("paper", (0,), StandIns(datasets={}, judges={}), "abc1234")
        text = markdown.page(tables.build(table, [], {}, plain))
        assert "| FID ↓<br>`inception` |" in text
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
        assert (blur["measured"], blur["difference"], blur["reason"]) == ("", "", "fewer than 2 pictures")

    def test_markdown_rows_have_as_many_cells_as_the_header(self, result):
        for block in markdown.page(result).split("\n\n"):
            widths = {line.count("|") for line in block.splitlines() if line.startswith("|")}
            assert len(widths) <= 1

    def test_latex_is_balanced_escaped_and_rectangular(self, result):
        text = latex.table(result)
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
                spans = [int(width) for width in re.findall(r"\\multicolumn\{(\d)\}", line)]
                assert len(re.findall(r"(?<!\\)&", line)) - len(spans) + sum(spans) == 5

    def test_latex_special_characters_are_escaped(self):
        assert latex.escape("a_b & 5 % of {x} ~ ^ \\ #1 $") == (
            r"a\_b \& 5 \% of \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \#1 \$"
        )

    def test_only_numeric_facts_become_a_range(self):
        assert fact_text([27.5, 28.25]) == "27.5 to 28.25"
        assert fact_text(["a", "b"]) == "a or b"
        assert fact_text([6.0]) == "6"


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
        return tables.build(table, WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT)

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

    def test_dataset_that_was_not_run_empties_one_place_of_the_row(self, wide):
        entries = wide.lines[2].entries
        assert wide.lines[2].reason == ""
        assert entries[2].measured.reason == "it has no metrics"
        assert wide.lines[1].reason == "other is not built yet"

    def test_percent_is_shown_as_printed_and_stored_as_a_share(self, wide):
        record = next(csv.DictReader(io.StringIO(wide.csv())))
        assert (record["printed"], float(record["printed_value"])) == ("99.85", pytest.approx(0.9985))
        assert float(record["measured"]) == 0.9876
        assert float(record["difference"]) == pytest.approx(0.9876 - 0.9985)
        assert wide.lines[0].entries[0].rounded == 98.8
        assert "99.85 / **98.8**" in markdown.page(wide)

    def test_every_stand_in_is_stated(self, wide):
        assert "`drawn` stands in the place of CelebA-HQ and `wild` stands in the place of LFW" in markdown.page(wide)

    def test_latex_has_the_same_width_in_every_line(self, wide):
        text = latex.table(wide)
        width = 1 + len(re.search(r"\\begin\{tabular\}\{l(r+)\}", text)[1])
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        for line in lines:
            spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", line)]
            assert len(re.findall(r"(?<!\\)&", line)) + 1 - len(spans) + sum(spans) == width, line
        assert len(lines) >= 6
        assert text.isascii()

    def test_markdown_has_the_same_width_in_every_line(self, wide):
        for block in markdown.page(wide).split("\n\n"):
            assert len({line.count("|") for line in block.splitlines() if line.startswith("|")}) <= 1

    def test_transposed_rows_are_the_columns_under_their_group(self, tmp_path):
        table = reference.load(written(tmp_path, WIDE + "transpose: true\n"))
        rows = rows_of(markdown.page(tables.build(table, WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT)))
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
            text = markdown.page(tables.build(table, [], {}, WIDE_CONTEXT))
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
        text = markdown.page(tables.build(table, WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT))
        assert table.ours
        assert "†" not in text
        assert "the paper has no such table" in text


CURVES = """
kind: curves
title: Figure 4
caption: Curves
source: Figure 4, section V
dataset: {name: CelebA-HQ, role: celeba_hq}
method: ours
variant: eps_*
fact: epsilon
axis: Privacy budget
states: [sensitivity]
controls:
  - {title: original, method: original, variant: control}
panels:
  - title: (a) PSR
    percent: true
    curves:
      - title: Azure
        metric: psr
        judge: {name: Azure Face, role: azure}
        markers: [{at: 0.01, printed: 97.367%, source: section V}, {at: 800, printed: 1.125%, source: section V}]
      - {title: absent, metric: none, printed: false}
"""
GRID = """
kind: grid
title: Figure 6
caption: Pictures
source: Figure 6, section V
dataset: {name: CelebA-HQ, role: celeba_hq}
faces: 2
choose: closest_to_mean
judge: {name: Azure Face, role: azure}
fact: epsilon
columns:
  - {title: "e = {epsilon:g}", method: ours, variant: eps_*}
  - {title: Other, method: other, variant: default}
"""
SWEEP = [
    cell("ours", f"eps_{e}", number(1 - e / 1000 + 0.01 * s), number(1.0), tar(0.5), s, epsilon=e, sensitivity=30.0)
    for e in (800, 6, 100)
    for s in (0, 1)
]


def archive(folder: Path, name: str, shade: int, refused: str = "", **facts) -> FaceArchive:
    """Six faces of three people, every picture one grey."""
    with ArchiveWriter(folder / f"{name}.zip", facts) as writer:
        for i in range(6):
            row = {"id": f"f{i}", "source_id": f"f{i}", "identity": f"p{i // 2}", "split": "test"}
            if row["id"] == refused:
                writer.add(None, {**row, "status": "refused", "reason": "it has no landmarks"})
            else:
                writer.add(np.full((32, 32, 3), shade, np.uint8), row)
    return FaceArchive(folder / f"{name}.zip")


def measured(path: Path, embeddings: dict) -> Path:
    rows = {"id": list(embeddings), "source_id": list(embeddings), "judge.embedding": list(embeddings.values())}
    pq.write_table(pa.table(rows).replace_schema_metadata({"masquerade": "{}"}), path)
    return path


@pytest.fixture
def pictures(tmp_path):
    source = archive(tmp_path, "source", 255)
    derived = [
        archive(tmp_path, f"{e}-{s}", 10 * e + s, "f2" if e == 6 else "", method="ours", variant=f"eps_{e}", seed=s,
                statement={"epsilon": float(e)})
        for e in (10, 6) for s in (1, 0)
    ]  # fmt: skip
    return source, derived


class TestCurves:
    def draw(self, tmp_path, name, cells=SWEEP):
        outputs = [tmp_path / f"{name}.{ending}" for ending in declarations.Curves.endings]
        figures.curves(reference.load(written(tmp_path, CURVES, "figure4")), cells, {}, CONTEXT, outputs)
        return [path.read_bytes() for path in outputs]

    def test_the_same_inputs_give_the_same_bytes(self, tmp_path):
        first = self.draw(tmp_path, "a")
        assert first == self.draw(tmp_path, "b")
        assert all(len(data) > 5000 for data in first)
        assert first != self.draw(tmp_path, "c", SWEEP[:4])

    def test_points_are_sorted_by_the_stated_fact(self, tmp_path):
        figure = reference.load(written(tmp_path, CURVES, "figure4"))
        places = figures._places(figure, figures.Cells(SWEEP), CONTEXT)
        assert [x for x, _ in places] == [6.0, 100.0, 800.0]

    def test_the_note_counts_the_pictures_of_each_curve_if_they_differ(self, tmp_path):
        figure = reference.load(written(tmp_path, CURVES, "figure4"))
        cells, places = figures.Cells(SWEEP), figures._places(figure, figures.Cells(SWEEP), CONTEXT)
        each = [cells.measured(key, figure.panels[0].curves[0], CONTEXT).of for _, key in places]
        assert figures._counted(figure, places, cells, CONTEXT) == f"Each point is over {each[0]} faces. "
        tried = [tree | {"attempts": {"wrong": {"psr": {"dlib_face": number(0.5, 48, 48)}}}} for tree in SWEEP]
        text = CURVES.replace("metric: none,", "metric: psr, judge: {name: Azure Face, role: azure}, attempt: wrong,")
        figure = reference.load(written(tmp_path, text, "figure4"))
        assert figures._counted(figure, places, figures.Cells(tried), CONTEXT) == (
            f"Pictures behind a point: {each[0]} (Azure), 96 (absent). "
        )
        assert figures._counted(figure, [], cells, CONTEXT) == "Nothing was measured. "

    def test_a_printed_threshold_is_a_line_at_its_height(self, tmp_path):
        text = CURVES.replace("printed: false}", "printed: false, threshold: {printed: 0.6, source: Table 1}}")
        [_, curve] = reference.load(written(tmp_path, text, "figure4")).panels[0].curves
        ax = Figure().add_subplot()
        figures._threshold(ax, curve, curve.threshold, "red", 1)
        [line] = ax.get_lines()
        assert list(line.get_ydata()) == [0.6, 0.6]
        assert line.get_label() == "absent, threshold 0.6, printed (Table 1)"
        with pytest.raises(ReferenceFileError, match="threshold"):
            reference.load(written(tmp_path, text.replace("printed: 0.6", "printed: null"), "figure4"))

    def test_a_figure_without_any_number_is_still_drawn(self, tmp_path):
        assert all(self.draw(tmp_path, "empty", []))

    def test_percentages_are_fractions(self, tmp_path):
        figure = reference.load(written(tmp_path, CURVES, "figure4"))
        assert figure.panels[0].curves[0].markers[0].printed.value == pytest.approx(0.97367)
        assert figure.panels[0].curves[0].markers[0].printed.text == "97.367%"


class TestGrids:
    def test_grid_is_repeatable_and_has_whole_pixels(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        files = [[tmp_path / f"{name}.{ending}" for ending in figure.endings] for name in "ab"]
        for outputs in files:
            figures.grid(figure, *pictures, SKIPPED, CONTEXT, outputs)
        assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
        pixels = np.asarray(Image.open(files[0][0]).convert("L"))
        tile, gap, head = 192, 6, 42  # 6 screen pixels for each of the 32 pixels of a picture
        for row, column, shade in [(0, 0, 255), (0, 1, 60), (0, 2, 100), (1, 2, 100)]:
            top, left = head + row * (tile + gap), gap + column * (tile + gap)
            assert (pixels[top : top + tile, left : left + tile] == shade).all()
        refused = pixels[head + tile + gap :, gap + tile + gap :][:tile, :tile]
        assert np.median(refused) == 228
        assert refused.min() < 100

    def test_columns_are_ordered_by_their_fact_and_a_missing_one_has_its_reason(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        columns = figures._columns(figure, face_selection.by_variant(pictures[1]), SKIPPED, CONTEXT, {})
        assert [(title, key, reason) for title, key, _, reason in columns] == [
            ("e = 6", ("ours", "eps_6"), ""), ("e = 10", ("ours", "eps_10"), ""),
            ("Other", ("other", "default"), "other is not built yet"),
        ]  # fmt: skip

    def test_without_distances_the_first_face_of_each_person_is_shown(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID.replace("closest_to_mean", "first"), "figure7"))
        assert face_selection.faces(figure, pictures[0], None) == ["f0", "f2"]

    def test_faces_closest_to_the_mean_are_shown_one_a_person(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        apart = self.distances({"f0": 1.0, "f1": 2.1, "f2": 2.0, "f3": 3.0, "f4": 1.8, "f5": np.nan})  # mean 1.98
        assert face_selection.faces(figure, pictures[0], apart) == ["f2", "f1"]

    def test_distances_are_euclidean_between_each_original_and_its_draw(self, tmp_path):
        source = measured(tmp_path / "source.parquet", {"a": [0.0, 0.0], "b": [1.0, 0.0]})
        derived = measured(tmp_path / "derived.parquet", {"b": [1.0, 2.0], "a": [3.0, 4.0], "c": None})
        with pytest.raises(ArchiveError, match="does not measure every source"):
            face_selection.distances(source, {("ours", "eps_6", 0): derived}, "judge")
        source = measured(tmp_path / "source.parquet", {"a": [0.0, 0.0], "b": [1.0, 0.0], "c": [1.0, 1.0]})
        apart = face_selection.distances(source, {("ours", "eps_6", 0): derived}, "judge")
        assert apart["source_id"].tolist() == ["b", "a", "c"]
        assert apart["distance"].tolist() == pytest.approx([2.0, 5.0, np.nan], nan_ok=True)
        with pytest.raises(ArchiveError, match=r"holds no other.embedding: is 'other' among measure.judges"):
            face_selection.distances(source, {}, "other")

    def test_the_draw_closest_to_the_mean_of_its_face_is_shown(self, pictures):
        archives = face_selection.by_variant(pictures[1])[("ours", "eps_10")]
        apart = pd.DataFrame(
            [("ours", "eps_10", seed, "f0", distance) for seed, distance in [(0, 1.0), (1, 1.9), (2, 2.6)]],
            columns=["method", "variant", "seed", "source_id", "distance"],
        )
        assert face_selection.draw("f0", archives, ("ours", "eps_10"), apart[apart["seed"] < 2])[
            0, 0, 0
        ] == pytest.approx(100 / 127.5 - 1)  # a tie: the first seed
        nearer = apart.assign(distance=[0.0, 1.9, 2.6])
        three = [*archives, self.third(archives[0])]
        assert face_selection.draw("f0", three, ("ours", "eps_10"), nearer)[0, 0, 0] == pytest.approx(101 / 127.5 - 1)

    def test_a_refused_face_gives_its_reason_and_never_the_original(self, pictures):
        archives = face_selection.by_variant(pictures[1])[("ours", "eps_6")]
        assert face_selection.draw("f2", archives, ("ours", "eps_6"), None) == "it has no landmarks"

    def test_no_face_left_is_an_error(self, tmp_path, pictures):
        figure = reference.load(written(tmp_path, GRID, "figure6"))
        nothing = self.distances(dict.fromkeys(["f0", "f1"], np.nan))
        with pytest.raises(ArchiveError, match="holds no test face for paper/figure6"):
            face_selection.faces(figure, pictures[0], nothing)

    @staticmethod
    def distances(apart: dict[str, float]) -> pd.DataFrame:
        rows = [("ours", "eps_6", 0, name, value) for name, value in apart.items()]
        return pd.DataFrame(rows, columns=["method", "variant", "seed", "source_id", "distance"])

    @staticmethod
    def third(first: FaceArchive) -> FaceArchive:
        """The same pictures under another seed."""
        copy = FaceArchive(first.path)
        copy.facts["seed"] = 2
        return copy


RECOVERY = """
kind: table
title: Table 3
caption: What comes back
source: Table 3, section 4
dataset: {name: CelebA-HQ, role: celeba_hq}
columns:
  - {title: PSR, metric: psr, judge: {name: Azure Face, role: azure}, direction: none, digits: 2}
  - {title: Recovered, metric: psr, judge: {name: Azure Face, role: azure}, attempt: recovered, direction: none,
     digits: 2}
rows:
  - {title: Ours, method: ours, variant: eps_6, printed: [3.9e-4, 28.08]}
  - {title: Wrong key, method: ours, variant: eps_6, attempt: wrong, note: another key}
  - {title: Saved, method: ours, variant: eps_6, attempt: saved, note: from what was saved}
  - {title: Original, method: original, variant: control, control: true, note: "control: the picture itself"}
"""


def tried(seed, recovered, wrong):
    attempts = {"recovered": {"psr": {"dlib_face": recovered}}, "wrong": {"psr": {"dlib_face": wrong}}}
    ours = cell("ours", "eps_6", number(0.9), number(1.0), tar(0.1), seed, epsilon=6.0)
    return ours | {"attempts": attempts}


class TestAttempts:
    """Rows, columns, curves and grids of recovered pictures."""

    @pytest.fixture
    def recovery(self, tmp_path):
        cells = [tried(0, number(0.1), number(0.7)), tried(1, number(0.2), number(0.8)), CELLS[-1]]
        return tables.build(reference.load(written(tmp_path, RECOVERY)), cells, {}, CONTEXT)

    def test_attempt_of_a_column_overrides_that_of_a_row(self, recovery):
        values = [[entry.measured.value for entry in line.entries] for line in recovery.lines]
        assert values[0] == pytest.approx([0.9, 0.15])
        assert values[1] == pytest.approx([0.75, 0.15])

    def test_control_without_attempts_is_measured_in_every_column(self, recovery):
        assert [entry.measured.value for entry in recovery.lines[3].entries] == [1.0, 1.0]

    def test_attempt_that_was_not_made_has_a_reason(self, recovery):
        assert recovery.lines[2].entries[0].measured.reason == "ours has no attempt 'saved'"

    def test_csv_has_an_attempt_column_only_if_the_table_has_attempts(self, recovery, result):
        records = list(csv.DictReader(io.StringIO(recovery.csv())))
        assert [record["attempt"] for record in records] == ["", "recovered", "wrong", "recovered", "saved",
                                                             "recovered", "", ""]  # fmt: skip
        assert "attempt" not in result.csv().splitlines()[0]

    def test_statement_of_a_method_appears_once(self, recovery):
        assert markdown.page(recovery).count("epsilon = 6") == 1

    def test_printed_powers_of_ten_are_numbers(self, recovery):
        assert (recovery.table.rows[0].printed[0].text, recovery.table.rows[0].printed[0].value) == ("3.9e-4", 3.9e-4)

    def test_needed_attempts_are_listed(self, recovery, table, tmp_path):
        assert reference.attempted(recovery.table) == [("celeba_hq", "ours", "eps_6")]
        assert reference.attempted(table) == []
        grid = GRID.replace("variant: default}", "variant: default, attempt: wrong, number: 1}")
        assert reference.attempted(reference.load(written(tmp_path, grid))) == [("celeba_hq", "other", "default")]
        curves = CURVES.replace("metric: psr\n", "metric: psr\n        attempt: recovered\n")
        offered = [("ours", "eps_6"), ("ours", "plain")]
        attempts = reference.attempted(reference.load(written(tmp_path, curves)), offered)
        assert attempts == [("celeba_hq", "ours", "eps_6")]

    @pytest.mark.parametrize("axis", ["axis: Privacy budget", "fact: epsilon\nx: {metric: psr}\naxis: Privacy budget"])
    def test_curves_have_one_x_axis(self, tmp_path, axis):
        with pytest.raises(ReferenceFileError, match="either a 'fact' of the statement or a metric"):
            reference.load(written(tmp_path, CURVES.replace("fact: epsilon\naxis: Privacy budget", axis)))

    def test_curves_are_placed_by_a_metric(self, tmp_path):
        x = "x: {metric: psr, judge: {name: Azure Face, role: azure}}\nscale: linear"
        figure = reference.load(written(tmp_path, CURVES.replace("fact: epsilon", x)))
        places = figures._places(figure, figures.Cells(SWEEP), CONTEXT)
        assert [key[2] for _, key in places] == ["eps_800", "eps_100", "eps_6"]
        assert [x for x, _ in places] == pytest.approx([0.205, 0.905, 0.999])
        assert figures._axis(figure, places, figures.Cells(SWEEP), CONTEXT) == "Privacy budget (here by dlib_face)"
        outputs = [tmp_path / "x.png"]
        figures.curves(figure, SWEEP, {}, CONTEXT, outputs)
        assert outputs[0].stat().st_size > 5000

    def test_grid_shows_the_difference_to_the_original_times_its_factor(self, tmp_path, pictures):
        columns = "  - {title: right, method: ours, variant: eps_10, attempt: recovered, difference: %s}"
        text = GRID.replace("closest_to_mean", "first").split("columns:")[0] + "columns:\n"
        attempts, shown = self.archive(tmp_path), {}
        for factor in (0.5, 2):
            figure = reference.load(written(tmp_path, text + columns % factor))
            outputs = [tmp_path / "difference.png"]
            figures.grid(figure, *pictures, SKIPPED, CONTEXT, outputs, attempts=[attempts])
            shown[factor] = np.asarray(Image.open(outputs[0]).convert("L"))[42 + 96, 6 + 192 + 6 + 96]
        assert shown == {0.5: pytest.approx(0.5 * (255 - 50), abs=1), 2: 255}  # of f2: 50 in the place of 255

    def test_grid_shows_the_named_attempt_and_number(self, tmp_path, pictures):
        attempts = self.archive(tmp_path)
        columns = "\n".join([
            "  - {title: right, method: ours, variant: eps_10, attempt: recovered}",
            "  - {title: second wrong, method: ours, variant: eps_10, attempt: wrong, number: 1}",
            "  - {title: pasted, method: ours, variant: eps_10, attempt: pasted}",
            "  - {title: Other, method: other, variant: default, attempt: wrong}",
        ])  # fmt: skip
        text = GRID.replace("closest_to_mean", "first").split("columns:")[0] + "columns:\n" + columns
        figure = reference.load(written(tmp_path, text))
        outputs = [tmp_path / "attempts.png"]
        figures.grid(figure, *pictures, SKIPPED, CONTEXT, outputs, attempts=[attempts])
        pixels = np.asarray(Image.open(outputs[0]).convert("L"))
        tile, gap, head = 192, 6, 42
        for column, shade in enumerate((255, 50, 81)):  # pictures of f2: f0 has no attempt
            left = gap + column * (tile + gap)
            assert (pixels[head : head + tile, left : left + tile] == shade).all()
        ids = face_selection.faces(figure, pictures[0], None, [attempts])
        assert ids == ["f2", "f4"]
        columns = figures._columns(figure, face_selection.by_variant(pictures[1]), SKIPPED, CONTEXT, {})
        assert [reason for *_, reason in columns] == ["nothing was tried here"] * 3 + ["other is not built yet"]
        assert face_selection.attempt("f2", [attempts], figure.columns[2]) == "no attempt 'pasted' of this face"
        assert face_selection.attempt("f4", [attempts], figure.columns[0]) == "no face was found"

    @staticmethod
    def archive(folder):
        facts = {"method": "ours", "variant": "eps_10", "seed": 0}
        with ArchiveWriter(folder / "attempts.zip", facts) as writer:
            for name in ("f2", "f4"):
                for shade, (attempt, count) in zip((50, 80), (("recovered", 1), ("wrong", 2)), strict=True):
                    for which in range(count):
                        row = {"id": f"{name}.{attempt}.{which}", "source_id": name, "identity": "p", "split": "test",
                               "attempt": attempt, "number": which}  # fmt: skip
                        refused = {"status": "refused", "reason": "no face was found"} if name == "f4" else {}
                        picture = None if refused else np.full((32, 32, 3), shade + which, np.uint8)
                        writer.add(picture, row | refused)
        return FaceArchive(folder / "attempts.zip")


def test_judge_that_trained_a_method_is_named(monkeypatch, root):
    from masquerade.core import discovery
    from masquerade.papers import judges_in_training

    table = reference.load(root / "reference/identitydp/table1.yaml")
    judges = {"facenet_casia": "recogniser_a", "azure_face": "dlib_face", "hog": "dlib_face"}
    stand_ins = StandIns(datasets={}, judges=judges)
    context = Context("mini", (0,), stand_ins, "c")
    assert judges_in_training.of_table(table, context) == "No judge of this table was seen in training."
    monkeypatch.setattr(discovery.load("judges", "recogniser_a"), "needs", ("identity",))
    sentence = judges_in_training.of_table(table, context)
    assert sentence.startswith("Judges seen in training: `recogniser_a` by Ours(ε=0.57), Ours(ε=6)")
