"""What a scale plans: every cell is runnable or has a reason; a job reads the parameters that its rule declares."""

import subprocess
import sys

import pytest

from masquerade.core import discovery
from masquerade.core.errors import ParameterError
from masquerade.params import loading, matrix
from masquerade.params.blocks import StandIns
from masquerade.params.protocols import RecoverySettings
from masquerade.params.slices import Slice, list_protocol_keys


def test_deterministic_method_runs_with_one_seed(root):
    two = loading.load(root, "mini")
    two.typed.__dict__["seeds"] = [0, 1]
    seeds = {}
    for cell in matrix.plan_cells(two):
        seeds.setdefault(cell.method, set()).add(cell.seed)
    assert seeds["gaussian_blur"] == {0}
    assert seeds["identitydp"] == {0, 1}


def test_chosen_cells_keep_the_order_of_the_matrix(tiny):
    cells = matrix.plan_cells(tiny)
    assert len(cells) == len(set(cells)) > 10
    settings = matrix.group_by_setting(cells)
    assert matrix.select_settings(settings, reversed(settings)) == cells
    some = [cells[7].setting, cells[2].setting, ("synthetic_hq", "nobody", "default")]
    assert matrix.select_settings(settings, some) == [cell for cell in cells if cell.setting in some]


def test_pattern_that_matches_nothing_is_an_error(root):
    parameters = loading.load(root, "tiny")
    parameters.matrix.evaluate["synthetic_hq"].append("identitydp/eps_7000")
    with pytest.raises(ParameterError, match=r"has the pattern 'identitydp/eps_7000', which matches no method/variant"):
        matrix.plan_cells(parameters)


def test_missing_backbone_is_given_as_the_reason(tiny, monkeypatch):
    monkeypatch.setattr(discovery.load("methods", "fit"), "needs", ("identity", "depth"))
    assert (
        matrix.find_obstacle(tiny, "synthetic_hq", "fit")
        == "needs the backbone depth, which params.yaml does not define"
    )


def test_method_that_is_not_built_is_skipped_with_that_reason(tiny):
    settings = [("synthetic_hq", "unbuilt", "default"), ("synthetic_hq", "gaussian_blur", "size_1000")]
    reasons = matrix.explain_skipped(tiny, settings, matrix.group_by_setting(matrix.plan_cells(tiny)))
    assert reasons[settings[0]] == "unbuilt is not built yet"
    assert reasons[settings[1]] == "not in the matrix at scale tiny"


def test_planning_imports_no_slow_package(root):
    """It imports every module of the rooms that params.yaml configures, and those of the papers."""
    program = (
        "import importlib, sys\nfrom pathlib import Path\nfrom masquerade.params import loading, matrix\n"
        f"root = Path({str(root)!r})\n"
        "for path in (root / 'src/masquerade/papers').glob('*.py'):\n"
        "    importlib.import_module(f'masquerade.papers.{path.stem}'.removesuffix('.__init__'))\n"
        "matrix.plan_cells(loading.load(root, 'tiny'))\n"
        "sys.exit(str({'torch', 'mlflow', 'dlib', 'cv2', 'matplotlib', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stderr.strip() == "set()"


@pytest.fixture(scope="module")
def parameters(root):
    return loading.load(root, "tiny")


def test_text_is_canonical_and_parse_is_its_inverse(parameters):
    declared = Slice.of(parameters, ["seeds", "scale"])
    assert declared.text() == '{"scale": "tiny", "seeds": [0]}'
    rehearsing = Slice({"a": 1}, rehearsal=True)
    assert rehearsing.text() == '{"a": 1, "rehearsal": true}'
    assert [Slice.parse(item.text()) for item in (declared, rehearsing)] == [declared, rehearsing]


def test_job_cannot_read_a_knob_that_its_rule_did_not_declare(parameters):
    declared = Slice.of(parameters, ["methods.fit.params", "measure.batch"])
    assert declared["measure.batch"] == parameters.measure.batch
    assert declared["methods.fit.params"] == declared["methods"]["fit"]["params"]
    for key in ("data_seed", "measure.judges", "methods.falco.params"):
        assert declared.get(key, "none") == "none"
        with pytest.raises(KeyError, match=f"does not declare the parameter '{key}'"):
            declared[key]


def test_key_with_a_question_mark_may_be_missing_and_another_may_not(parameters):
    assert Slice.of(parameters, ["methods.fit.ablations.none?"]).text() == "{}"
    with pytest.raises(ParameterError, match=r"no 'methods.fit.nothing'"):
        Slice.of(parameters, ["methods.fit.nothing"])


def test_values_of_one_variant_replace_those_of_the_block(parameters):
    keys = [key.format(method="ifadit", variant="full") for key in list_protocol_keys("recovery")]
    values = Slice.of(parameters, keys).values | {"recovery.overrides.ifadit.full": {"pictures": 3}}
    block = Slice(values).settings("recovery", RecoverySettings)
    assert block.wrong_keys == parameters.recovery.wrong_keys
    replaced = Slice(values).settings("recovery", RecoverySettings, "ifadit", "full")
    assert replaced == block.model_copy(update={"pictures": 3})
    assert Slice(values).settings("recovery", RecoverySettings, "ifadit", "other") == block


def test_block_in_one_value_and_in_values_of_its_own_are_the_same():
    whole, parts = {"stand_ins": {"datasets": {}, "judges": {}}}, {"stand_ins.datasets": {}, "stand_ins.judges": {}}
    assert Slice(whole).settings("stand_ins", StandIns) == Slice(parts).settings("stand_ins", StandIns)


def test_keys_of_a_protocol_exclude_those_that_only_select_cells():
    assert "recovery.wrong_keys" in list_protocol_keys("recovery")
    assert not [key for key in list_protocol_keys("recovery") if key.endswith(("cells", "judges"))]


def test_module_is_built_with_its_parameters(parameters):
    declared = Slice.of(parameters, ["metrics.psnr", "datasets.folder"])
    assert type(declared.build("metrics", "psnr")).__name__ == "Psnr"
    assert declared.build("datasets", "folder").params == parameters.datasets["folder"]


def test_training_of_an_ablation_has_its_own_knobs(parameters):
    name, ablations = next((name, found) for name in parameters.methods if (found := parameters.ablations(name)))
    variant = next(iter(ablations))
    keys = [f"methods.{name}.params", f"methods.{name}.ablations.{variant}"]
    trained = Slice.of(parameters, keys).training_params(name, variant)
    assert trained == parameters.training_params(name, variant) != parameters.methods[name].params
    assert Slice.of(parameters, keys[:1]).training_params(name, variant) == parameters.methods[name].params
