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
