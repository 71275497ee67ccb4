"""The matrix: every cell is runnable or has a reason, and planning does not import torch."""

import subprocess
import sys

import pytest

from masquerade.core import discovery
from masquerade.core.errors import ParameterError
from masquerade.params import loading, matrix


def test_cells_are_unique_and_in_a_fixed_order(tiny):
    cells = matrix.plan_cells(tiny)
    assert len(cells) == len(set(cells)) > 10
    assert cells == matrix.plan_cells(tiny)


def test_deterministic_method_runs_with_one_seed(root):
    two = loading.load(root, "mini")
    two.typed.__dict__["seeds"] = [0, 1]
    seeds = {}
    for cell in matrix.plan_cells(two):
        seeds.setdefault(cell.method, set()).add(cell.seed)
    assert seeds["gaussian_blur"] == {0}
    assert seeds["identitydp"] == {0, 1}


def test_reason_is_computed_once_for_a_method_on_a_dataset(tiny, monkeypatch):
    """The number of calls does not depend on variants and seeds."""
    calls = []
    monkeypatch.setattr(matrix, "find_obstacle", lambda parameters, *which: calls.append(which) or "")
    matrix.plan_cells(tiny)
    assert len(calls) == len(set(calls)) > 10


def test_chosen_cells_keep_the_order_of_the_matrix(tiny):
    cells = matrix.plan_cells(tiny)
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


def test_planning_imports_no_torch(root):
    program = (
        "import sys\nfrom pathlib import Path\nfrom masquerade.params import loading, matrix\n"
        f"matrix.plan_cells(loading.load(Path({str(root)!r}), 'tiny'))\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
