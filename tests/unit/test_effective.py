"""Parameters that an overlay hides: DVC ignores them, and a change of one gives the user a warning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masquerade.core.errors import ParameterError
from masquerade.params import loading, overlays
from masquerade.pipeline import evaluation

BASE = {"steps": 500, "losses": {"identity": 5.0, "pixels": 1.0}, "widths": [64, 128], "empty": {}}
OVER = {"steps": 6, "losses": {"pixels": 0.5}, "widths": [4]}
NAMES = st.sampled_from("abc")
TREES = st.recursive(st.integers(0, 2), lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)
MAPPINGS = st.dictionaries(NAMES, TREES, max_size=3)


def leaves(tree, key=""):
    """Dotted keys of all values that are not mappings."""
    if not isinstance(tree, dict):
        return [key]
    return [leaf for name, value in tree.items() for leaf in leaves(value, f"{key}.{name}".strip("."))]


def with_other(tree, key):
    """A copy of the tree with another value at a dotted key."""
    name, _, rest = key.partition(".")
    return {**tree, name: with_other(tree[name], rest) if rest else 99}


@given(MAPPINGS, MAPPINGS)
def test_change_of_a_parameter_is_hidden_only_if_it_has_no_effect(base, over):
    for leaf in leaves(base):
        changed = with_other(base, leaf)
        matters = overlays.overlay(changed, over) != overlays.overlay(base, over)
        assert (
            any(f"{leaf}.".startswith(f"{key}.") for key in overlays.find_hidden_changes(base, changed, over))
            != matters
        )


def test_warning_for_a_hidden_change_names_the_file_and_the_command():
    now = {**BASE, "steps": 3, "losses": {"identity": 7.0, "pixels": 1.0}}
    assert overlays.find_hidden_changes(BASE, now, OVER) == {"steps": 3}
    with pytest.raises(ParameterError, match=r"'steps' was changed, but scales/tiny.yaml sets it") as error:
        overlays.check_hidden_changes(BASE, now, OVER, "scales/tiny.yaml")
    assert "dvc exp run -S 'scales/tiny.yaml:steps=3'" in str(error.value)
    overlays.check_hidden_changes(BASE, {**BASE, "losses": {"identity": 7.0, "pixels": 1.0}}, OVER, "scales/tiny.yaml")


SCALARS = {
    "010": 10, "0777": 777, "08": 8, "0o17": 15, "0x1f": 31, "1_000": 1000, "24:00:00": "24:00:00", "1:30": "1:30",
    "no": "no", "on": "on", "1e-05": 1e-05, "1e5": 100000.0, ".5": 0.5, "true": True, "~": None, "1.0.0": "1.0.0",
}  # fmt: skip
"""Text in a YAML file -> its value by YAML 1.2. YAML 1.1, which PyYAML reads, gives many of them another one."""


@pytest.mark.parametrize("text", SCALARS)
def test_a_value_is_the_one_of_yaml_1_2(text):
    value = overlays.parse_yaml(f"knob: {text}", "params.yaml")["knob"]
    assert (value, type(value)) == (SCALARS[text], type(SCALARS[text]))


@given(st.text(st.characters(codec="utf-8"), max_size=12) | st.from_regex(r"[-+.:_0-9oxeabn]{1,9}", fullmatch=True))
def test_any_text_is_read_as_dvc_reads_it(text):
    from dvc.utils.serialize import YAMLFileCorruptedError, parse_yaml

    try:
        ours = overlays.parse_yaml(f"knob: {text}", "params.yaml")
    except ParameterError as error:
        ours = None if "is not valid YAML" in str(error) else error
    if isinstance(ours, ParameterError):
        return  # DVC reads more: names that are no text
    try:
        assert repr(ours) == repr(parse_yaml(f"knob: {text}", "params.yaml"))
    except (YAMLFileCorruptedError, ValueError):
        assert ours is None


@given(st.dictionaries(st.text(), st.text() | st.sampled_from([*SCALARS]) | st.floats(allow_nan=False) | st.none()))
def test_what_is_written_is_read_as_the_same_values_by_both_engines(tree):
    from dvc.utils.serialize import parse_yaml

    assert overlays.parse_yaml(overlays.format_yaml(tree), "records/mini.yaml") == tree
    assert parse_yaml(overlays.format_yaml(tree), "records/mini.yaml") == tree


def test_parameters_are_read_as_dvc_writes_them(tmp_path):
    """DVC rewrites params.yaml for an experiment."""
    from dvc.utils.serialize import modify_yaml

    tree = {"words": [*SCALARS], "numbers": [1e-05, 0.5, 3.0, 2, -1], "is": [True, None]}
    file = tmp_path / "params.yaml"
    file.write_text("words: []\nnumbers: []\nis: []\n")
    with modify_yaml(str(file)) as data:
        for key, values in tree.items():
            data[key] = values
    assert overlays.read_yaml(file) == tree
    assert [type(value) for value in overlays.read_yaml(file)["numbers"]] == [float, float, float, int, int]


def test_effective_file_holds_the_tree_and_keeps_its_time_if_nothing_changed(root, tmp_path):
    parameters = loading.load(root, "tiny")
    file = overlays.write_tree(parameters.tree, tmp_path / "here" / "params.yaml")
    assert overlays.read_yaml(file) == parameters.tree
    before = file.stat().st_mtime_ns
    overlays.write_tree(parameters.tree, file)
    assert file.stat().st_mtime_ns == before


def test_scores_are_means_over_the_seeds_that_have_a_value():
    def cell(seed, psnr, distance):
        address = {"dataset": "faces", "method": "blur", "variant": "size_7", "seed": seed}
        return {"cell": address, "metrics": {"psnr": {"": {"value": psnr}}, "distance": {"dlib": {"value": distance}}}}

    scores = evaluation.summarize([cell(0, 20.0, None), cell(1, 30.0, 0.5)])
    assert scores == {"faces": {"blur/size_7": {"psnr": 25.0, "distance.dlib": 0.5}}}
