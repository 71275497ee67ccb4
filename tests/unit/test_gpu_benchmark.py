"""benchmarks/gpu.py: what it measures, what it reads from the tests, and the page that the plan reads."""

import json
from importlib import import_module

import pytest

from masquerade.core import seeding
from masquerade.pipeline import plan


@pytest.fixture
def gpu(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "benchmarks")
    return import_module("gpu")


CONTRACT = """\
[gw0] [ 25%] PASSED tests/contract/test_methods.py::test_a
[gw1] [ 50%] FAILED tests/contract/test_methods.py::test_b[falco]
[gw0] [ 75%] SKIPPED tests/contract/test_methods.py::test_c
[gw1] [100%] PASSED tests/contract/test_methods.py::test_d
=========================== short test summary info ============================
FAILED tests/contract/test_methods.py::test_b[falco] - assert 1 == 2
"""
REHEARSAL = """\
rule faces:
    log: logs/rehearsal_1024/faces/lfw.log
1 of 21 steps (5%) done
Error in rule method:
20 of 21 steps (95%) done
"""


def test_table_has_what_the_tests_said_and_what_was_cut_off(gpu, tmp_path):
    log = tmp_path / "rehearsal" / "lab0" / "repository" / ".snakemake" / "log" / "1.snakemake.log"
    log.parent.mkdir(parents=True)
    log.write_text(REHEARSAL)
    (tmp_path / "contract.log").write_text(CONTRACT)
    contract, rehearsal = gpu.test_rows(tmp_path)
    assert contract["remark"] == "2 passed, 1 failed: test_b[falco]; cut off"
    assert (rehearsal["what"], rehearsal["remark"]) == ("rehearsal_1024", "20 of 21 jobs, 1 failed")
    (tmp_path / "contract.log").write_text(f"{CONTRACT}==== 1 failed, 2 passed, 1 skipped in 9.75s ====\n")
    assert "cut off" not in next(gpu.test_rows(tmp_path))["remark"]


def test_the_plan_reads_the_page_that_the_benchmark_writes(gpu, tmp_path, monkeypatch):
    row = {"step": "anonymize", "what": "falco", "scale": "paper_1024", "mode": "fast", "seconds": 2.0, "memory": 2**31}
    other = {"step": "anonymize", "what": "falco, 1 side by side", "seconds": 3.0}
    (tmp_path / gpu.ROWS).write_text("".join(f"{json.dumps(one)}\n" for one in (row, other)))
    pages = import_module("pages")
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu.torch.cuda, "get_device_name", lambda: "NVIDIA H100 80GB HBM3")
    gpu.page(tmp_path)
    expected = {("anonymize", "falco", "paper_1024", "fast"): 2.0}
    assert plan.read_measurements(tmp_path) == ("NVIDIA H100 80GB HBM3", expected)
    assert "| anonymize | falco | paper_1024 | fast | 2 | 2 |  |" in (tmp_path / plan.PAGE).read_text()


@pytest.mark.slow
def test_falco_of_the_published_architecture_runs(gpu, tmp_path, monkeypatch):
    case = gpu.falco.published(tmp_path, 64, 1)
    *files, knobs, variant = case
    once = *files, knobs.model_copy(update={"steps": 1}), variant
    monkeypatch.setattr(gpu.falco, "published", lambda folder, size: once)
    monkeypatch.setenv(seeding.DETERMINISM_VARIABLE, "1")
    numbers = {"falco, deterministic": ((0, 1),), "falco": ((1, 1),)}  # TF32 needs a GPU
    monkeypatch.setattr(gpu, "MODES", {name: (*gpu.MODES[name][:2], pair) for name, pair in numbers.items()})
    rows = list(gpu.falco_rows(64))
    assert [row["what"] for row in rows] == ["falco, deterministic", "falco, 1 side by side"]
    assert all(row["seconds"] > 0 for row in rows)
