"""Ranks of the leaderboard against hand-worked comparisons, and the page of a program that was scored."""

import re
from dataclasses import replace

import numpy as np
import pytest

from masquerade.cli import score
from masquerade.core import files
from masquerade.core.discovery import IMPORTED
from masquerade.papers import leaderboard, score_page
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Named, Row, Table
from masquerade.papers.leaderboard import Rank
from masquerade.papers.measured import Measured
from masquerade.papers.tables import Entry, Line, TableResult
from masquerade.params.blocks import StandIns
from masquerade.params.paths import Paths

CONTEXT = Context("tiny", (0,), StandIns(datasets={}, judges={}), "0f3c", "A caution.")
SHARED = np.random.default_rng(0).normal(0, 0.02, 2000)
"""What the drawn people add to the number of every method."""


def column(direction: str = "lower", **changes) -> Column:
    return Column(**{
        "title": "Named (%)", "group": "Protection", "metric": "attack_rank1_rate", "part": "strongest",
        "direction": direction, "digits": 1, "percent": True, "printed": False, **changes,
    })  # fmt: skip


def measured(value: float, own: float = 0.001, seed: int = 1, **changes) -> Measured:
    """A number whose draws move with those of the other methods, and by ``own`` alone."""
    draws = value + SHARED + np.random.default_rng(seed).normal(0, own, 2000)
    return Measured(value=value, over=10, of=10, seeds=1, draws=draws, **changes)


def lines(values: dict[str, Measured], given: Column, controls: tuple[str, ...] = ()) -> list[Line]:
    rows = [
        Row(title=name, method=IMPORTED if name == "theirs" else name, variant=name, note="n", control=name in controls)
        for name in values
    ]
    return [
        Line(row, (Entry(given, None, value),), {}, (0, 10)) for row, value in zip(rows, values.values(), strict=True)
    ]


def ranks(values: dict[str, Measured], direction: str = "lower", controls: tuple[str, ...] = ()) -> dict:
    made = lines(values, column(direction), controls)
    given = leaderboard.rank(made, [line.entries[0] for line in made])
    return dict(zip(values, given, strict=True))


def test_methods_that_differ_significantly_have_one_place_each_although_their_intervals_overlap():
    values = {"a": measured(0.2), "b": measured(0.21, seed=2), "c": measured(0.22, seed=3)}
    assert values["a"].interval[1] > values["c"].interval[0]
    assert ranks(values) == {"a": Rank(1, 1), "b": Rank(2, 2), "c": Rank(3, 3)}
    assert ranks(values, "higher") == {"a": Rank(3, 3), "b": Rank(2, 2), "c": Rank(1, 1)}


def test_methods_that_do_not_differ_significantly_share_a_rank():
    values = {"a": measured(0.2, 0.05), "b": measured(0.21, 0.05, 2), "c": measured(0.9, 0.05, 3)}
    assert ranks(values) == {"a": Rank(1, 2), "b": Rank(1, 2), "c": Rank(3, 3)}


def test_controls_missing_numbers_and_columns_without_direction_have_no_rank():
    values = {"a": measured(0.2), "b": Measured(reason="not measured"), "original": measured(0.9, seed=2)}
    assert ranks(values, controls=("original",)) == {"a": Rank(1, 1), "b": None, "original": None}
    assert set(ranks(values, "none").values()) == {None}


def test_without_intervals_no_method_is_significantly_better():
    values = {"a": Measured(value=0.1, seeds=1), "b": Measured(value=0.9, seeds=1)}
    assert ranks(values) == {"a": Rank(1, 2), "b": Rank(1, 2)}


def make_table(given: Column) -> Table:
    about = {"paper": "attackers", "name": "leaderboard", "title": "Leaderboard", "caption": "c", "source": "s"}
    return Table(kind="leaderboard", columns=(given,), rows=(), dataset=Named(name="D", role="d"), **about)


def build(values: dict[str, Measured], given: Column, controls: tuple[str, ...] = ()) -> leaderboard.Leaderboard:
    result = TableResult(make_table(given), CONTEXT, tuple(lines(values, given, controls)))
    return leaderboard.build(result, {("a", "a"): 0.25})


def test_a_refused_face_is_a_failure_where_a_share_should_be_high_and_missing_elsewhere():
    found = 0.5 + np.random.default_rng(5).normal(0, 0.1, 2000)
    whole = 0.4, (0.8 + SHARED) * found
    half = Measured(value=0.8, over=5, of=10, seeds=1, draws=0.8 + SHARED, people=10, of_all=whole)
    kept = build({"a": half}, column("higher")).result.lines[0].entries[0].measured
    assert (kept.value, kept.over) == (pytest.approx(0.4), 10)
    assert kept.interval == pytest.approx((0.24, 0.56), abs=0.04), "which faces are refused is a matter of chance, too"
    named = build({"a": half}, column("lower")).result.lines[0].entries[0].measured
    assert (named.value, named.over) == (0.8, 5)


def test_rows_stand_in_the_order_of_the_first_column_and_controls_last():
    values = {"c": measured(0.9, seed=3), "original": measured(0.1, seed=4), "a": measured(0.2), "b": measured(0.3)}
    board = build(values, column(), controls=("original",))
    assert [line.row.title for line in board.result.lines] == ["a", "b", "c", "original"]
    assert [str(given) for [given] in board.ranks] == ["1", "2", "3", "None"]


def test_the_files_hold_ranks_numbers_and_seconds():
    values = {"a": measured(0.2, 0.05, note="adapted: chance 0.042"), "theirs": measured(0.21, 0.05, 2)}
    board = build(values | {"original": measured(0.9, seed=3)}, column(), controls=("original",))
    page = leaderboard.markdown(board)
    assert re.search(r"\| a +\| +1–2 \| +0\.25 \| +adapted \|", page)
    assert "[figures/attackers/tradeoff.png](figures/attackers/tradeoff.png)" in page
    assert "A caution." in page
    records = files.parse_csv(leaderboard.csv(board))
    [own] = [record for record in records if record["method"] == "a" and record["column"] == "Named (%)"]
    assert (own["rank_first"], own["rank_last"], float(own["measured"])) == ("1", "2", 0.2)
    [seconds] = [record for record in records if record["method"] == "a" and record["column"] == leaderboard.SECONDS]
    assert float(seconds["measured"]) == 0.25


def test_columns_and_methods_without_a_number_are_named_and_not_shown():
    columns = (column(), column(title="Age", metric="age"))
    missing = Measured(reason="not measured")
    rows = [Row(title=name, method=name, variant="v", note="n") for name in ("a", "b")]
    shown = (
        Line(rows[0], (Entry(columns[0], None, measured(0.2)), Entry(columns[1], None, missing)), {}, (0, 9)),
        Line(rows[1], (Entry(columns[0], None, Measured()), Entry(columns[1], None, Measured())), {}, (0, 0), "absent"),
    )
    table = make_table(columns[0]).model_copy(update={"columns": columns})
    page = leaderboard.markdown(leaderboard.build(TableResult(table, CONTEXT, shown), {}))
    assert "Methods that were not run here: b." in page
    assert "Not measured here: Age." in page
    assert "Age ↓" not in page


def test_a_leaderboard_of_a_dataset_that_no_method_was_run_on_has_its_reasons(root):
    from masquerade.papers import reference, tables
    from masquerade.papers.measured import Results

    declared = reference.load(root / "reference/attackers/leaderboard.yaml")
    board = leaderboard.build(tables.build(declared, Results([], {}, CONTEXT)), {})
    records = files.parse_csv(leaderboard.csv(board))
    assert {record["row"] for record in records} == {row.title for row in declared.rows}
    assert "Methods that were not run here: Blur(19×19), " in leaderboard.markdown(board)
    assert "The leaderboard is of `celeba_hq`" in score_page.explain_absence(records, "theirs")


def test_seconds_are_those_of_the_first_job_and_none_of_images_of_another_program(tmp_path):
    (tmp_path / "falco-m_0-0.tsv").write_text("s\th:m:s\n12.0\t0:00:12\n")
    cells = [
        {"cell": {"method": method, "variant": "m_0", "seed": seed}, "statement": {"faces": 24}}
        for method in ("falco", IMPORTED) for seed in (0, 1)
    ]  # fmt: skip
    pattern = f"{tmp_path}/falco-{{variant}}-{{seed}}.tsv"
    assert leaderboard.read_seconds(cells, pattern) == {("falco", "m_0"): 0.5}
    assert leaderboard.read_seconds(cells, f"{tmp_path}/{{method}}.tsv") == {}, "no job ran on this machine"


def test_a_sentence_says_whether_the_order_by_the_composite_survives_the_strongest_attacker():
    values = {"a": (0.9, 0.2), "b": (0.8, 0.7), "c": (0.7, 0.6), "d": (0.6, 0.5)}  # a falls to the end: tau is 0
    columns = [column("higher", metric="hifd", part=part) for part in ("balanced", "balanced.attacked")]
    rows = [Row(title=name, method=name, variant="v", note="n") for name in values]
    shown = [
        Line(row, tuple(Entry(each, None, Measured(value=value)) for each, value in zip(columns, pair, strict=True)),
             {}, (0, 9))
        for row, pair in zip(rows, values.values(), strict=True)
    ]  # fmt: skip
    table = make_table(columns[0]).model_copy(update={"columns": tuple(columns)})
    [sentence] = leaderboard.compare_composites(TableResult(table, CONTEXT, tuple(shown)))
    assert "between the rankings of 4 methods by HiFD" in sentence
    assert "is 0.00 (" in sentence
    assert "a ranks first by HiFD, and b with the strongest attacker." in sentence
    assert leaderboard.compare_composites(TableResult(table, CONTEXT, tuple(shown[:3]))) == []
    alike = tuple(replace(line, entries=(shown[0].entries[0], line.entries[1])) for line in shown)
    assert leaderboard.compare_composites(TableResult(table, CONTEXT, alike)) == [], "one value has no order"


def test_the_page_of_a_program_says_where_it_stands_and_what_is_missing():
    note = "adapted: chance 0.042, recognizer b"
    values = {"a": measured(0.2), "theirs": measured(0.5, seed=2, note=note), "original": measured(0.9, seed=3)}
    records = files.parse_csv(leaderboard.csv(build(values, column(), controls=("original",))))
    missing = Measured(reason="no face could be measured")
    records += files.parse_csv(leaderboard.csv(build({"theirs": missing}, column(title="Age", part="", metric="age"))))
    about = {"title": "Theirs", "source": "They 2020"}
    page = score_page.write(records, "theirs", about, (1, 10), CONTEXT)
    row = next(line for line in page.splitlines() if line.startswith("| Named (%)"))
    assert [cell.strip() for cell in row.strip("|").split("|")][2] == "2 of 2"
    assert "(a)" in row
    assert "(`adapted`, chance 0.042) identifies 50.0" in page
    assert "9 of 10 test faces have an image" in page
    assert "- Age: no face could be measured." in page


def test_where_a_program_stands_is_readable_on_a_terminal_of_80_columns(tmp_path, monkeypatch, capsys):
    note = "adapted: chance 0.042, recognizer b"
    values = {f"method {number}": measured(0.02 * number, 0.3, seed=number) for number in range(20)}
    title = "Strongest attacker (%)"
    board = build({**values, "theirs": measured(0.5, 0.3, 30, note=note)}, column(title=title))
    text = leaderboard.csv(board)
    missing = build(
        {"theirs": Measured(reason="no face could be measured")}, column(title="Age", part="", metric="age")
    )
    text += leaderboard.csv(missing).split("\n", 1)[1]
    files.write_text(tmp_path / f"{Paths('tiny').leaderboard}.csv", text)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "80")
    score._print_standing(score.ScoreOptions("theirs", root=tmp_path), "tiny")
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    [line] = [line for line in printed.splitlines() if line.strip().startswith(title)]
    assert re.search(r"50\.0 \[.+\] +1–21 of 21 ", line)
    assert leaderboard.RANKS in printed
    assert "identifies 50.0" in printed
    assert "Not measured: Age: no face could be measured." in printed
    assert f"{tmp_path}/results/tiny/scores/theirs.md" in printed


def test_the_extremes_are_the_nearest_and_the_farthest_faces():
    import pandas as pd

    distances = pd.DataFrame({"source_id": list("abcdefg"), "distance": [3.0, 1.0, np.nan, 5.0, 2.0, 4.0, 0.0]})
    nearest, farthest = score_page.select_extremes(distances)
    assert "".join(nearest["source_id"]) == "gbea"
    assert "".join(farthest["source_id"]) == "dfae"


def test_the_declared_leaderboard_has_each_method_once_by_its_main_variant(root):
    from masquerade.core import discovery
    from masquerade.papers import reference

    table = reference.load(root / "reference/attackers/leaderboard.yaml")
    shown = [row.method for row in table.rows]
    assert len(shown) == len(set(shown))
    assert set(shown) >= {
        name for name in discovery.list_programs() if not discovery.load("methods", name).capabilities.control
    }
    assert table.kind == "leaderboard"
