"""Every file of reference/ holds the numbers that its paper prints; these tests find new files by themselves."""

import hashlib
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

from masquerade.core import annotations, discovery
from masquerade.core.errors import ReferenceFileError
from masquerade.papers import documents, reference, tables
from masquerade.papers.context import Context
from masquerade.papers.declarations import Table
from masquerade.papers.measured import Results
from masquerade.params.blocks import PARAMS, StandIns
from masquerade.params.model import build_model
from masquerade.params.overlays import read_yaml

FOLDER = Path(__file__).parents[2] / "reference"
FILES = sorted(FOLDER.glob("*/*.yaml"))
ITEMS = {f"{path.parent.name}/{path.stem}": reference.load(path) for path in FILES}
METHODS = build_model()(**read_yaml(FOLDER.parent / PARAMS)).model_dump(exclude_none=True)["methods"]
TABLES = {key: item for key, item in ITEMS.items() if isinstance(item, Table)}
DIGESTS = {
    "cao21/table1": "64dd347f82c5fd40",
    "cao21/table2": "fa59b2a270a6f92a",
    "cao21/table3": "fa854abcc1e347c0",
    "cao21/table4": "8678fdb8e0d0a416",
    "falco/table1": "b15e9fc50141fcfe",
    "falco/table2": "ca24bc2d45fd201e",
    "falco/table3": "99a20973f28bca08",
    "falco/table4": "633849a71b89cab9",
    "falco/table5": "eac4aad666ee36ab",
    "falco/table6": "538ef47a26e825c4",
    "identitydp/table1": "03ae98ea96f3580a",
    "identitydp/table2": "c23c53080b976353",
    "identitydp/table3": "163a30b179bff022",
    "ifadit/table1": "d8508eaccc08a1d7",
    "ifadit/table2": "7e27fc64baf3c2a9",
    "ifadit/table3": "c372f859010b650c",
    "ifadit/table4": "9fb628daa10baeea",
    "ifadit/table5": "023235c7713e4cc6",
    "lreorg/table2": "436b678b05c5618b",
    "lreorg/table3": "082ce9cae01f60b9",
    "lreorg/table4": "ce2f7e439ddb2e74",
    "lreorg/table5": "b78f6198d4891175",
    "lreorg/table6": "8c7242a91ff9304b",
    "lreorg/table7": "b9bf90e64cff10be",
    "lreorg/table8": "578666432efd36a8",
    "lreorg/table9": "2d22423c529c3f0b",
    "lreorg/table10": "22c1b726c3d0bc66",
}
"""SHA-256, first 16 digits, of the rows of `printed_rows`. They are of the rows as typed from the papers a second time,
apart from the files: whoever corrects a number compares its table with the paper before the digest changes."""


def printed_rows(table):
    """A title and the printed digits a line; ? means that our copy of a paper holds no number."""
    printed = [[number.text.replace(" ", "") if number else "?" for number in row.printed] for row in table.rows]
    titles = [row.title for row in table.rows]
    if table.key == "falco/table5":  # the paper prints its columns as lines
        titles = [f"{column.group} {column.part}" for column in table.columns]
        printed = zip(*filter(None, printed), strict=True)
    return [" ".join([title, *numbers]) for title, numbers in zip(titles, printed, strict=True) if numbers]


@pytest.mark.parametrize("key", sorted({*DIGESTS, *(key for key, table in TABLES.items() if not table.ours)}))
def test_tables_hold_the_printed_numbers_digit_by_digit(key):
    rows = "\n".join(printed_rows(TABLES[key]))
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == DIGESTS[key], rows


def test_printed_means_equal_the_means_of_the_printed_attributes():
    """Inner and outer of Table 3 are means of the rows of Table 5, as their note says; the combined one is not."""
    attributes, means = ITEMS["falco/table5"], ITEMS["falco/table3"]
    for row in (row for row in attributes.rows if row.printed):
        inner, outer, combined = next(mean for mean in means.rows if mean.title == row.title).printed
        groups = {}
        for column, number in zip(attributes.columns, row.printed, strict=True):
            groups.setdefault(column.group.split()[0], []).append(number.value)
        assert fmean(groups["Inner"]) == pytest.approx(inner.value, abs=6e-5)
        assert fmean(groups["Outer"]) == pytest.approx(outer.value, abs=6e-5)
        every = fmean([*groups["Inner"], *groups["Outer"]])
        assert f"{every:.4f}" in means.note
        assert abs(every - combined.value) > 0.004


def test_attributes_of_the_transposed_table_are_those_of_the_regions():
    groups = {}
    for column in ITEMS["falco/table5"].columns:
        groups.setdefault(column.group, set()).add(column.part)
    assert groups == {"Outer face region": set(annotations.OUTER), "Inner face region": set(annotations.INNER)}


@pytest.mark.parametrize("key", TABLES)
def test_every_table_is_either_printed_or_ours(key):
    assert any(row.printed for row in TABLES[key].rows) != TABLES[key].ours


@pytest.mark.parametrize("key", TABLES)
def test_every_table_has_all_controls(key):
    if {column.metric for column in TABLES[key].columns} <= {"key_attack_rate", "linkage_auc"}:
        return  # a control takes no key: another person and shuffled people are controls in these tables' columns
    controls = {row.method for row in TABLES[key].rows if row.control}
    assert controls >= {"original", "blackout", "random_identity"}


@pytest.mark.parametrize("key", TABLES)
def test_every_frechet_distance_has_a_kernel_distance_to_the_same_set_beside_it(key):
    """A Frechet distance of few faces is mostly bias; a kernel distance has none."""
    metrics = {column.metric for column in TABLES[key].columns}
    frechet = {metric for metric in metrics if metric.startswith("frechet_distance")}
    assert {metric.replace("frechet", "kernel") for metric in frechet} <= metrics


@pytest.mark.parametrize("key", ITEMS)
def test_every_metric_of_a_reference_exists(key):
    item = ITEMS[key]
    measures = {"table": lambda: item.columns, "leaderboard": lambda: item.columns, "grid": list, "clusters": list,
                "tradeoff": lambda: [item.privacy, item.naive, item.utility],
                "curves": lambda: [curve for panel in item.panels for curve in panel.curves]}[item.kind]()  # fmt: skip
    assert {measure.metric for measure in measures} <= set(discovery.list_names("metrics"))


@pytest.mark.parametrize("key", ITEMS)
def test_every_method_and_variant_is_in_the_parameters(key):
    """No row, column or panel is empty because nobody built its method."""
    offered = {(name, variant) for name, block in METHODS.items() for variant in block["variants"]}
    assert {(method, variant) for _, method, variant in reference.needs(ITEMS[key], offered)} <= offered


def test_the_sweep_over_epsilon_holds_one_kind_of_sensitivity():
    offered = [("identitydp", variant) for variant in METHODS["identitydp"]["variants"]]
    swept = {variant for _, method, variant in reference.needs(ITEMS["identitydp/figure4"], offered)} - {"control"}
    assert len(swept) >= 5
    assert {METHODS["identitydp"]["variants"][variant]["sensitivity"] for variant in swept} == {"measured"}


@pytest.mark.parametrize("key", TABLES)
def test_every_row_can_be_written_in_latex(key):
    """pdflatex stops at letters outside ASCII."""
    stand_ins = StandIns(datasets={}, judges={})
    results = Results([], {}, Context("paper", (0,), stand_ins, "abc1234"))
    assert documents.latex(tables.build(TABLES[key], results)).isascii()


@pytest.mark.parametrize(
    ("table", "measure", "better", "worse"),
    [  # the text calls the first row better, and the column says the opposite
        ("cao21/table1", 0, "Ours", "Gu et al. [8]"),
        ("cao21/table4", 1, "Ours", "Gu et al."),
        ("cao21/table4", 1, "Ours", "Blur"),
        ("cao21/table4", 3, "Ours", "Gu et al."),
        ("cao21/table4", 3, "Ours", "Blur"),
        ("falco/table3", 1, "DeepPrivacy [16]", "Ours"),
        ("falco/table3", 1, "CIAGAN [27]", "Ours"),
        ("falco/table5", 23, "Ours", "DeepPrivacy [16]"),
        ("ifadit/table1", 3, "Ours", "RiDDLE"),
        ("lreorg/table7", 1, "(a) ID+Makeup", "ID (default)"),
    ],
)
def test_a_sentence_that_a_column_contradicts_is_noted_with_its_numbers(table, measure, better, worse):
    item = ITEMS[table]
    rows = {row.title: row.printed[measure] for row in item.rows if row.printed}
    first, second = rows[better], rows[worse]
    sign = 1 if item.columns[measure].direction == "higher" else -1
    assert sign * (first.value - second.value) <= 0
    assert first.text in item.note or second.text in item.note


@pytest.mark.parametrize("key", ITEMS)
def test_attempts_are_requested_only_of_methods_that_recover_faces_or_take_a_key(key):
    kinds = {
        "recovered",
        "wrong",
        "near.digit",
        "near.level",
        "near.bit",
        "saved",
        "saved_wrong",
        "file",
        "pasted",
        "key",
    }
    item = ITEMS[key]
    if item.kind in ("clusters", "tradeoff"):
        assert not reference.list_attempts(item)
        return
    if item.kind == "curves":
        requested = {curve.attempt for panel in item.panels for curve in panel.curves} - {""}
    else:
        requested = {cell.attempt for cell in [*reference.method_entries(item), *item.columns]} - {""}
    assert all(attempt in kinds or attempt.startswith("view.") for attempt in requested)
    offered = [(name, variant) for name, block in METHODS.items() for variant in block["variants"]]
    shown = {method for _, method, _ in reference.list_attempts(item, offered)}
    assert bool(requested) == bool(shown)
    if item.kind == "leaderboard":  # each method has a row, also those that do not recover faces
        return
    able = {name: discovery.load("methods", name).capabilities for name in METHODS}
    assert shown <= {name for name, can in able.items() if can.invertible or can.saves or can.keys}


@pytest.mark.parametrize("key", [key for key, item in ITEMS.items() if item.kind == "clusters"])
def test_clusters_are_of_keywords_and_labels_that_exist(key):
    item = ITEMS[key]
    for panel in item.panels:
        assert panel.features in METHODS[item.method]["params"]["keywords"]
        assert panel.label in {"identity", *annotations.INNER, *annotations.OUTER}


def test_a_row_that_two_tables_print_is_the_same_in_both():
    """lreorg's default setting; so 984 of Table 3 is 98.4."""

    def texts(key, row):
        return [number.text for number in next(line.printed for line in ITEMS[key].rows if line.title == row)]

    assert texts("lreorg/table2", "Ours") == texts("lreorg/table3", "Ours")
    psr_a, psr_b, _, apr, fid = texts("lreorg/table2", "Ours")
    assert texts("lreorg/table7", "ID (default)") == [psr_a, psr_b, apr, fid]


def test_markers_of_the_curves_repeat_the_printed_tables():
    """Figures 4 and 5 mark numbers of Table I, and these must be equal to the table's."""
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


def test_every_printed_cost_is_of_a_variant_that_is_measured():
    costs = reference.load_costs(FOLDER / "costs.yaml")
    assert [(cost.method, cost.printed.text, cost.device) for cost in costs] == [
        ("identitydp", "0.329", "NVIDIA GTX 1080 Ti")
    ]
    assert all(cost.variant in METHODS[cost.method]["variants"] for cost in costs)


def test_a_mistake_in_a_printed_cost_is_named(tmp_path):
    path = tmp_path / "costs.yaml"
    path.write_text("- {paper: falco, methud: falco, variant: m_0, printed: 1, device: GPU, source: section 4}")
    with pytest.raises(ReferenceFileError, match=r"costs\.yaml: .*methud'. Did you mean 'method'"):
        reference.load_costs(path)
    path.write_text("paper: falco")
    with pytest.raises(ReferenceFileError, match="must be a list of printed times"):
        reference.load_costs(path)


def test_reading_the_reference_loads_neither_torch_nor_matplotlib():
    program = "import sys; from masquerade.papers import reference; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "masquerade.papers.reference" in loaded
    assert not {"torch", "matplotlib", "pandas"} & set(loaded)
