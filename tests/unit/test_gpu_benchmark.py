"""benchmarks/gpu.py: what it measures, what it reads from the tests, and the page that the plan reads."""

import json
from functools import partial
from importlib import import_module

import pytest

from accelerator import pretended
from masquerade.core import determinism, discovery
from masquerade.pipeline.costs import measured, pictures
from masquerade.pipeline.costs.step import Step


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


def test_the_plan_reads_the_shares_of_a_page_that_the_benchmark_writes(gpu, tmp_path, monkeypatch):
    rows = [
        {"step": "method", "what": "x", "remark": "", "seconds": 2.0, "flops": 1e14, "memory": 2**31},
        {"step": "method", "what": "y", "remark": "not counted: CUDA out of memory"},
    ]
    (tmp_path / gpu.ROWS).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "plan.json").write_text(json.dumps({"steps": [vars(Step("method", "x", 1, 1, "", peak=2**30))]}))
    pages = import_module("pages")
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu.torch.cuda, "get_device_name", lambda: "NVIDIA H100 80GB HBM3")
    gpu.page(tmp_path, None)
    page = measured.read(tmp_path)
    assert (page.card, page.shares) == ("NVIDIA H100 80GB HBM3", {("method", "x"): 0.101})
    text = (tmp_path / measured.PAGE).read_text()
    assert "| method | x | 2 | 100 | 50 | 0.101 | 2 | 1 |  |" in text
    assert "| method | y |  |  |  |  |  |  | not counted: CUDA out of memory |" in text


def test_without_a_gpu_the_page_stays(gpu, tmp_path, capsys):
    before = (gpu.ROOT / measured.PAGE).read_text()
    gpu.page(tmp_path, None)
    assert "# No GPU" in capsys.readouterr().out
    assert (gpu.ROOT / measured.PAGE).read_text() == before


def test_a_training_of_several_processes_is_measured_with_one_share_of_its_batch(gpu, root):
    from masquerade.params import loading

    paper = loading.load(root, "paper")
    alone = gpu.alone(paper)
    assert alone.methods["fit"].params.batch * 4 == paper.methods["fit"].params.batch
    assert alone.methods["ifadit"] == paper.methods["ifadit"]


def test_a_timed_training_runs_on_the_accelerator_and_its_checkpoint_is_kept_on_the_processor(
    gpu, tiny, tmp_path, monkeypatch
):
    builder = gpu.TimedBuilder(tiny, tmp_path, float("inf"))
    pictures.write(builder.archive, tiny.image.size, 1)
    backbone, method = discovery.load("backbones", "identity")(tiny.backbones["identity"]), tiny.methods["fit"].params
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(gpu.torch.cuda, name, lambda: None)
    with pretended(monkeypatch) as card, builder.meta:
        jobs = builder.job(builder.path("identity"), ()), builder.job(builder.path("fit"), ["identity"])
        for train, job in zip(
            (backbone.train, partial(discovery.load("methods", "fit").train, method)), jobs, strict=True
        ):
            cost, reason = builder.counted(job.checkpoint.stem, partial(train, job))
            assert not reason
            assert cost.seconds > 0
            assert cost.peak == 1  # of the accelerator, by its own count
        tensors, _ = builder.meta.load_checkpoint(builder.path("identity"))
        assert not any(card.holds(tensor) for part in tensors.values() for tensor in part.values())
    assert not card.astray, "a parameter, a buffer or an input lies elsewhere"
    assert card.ran


def test_when_the_time_is_up_no_training_is_begun(gpu, tiny, tmp_path):
    builder = gpu.TimedBuilder(tiny, tmp_path, 0.0)
    assert builder.counted("x", lambda: pytest.fail("it began"))[1] == "not counted: the time was up"


@pytest.mark.slow
def test_falco_of_the_published_architecture_runs_and_its_flops_are_counted(gpu, tmp_path, monkeypatch):
    case = gpu.falco.published(tmp_path, 64, 1)
    *files, knobs, variant = case
    once = *files, knobs.model_copy(update={"steps": 1}), variant
    monkeypatch.setattr(gpu.falco, "published", lambda folder, size: once)
    monkeypatch.setenv(determinism.VARIABLE, "1")
    numbers = {"falco, deterministic": ((0, 1),), "falco": ((1, 1),)}  # compiling takes a minute, and TF32 needs a GPU
    monkeypatch.setattr(gpu, "MODES", {name: (*gpu.MODES[name][:2], pair) for name, pair in numbers.items()})
    rows = list(gpu.falco_rows(64))
    assert [row["what"] for row in rows] == ["falco, deterministic", "falco, 1 side by side"]
    assert all(row["seconds"] > 0 and row["flops"] > 1e10 for row in rows)
