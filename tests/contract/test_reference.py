"""Every file of reference/ holds the numbers that its paper prints; these tests find new files by themselves."""

import math
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

from masquerade.core import annotations, discovery
from masquerade.core.errors import ReferenceFileError
from masquerade.papers import claims, latex, printed_costs, reference, tables
from masquerade.papers.context import Context
from masquerade.params.blocks import PARAMS, StandIns
from masquerade.params.yaml_files import read

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
FALCO_NUMBERS = {
    "table1": """
        Randomly generated 18.09 100 99.99 3.61 1.08
        CIA-GAN [27] 37.94 95.10 99.82 2.19 0.37
        DeepPrivacy [16] 32.99 92.82 99.85 3.61 1.05
        Ours (ID) 44.12 98.58 97.99 3.28 0.58
        Ours (ID+attributes) 44.11 100 100 3.06 2.06
        Ours 29.93 100 100 2.80 1.67""",
    "table2": """
        CIA-GAN [27] 22.07 85.23 98.14 99.89 0.17 0.91
        DeepPrivacy [16] 23.46 123.67 96.70 99.57 2.74 1.52
        Ours 27.45 68.88 100 100 2.07 1.58""",
    "table3": """
        Original 0.8409 0.8683 0.8539
        CIAGAN [27] 0.7277 0.8372 0.7852
        DeepPrivacy [16] 0.7658 0.8511 0.8135
        Ours 0.7817 0.8518 0.8181""",
    "table4": """
        Ours (m=0) 29.93 100 2.80 1.67 0.8181
        Ours (m=9) 27.58 100 3.41 1.76 0.83""",
    "table6": """
        CIAGAN [27] 0.7721 0.9143 0.7045
        DeepPrivacy [16] 0.7902 0.9133 0.7019
        Ours 0.8215 0.9157 0.7209""",
}
FALCO_ATTRIBUTES = {
    "Outer face region": """
        Bald 0.9778 0.9772 0.9769
        Bangs 0.8127 0.85 0.8241
        Black_Hair 0.7927 0.7794 0.7864
        Blond_Hair 0.8497 0.8708 0.8707
        Brown_Hair 0.7626 0.7615 0.7593
        Double_Chin 0.9377 0.9362 0.9364
        Gray_Hair 0.9603 0.9569 0.9587
        Receding_Hairline 0.9168 0.9126 0.9117
        Sideburns 0.9197 0.9228 0.9186
        Straight_Hair 0.53 0.7738 0.7702
        Wavy_Hair 0.6433 0.6603 0.6652
        Wearing_Earrings 0.6972 0.6721 0.7123
        Wearing_Hat 0.9636 0.9641 0.9595
        Wearing_Necklace 0.822 0.8017 0.81
        Wearing_Necktie 0.9288 0.9281 0.9273
        Oval_Face 0.7938 0.7796 0.7783
        Chubby 0.9247 0.922 0.9153""",
    "Inner face region": """
        5_o_Clock_Shadow 0.8579 0.8604 0.8711
        Arched_Eyebrows 0.6057 0.658 0.6684
        Bags_Under_Eyes 0.6946 0.7156 0.7158
        Big_Lips 0.6167 0.5901 0.6194
        Big_Nose 0.6814 0.7228 0.7182
        Bushy_Eyebrows 0.774 0.8288 0.8267
        Eyeglasses 0.9483 0.9622 0.9564
        Goatee 0.9284 0.9289 0.9303
        Heavy_Makeup 0.6197 0.7492 0.6859
        High_Cheekbones 0.5356 0.668 0.6729
        Male 0.6891 0.7917 0.8381
        Mouth_Slightly_Open 0.5722 0.603 0.6305
        Mustache 0.9398 0.9401 0.9323
        Narrow_Eyes 0.8925 0.8839 0.883
        No_Beard 0.5359 0.5571 0.7615
        Pale_Skin 0.9418 0.9446 0.9451
        Pointy_Nose 0.6239 0.6291 0.6689
        Rosy_Cheeks 0.8826 0.8553 0.8825
        Smiling 0.5607 0.6505 0.6666
        Wearing_Lipstick 0.6234 0.7721 0.7579
        Young 0.7583 0.7706 0.7848""",
}
CAO21_NUMBERS = {
    "table1": """
        DeepPrivacy [10] 0.74623 0.939 1.19684 0.734 1.22889 0.816
        Gu et al. [8] 0.82234 0.961 1.14419 0.704 1.16245 0.695
        Ours 0.79195 0.975 1.24421 0.913 1.27270 0.928""",
    "table2": """
        DeepPrivacy [10] 1.0 5.005 2.506 1.502 1.799 3.288
        Gu et al. [8] 0.8585 0.925 2.346 1.810 1.906 2.139
        Ours 0.9973 0.225 1.969 1.236 1.546 1.900""",
    "table3": """
        Incorrect Recovery 0.794 0.904 1.243 0.854 1.257 0.879
        Correct Recovery 0.228 0.035 0.368 0.035 0.401 0.035""",
    "table4": """
        Blur 0.242 28.396 0.802 0.026
        Pixelation 0.447 23.159 0.671 0.040
        Noise 0.264 22.163 0.701 0.046
        Gu et al. 0.186 27.602 0.827 0.029
        Ours 0.062 27.501 0.902 0.031""",
}
IFADIT_NUMBERS = {
    "table1": """
        CIAGAN 0.587 0.016 0.234 0.022 0.341 0.020 0.154 0.023
        DeepPrivacy 0.531 0.017 0.172 0.023 0.555 0.017 0.373 0.019
        FIT 0.125 0.033 0.100 0.023 0.272 0.032 0.159 0.023
        RiDDLE 0.099 0.024 0.076 0.024 0.148 0.023 0.101 0.024
        Ours 0.061 0.048 0.048 0.024 0.020 0.049 0.015 0.025""",
    "table2": """
        DeepPrivacy 1.000 0.980 4.654 2.685 3.280 2.896 23.713
        CIAGAN 0.992 0.937 20.387 15.476 8.042 8.930 32.611
        FIT 1.000 0.984 7.879 4.218 3.572 4.047 30.331
        RiDDLE 1.000 0.991 3.824 1.700 1.674 1.512 15.389
        Ours 1.000 0.995 0.998 0.850 1.219 0.986 14.760""",
    "table3": """
        FIT 3.9e-4 28.08 0.896 0.151 0.917 0.882
        RiDDLE 7.7e-4 25.39 0.928 0.073 0.804 0.705
        Ours 3.2e-4 35.20 0.945 0.041 0.852 0.786""",
    "table4": """
        CIAGAN 0.254 21.99
        FIT 0.192 54.18
        RiDDLE 0.138 71.64
        Ours (anonymized) 0.062 74.72
        Ours (de-anonymized) 0.172 70.80""",
    "table5": """
        w/o L_Div 0.195 14.940 23.069 0.945 0.040 0.954
        w/o L_Img 0.181 20.524 72.618 0.943 0.042 0.951
        w/o ICL 0.208 14.760 69.957 0.916 0.069 0.771
        w/o DPT 0.010 195.476 19.897 0.837 0.233 0.010
        FULL 0.062 14.760 73.165 0.945 0.039 0.954""",
}
LREORG_NUMBERS = {
    "table2": """
        Original ? ? 100 92.2 5.65
        CIAGAN 97.4 97.3 100 74.0 102.8
        DP1 95.1 ? 100 ? 53.3
        Ours 98.4 98.8 100 82.0 40.1""",
    "table3": """
        Blurring 97.0 98.1 93.2 66.3 ?
        DartBlur 99.9 100 97.8 ? 128.2
        Ours 98.4 98.8 100 82.0 40.1""",
    "table4": """
        IdentityDP ? ? ? ? ?
        Ours ? ? ? ? ?""",
    "table5": """
        DP2 ? ? ? ? ?
        LDFA ? ? ? ? ?
        CLIP2Protect ? ? ? ? ?
        Ours ? ? ? ? ?""",
    "table6": """
        Ours ? ? ? ? ?""",
    "table7": """
        ID (default) 98.4 98.8 82.0 40.1
        (a) ID+Gender 99.4 99.7 72.4 60.5
        (a) ID+Age 98.5 99.2 68.8 62.3
        (a) ID+Expression 99.0 ? 53.4 52.0
        (a) ID+Makeup 98.6 98.8 79.6 53.8
        (b) ID+Gender 99.6 99.7 39.9 53.9
        (b) ID+Age 99.4 99.5 47.7 47.5
        (b) ID+Expression ? 99.5 47.3 35.9
        (b) ID+Makeup 99.0 99.0 51.4 40.3""",
    "table8": """
        Identity, recovered 59.5 ? ? ? ?
        Gender, recovered ? 99.0 ? ? ?
        Age, recovered ? ? 84.7 ? ?
        Expression, recovered ? ? ? 81.4 ?
        Makeup, recovered ? ? ? ? 84.1""",
    "table9": """
        k-anonymity ? ? ?
        Ours ? ? ?""",
    "table10": """
        Gender ? ?
        Age ? ?
        Expression ? ?
        Makeup ? ?""",
}
"""Typed from the papers a second time; ? means that our copy of a paper holds no number."""
PAPERS = {
    "identitydp": IDENTITYDP_NUMBERS,
    "falco": FALCO_NUMBERS,
    "cao21": CAO21_NUMBERS,
    "ifadit": IFADIT_NUMBERS,
    "lreorg": LREORG_NUMBERS,
}
NUMBERS = {f"{paper}/{name}": text for paper, tables in PAPERS.items() for name, text in tables.items()}


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("key", NUMBERS)
def test_tables_hold_the_printed_numbers_digit_by_digit(key):
    rows = [
        " ".join([row.title, *(number.text.replace(" ", "") if number else "?" for number in row.printed)])
        for row in ITEMS[key].rows
        if row.printed
    ]
    assert rows == lines(NUMBERS[key])


def test_transposed_table_holds_the_printed_numbers_digit_by_digit():
    table = ITEMS["falco/table5"]
    printed = [row.printed for row in table.rows if row.printed]
    texts = {}
    for column, *numbers in zip(table.columns, *printed, strict=True):
        texts.setdefault(column.group, []).append(" ".join([column.part, *(number.text for number in numbers)]))
    assert texts == {group: lines(text) for group, text in FALCO_ATTRIBUTES.items()}
    assert [row.title for row in table.rows if row.printed] == ["CIAGAN [27]", "DeepPrivacy [16]", "Ours"]


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
def test_every_printed_row_fills_the_printed_columns(key):
    table = TABLES[key]
    width = sum(column.printed for column in table.columns)
    assert all(len(row.printed) == width for row in table.rows if row.printed)
    assert any(row.printed for row in table.rows) != table.ours


@pytest.mark.parametrize("key", TABLES)
def test_every_table_has_all_controls(key):
    if {column.metric for column in TABLES[key].columns} <= {"key_attack_rate", "linkage_auc"}:
        return  # a control takes no key: another person and shuffled people are controls in these tables' columns
    controls = {row.method for row in TABLES[key].rows if row.control}
    assert controls >= {"original", "blackout", "random_identity"}


@pytest.mark.parametrize("key", [key for key, table in TABLES.items() if table.paper == "attackers"])
def test_tables_of_attackers_state_what_is_random(key):
    """In the note of each row, as the method declares it."""
    for row in TABLES[key].rows:
        can = discovery.load("methods", row.method).capabilities
        if not row.control and not can.keys and can.deterministic:
            assert row.note == "the same picture gives the same result"
        elif not row.control and can.keys:
            assert row.note == "random under its key"
            assert can.deterministic, "a key is all that is random"
        elif not row.control:
            assert row.note == "random in each picture"


@pytest.mark.parametrize("key", [key for key, item in ITEMS.items() if item.paper == "attackers"])
def test_folder_of_attackers_is_ours(key):
    item = ITEMS[key]
    assert item.source.startswith(f"Ours: {item.title}, after ")
    assert "arXiv:" in item.source
    assert item.kind == "tradeoff" or item.ours


@pytest.mark.parametrize("key", ITEMS)
def test_every_metric_of_a_reference_exists(key):
    item = ITEMS[key]
    measures = {"table": lambda: item.columns, "grid": list, "clusters": list,
                "tradeoff": lambda: [item.privacy, item.naive, item.utility],
                "curves": lambda: [curve for panel in item.panels for curve in panel.curves]}[item.kind]()  # fmt: skip
    assert {measure.metric for measure in measures} <= set(discovery.names("metrics"))


@pytest.mark.parametrize("key", ITEMS)
def test_every_method_and_variant_is_in_the_parameters(key):
    """No row, column or panel is empty because nobody built its method."""
    offered = {(name, variant) for name, block in METHODS.items() for variant in block["variants"]}
    assert {(method, variant) for _, method, variant in reference.needs(ITEMS[key], offered)} <= offered


def test_every_method_and_variant_of_a_claim_is_in_the_parameters():
    offered = {(name, variant) for name, block in METHODS.items() for variant in block["variants"]}
    assert {(method, variant) for _, method, variant in claims.needs(claims.load(FOLDER / "claims.yaml"))} <= offered


def test_the_sweep_over_epsilon_holds_one_kind_of_sensitivity():
    offered = [("identitydp", variant) for variant in METHODS["identitydp"]["variants"]]
    swept = {variant for _, method, variant in reference.needs(ITEMS["identitydp/figure4"], offered)} - {"control"}
    assert len(swept) >= 5
    assert {METHODS["identitydp"]["variants"][variant]["sensitivity"] for variant in swept} == {"measured"}


@pytest.mark.parametrize("key", TABLES)
def test_every_row_can_be_written_in_latex(key):
    """pdflatex stops at letters outside ASCII."""
    stand_ins = StandIns(datasets={}, judges={})
    assert latex.table(tables.build(TABLES[key], [], {}, Context("paper", (0,), stand_ins, "abc1234"))).isascii()


@pytest.mark.parametrize("key", [key for key, item in ITEMS.items() if item.paper != "attackers"])
def test_every_source_names_its_table_or_figure_and_section(key):
    source = ITEMS[key].source
    assert ITEMS[key].title in source
    assert "section" in source
    assert any(publication in source for publication in ("doi:", "ICCV, pages", "ACM MM 2024, submission"))


def test_notes_state_the_contradictions_of_the_papers():
    """ifadit's Table 3: a mean PSNR is at least that of the mean MSE; its Table 4: the KFFA is no angle of the cosine
    beside it; cao21's Table 4: the noise was stronger than that of Figure 1."""

    def printed(key, row):
        return [number.value for number in next(line for line in ITEMS[key].rows if line.title == row).printed]

    for row, expected in (("FIT", "34.09"), ("RiDDLE", "31.14"), ("Ours", "34.95")):
        mse, psnr = printed("ifadit/table3", row)[:2]
        assert f"{-10 * math.log10(mse):.2f}" == expected
        assert expected in ITEMS["ifadit/table3"].note
        assert (psnr < -10 * math.log10(mse)) == (row != "Ours")
    similarity, angle = printed("ifadit/table4", "Ours (anonymized)")
    assert math.cos(math.radians(angle)) == pytest.approx(0.26, abs=0.01)
    assert similarity < 0.1
    assert printed("cao21/table4", "Noise")[1] < 20 * math.log10(255 / 15) == pytest.approx(24.61, abs=0.01)


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
    kinds = {"recovered", "wrong", "near.digit", "near.level", "near.bit", "saved", "saved_wrong", "pasted", "key"}
    item = ITEMS[key]
    if item.kind in ("clusters", "tradeoff"):
        assert not reference.attempted(item)
        return
    if item.kind == "curves":
        requested = {curve.attempt for panel in item.panels for curve in panel.curves} - {""}
    else:
        requested = {cell.attempt for cell in [*reference.method_entries(item), *item.columns]} - {""}
    assert all(attempt in kinds or attempt.startswith("view.") for attempt in requested)
    offered = [(name, variant) for name, block in METHODS.items() for variant in block["variants"]]
    shown = {method for _, method, _ in reference.attempted(item, offered)}
    assert bool(requested) == bool(shown)
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


def test_lost_number_is_in_the_note_and_not_guessed():
    """The note holds the digits of each number whose decimal point is lost in our copy of lreorg."""
    fragments = {"table2": ("959", "739", "Omega"), "table3": ("577", "64 2", "984"), "table7": ("991", "993")}
    for name, words in fragments.items():
        notes = " ".join(row.note for row in ITEMS[f"lreorg/{name}"].rows)
        assert all(word in notes for word in words)
    for name in ("table4", "table5", "table6", "table9", "table10"):
        rows = [row for row in ITEMS[f"lreorg/{name}"].rows if row.printed]
        assert all(set(row.printed) == {None} and "lost the numbers" in row.note for row in rows)


def test_recovery_from_the_picture_comes_before_the_others():
    """Recovery from the anonymized picture comes first; a title names the pasted background of the original."""
    for key in ("cao21/table3", "cao21/table4", "ifadit/table3", "ifadit/table5", "ifadit/recovery"):
        places = [*ITEMS[key].rows, *ITEMS[key].columns]
        first = next(place.attempt for place in places if place.attempt not in ("", "wrong"))
        assert first == "recovered"
        for place in places:
            if place.attempt == "pasted":
                title = getattr(place, "group", "") or place.title
                assert not place.printed
                assert "original's background" in title


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
    costs = printed_costs.load(FOLDER / "costs.yaml")
    assert [(cost.method, cost.printed.text, cost.device) for cost in costs] == [
        ("identitydp", "0.329", "NVIDIA GTX 1080 Ti")
    ]
    assert all(cost.variant in METHODS[cost.method]["variants"] for cost in costs)


def test_a_mistake_in_a_printed_cost_is_named(tmp_path):
    path = tmp_path / "costs.yaml"
    path.write_text("- {paper: falco, methud: falco, variant: m_0, printed: 1, device: GPU, source: section 4}")
    with pytest.raises(ReferenceFileError, match=r"costs\.yaml: .*methud'. Did you mean 'method'"):
        printed_costs.load(path)
    path.write_text("paper: falco")
    with pytest.raises(ReferenceFileError, match="must be a list of printed times"):
        printed_costs.load(path)


def test_reading_the_reference_loads_neither_torch_nor_matplotlib():
    program = "import sys; from masquerade.papers import reference; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "masquerade.papers.reference" in loaded
    assert not {"torch", "matplotlib", "pandas"} & set(loaded)
