"""Every file of reference/ holds what its paper prints; a new file brings its own tests along by existing."""

import subprocess
import sys
from pathlib import Path

import pytest

from masquerade import discovery
from masquerade.papers import reference, tables
from masquerade.papers.measured import Context
from masquerade.params import PARAMS, StandIns, read

FOLDER = Path(__file__).parents[2] / "reference"
FILES = sorted(FOLDER.glob("*/*.yaml"))
ITEMS = {f"{path.parent.name}/{path.stem}": reference.load(path) for path in FILES}
METHODS = read(FOLDER.parent / PARAMS)["methods"]
TABLES = {key: item for key, item in ITEMS.items() if item.kind == "table"}
IDENTITYDP_NUMBERS = {
    "table1": """
        Pixelization(8×8) 0.8646 0.8993 0 26.735 0.7671 0.923
        Pixelization(16×16) 1.1541 1.2195 0.017 23.926 0.7223 0.058
        Noise(σ=9) 0.3317 0.2723 0.002 23.831 0.8312 0.986
        Noise(σ=49) 1.1267 1.0280 0.012 14.370 0.5533 0.425
        Blur(7×7) 0.8491 0.8380 0 27.405 0.806 0.888
        Blur(19×19) 1.1102 1.1857 0.669 24.829 0.7719 0.518
        DeepPrivacy 1.0860 1.1829 0.961 21.012 0.7808 0.989
        Fawkes 0.7267 0.8585 0 35.898 0.9487 0.985
        Ours(ε=6) 1.1403 1.2012 0.908 24.640 0.8606 0.997
        Ours(ε=0.57) 1.1644 1.2307 0.967 23.909 0.8519 0.997""",
    "table2": """
        AnonymousNet 0.8896 1.0589 0.295 18.892 0.7192 0.892
        CIAGAN 0.8155 1.0271 0.945 21.863 0.7401 0.958
        Ours(ε=6) 0.9345 1.0918 0.905 23.353 0.8188 0.986
        Ours(ε=0.57) 0.9622 1.1176 0.961 22.7639 0.8005 0.987""",
    "table3": """
        Original 0.965±0.016 0.986±0.010 0
        AnonymousNet 0.037±0.015 0.044±0.016 6.8479
        DeepPrivacy 0.029±0.012 0.039±0.014 2.7122
        CIAGAN 0.019±0.008 0.034±0.015 2.1756
        Fawkes 0.898±0.010 0.917±0.012 1.2681
        Ours(ε=6) 0.019±0.010 0.031±0.015 2.0201
        Ours(ε=0.57) 0.016±0.011 0.024±0.014 2.0401""",
}
"""Typed from the paper a second time."""


@pytest.mark.parametrize("name", IDENTITYDP_NUMBERS)
def test_identitydp_tables_hold_the_printed_numbers_digit_by_digit(name):
    rows = [
        " ".join([row.title, *(number.text.replace(" ", "") for number in row.printed)])
        for row in ITEMS[f"identitydp/{name}"].rows
        if row.printed
    ]
    assert rows == [line.strip() for line in IDENTITYDP_NUMBERS[name].strip().splitlines()]


@pytest.mark.parametrize("key", TABLES)
def test_every_printed_row_fills_the_printed_columns(key):
    table = TABLES[key]
    width = sum(column.printed for column in table.columns)
    assert width and all(len(row.printed) == width for row in table.rows if row.printed)


@pytest.mark.parametrize("key", TABLES)
def test_every_table_has_a_floor_and_a_ceiling(key):
    controls = {row.method for row in TABLES[key].rows if row.control}
    assert controls >= {"original", "blackout", "random_identity"}


@pytest.mark.parametrize("key", ITEMS)
def test_every_metric_that_is_asked_for_exists(key):
    item = ITEMS[key]
    measures = {"table": lambda: item.columns, "grid": list,
                "curves": lambda: [curve for panel in item.panels for curve in panel.curves]}[item.kind]()  # fmt: skip
    assert {measure.metric for measure in measures} <= set(discovery.names("metrics"))


@pytest.mark.parametrize("key", ITEMS)
def test_every_variant_of_a_method_that_is_built_is_in_the_parameters(key):
    offered = {(name, variant) for name, block in METHODS.items() for variant in block["variants"]}
    for _, method, variant in reference.needs(ITEMS[key], offered):
        assert method not in METHODS or (method, variant) in offered


def test_the_sweep_over_epsilon_holds_one_kind_of_sensitivity():
    offered = [("identitydp", variant) for variant in METHODS["identitydp"]["variants"]]
    swept = {variant for _, method, variant in reference.needs(ITEMS["identitydp/figure4"], offered)} - {"control"}
    assert len(swept) >= 5
    assert {METHODS["identitydp"]["variants"][variant]["sensitivity"] for variant in swept} == {"measured"}


@pytest.mark.parametrize("key", TABLES)
def test_every_row_can_be_written_in_latex(key):
    """pdflatex stops at a letter that it does not know."""
    stand_ins = StandIns(datasets={}, judges={})
    assert tables.build(TABLES[key], [], {}, Context("paper", (0,), stand_ins, "abc1234")).latex().isascii()


@pytest.mark.parametrize("key", ITEMS)
def test_every_source_names_its_table_or_figure_and_section(key):
    source = ITEMS[key].source
    assert ITEMS[key].title in source and "section" in source and "doi:" in source


def test_markers_of_the_curves_repeat_the_printed_tables():
    """Figure 4 and 5 mark numbers of Table I: they must be the same numbers."""
    table = ITEMS["identitydp/table1"]
    rows = {0.57: "Ours(ε=0.57)", 6.0: "Ours(ε=6)"}
    checked = 0
    for curve in [c for name in ("figure4", "figure5") for p in ITEMS[f"identitydp/{name}"].panels for c in p.curves]:
        for marker in curve.markers:
            if marker.source != "Table I":
                continue
            row = next(row for row in table.rows if row.title == rows[marker.at])
            places = [(column.metric, column.judge) for column in table.columns]
            assert marker.printed.text == row.printed[places.index((curve.metric, curve.judge))].text
            checked += 1
    assert checked == 12


def test_reading_the_reference_loads_neither_torch_nor_matplotlib():
    program = "import sys; from masquerade.papers import reference; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "masquerade.papers.reference" in loaded
    assert not {"torch", "matplotlib", "pandas"} & set(loaded)
