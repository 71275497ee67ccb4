"""A training that does not fit into the GPU is refused before it starts, with the need that the plan counts."""

from types import SimpleNamespace

import pytest
import torch

import kit
from masquerade.core import discovery, process, rehearsal
from masquerade.pipeline import gpu_memory

GIB = 2**30


@pytest.fixture
def job(tmp_path):
    kit.archive(tmp_path / "faces.zip", kit.noise(12))
    return kit.job(tmp_path)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU whose memory the test may set."""
    card = SimpleNamespace(name="Toy 1", total_memory=80 * GIB)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: card)
    return card


def hungry(job):
    """Holds 3 GiB."""
    torch.zeros(3 * GIB // 4)


def test_gpu_that_is_too_small_is_named_with_the_need_and_what_to_do(job, gpu):
    gpu_memory.check("methods.toy", hungry, job)
    gpu.total_memory = 3.5 * GIB
    with pytest.raises(gpu_memory.GpuTooSmall) as error:
        gpu_memory.check("methods.toy", hungry, job)
    for words in (
        "toy needs 3.0 GiB",
        "1 GiB for CUDA",
        "Toy 1 has 3.5 GiB",
        "compute.own.training/toy",
        "methods.toy",
    ):
        assert words in str(error.value)


def test_several_processes_need_their_share_each(job, gpu, monkeypatch):
    gpu.total_memory = 3 * GIB
    monkeypatch.setattr(process, "current", lambda: process.Process(1, 3, 1, "", 0))
    gpu_memory.check("methods.toy", hungry, job)


def test_a_user_a_rehearsal_and_a_machine_without_a_gpu_skip_the_check(job, gpu, monkeypatch):
    gpu.total_memory = GIB
    for change in (
        lambda patch: patch.setenv(gpu_memory.ANYWAY, "1"),
        lambda patch: patch.setenv(rehearsal.VARIABLE, "1"),
        lambda patch: patch.setattr(torch.cuda, "is_available", lambda: False),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            gpu_memory.check("methods.toy", hungry, job)


def test_a_training_that_cannot_be_counted_starts(job, gpu, caplog):
    gpu.total_memory = GIB

    def failing(job):
        raise ValueError("no values")

    with caplog.at_level("INFO"):
        gpu_memory.check("methods.toy", failing, job)
    assert "trained needs is not counted: ValueError: no values" in caplog.text


def test_the_need_is_that_of_the_plan_and_counting_leaves_no_trace(tiny, tmp_path):
    from masquerade.pipeline.costs import pictures
    from masquerade.pipeline.costs.meta import MetaExecution

    pictures.write(tmp_path / "faces.zip", tiny.image.size, 1)
    job = kit.job(tmp_path)
    backbone = discovery.load("backbones", "identity")(tiny.backbones["identity"])
    before = torch.get_rng_state()
    need = gpu_memory.counted(backbone.train, job)
    assert torch.equal(torch.get_rng_state(), before)
    assert not job.checkpoint.exists()
    with MetaExecution() as meta, meta.counted() as cost:
        backbone.train(job)
    assert need > 0
    assert need == pytest.approx(cost.peak, rel=0.01)
