"""Tables with a group of columns for each judge and dataset."""

import csv
import io
import re

import pytest

from masquerade.core.errors import ReferenceFileError
from masquerade.papers import documents, reference, tables
from masquerade.papers.context import Context
from masquerade.params.blocks import StandIns
from paper_cells import number, rows_of, written

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
        assert "99.85 / **98.8**" in documents.markdown(wide)

    def test_every_stand_in_is_stated(self, wide):
        stated = "`drawn` stands in the place of CelebA-HQ and `wild` stands in the place of LFW"
        assert stated in documents.markdown(wide)

    def test_latex_has_the_same_width_in_every_line(self, wide):
        text = documents.latex(wide)
        width = 1 + len(re.search(r"\\begin\{tabular\}\{l(r+)\}", text)[1])
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) + 1 == width, line
        assert len(lines) >= 4
        assert text.isascii()

    def test_markdown_has_the_same_width_in_every_line(self, wide):
        for block in documents.markdown(wide).split("\n\n"):
            assert len({line.count("|") for line in block.splitlines() if line.startswith("|")}) <= 1

    def test_transposed_rows_are_the_columns_under_their_group(self, tmp_path):
        table = reference.load(written(tmp_path, WIDE + "transpose: true\n"))
        rows = rows_of(documents.markdown(tables.build(table, WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT)))
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
            text = documents.markdown(tables.build(table, [], {}, WIDE_CONTEXT))
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
        text = documents.markdown(tables.build(table, WIDE_CELLS, WIDE_SKIPPED, WIDE_CONTEXT))
        assert table.ours
        assert "†" not in text
        assert "no paper has such a table" in text
