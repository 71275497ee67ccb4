"""Training in several processes gives the result of one process with the same batch."""

import json
import multiprocessing
import os
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as some
from torch import nn

import kit
from masquerade.backbones.generator import sharpening
from masquerade.backbones.generator import training as _generator
from masquerade.core import discovery, process
from masquerade.core.errors import MasqueradeError, ParameterError
from masquerade.methods.fit import training as transformer
from masquerade.networks.discriminators import choose_group_size, compute_deviation
from masquerade.params import overlays
from masquerade.pipeline import launch
from masquerade.training import checkpoints, distributed, loop

PHASES = {
    "small_scale": {"reconstruction": {"batch": 4}, "sharpening": {"steps": 2, "batch": 8}},
    "adversarial": {"steps": 6, "batch": 8}, "samples_every": 10,
}  # fmt: skip
GENERATOR = overlays.overlay(kit.GENERATOR, PHASES)
FIT = kit.FIT | {
    "width": 8,
    "small_scale": kit.FIT["small_scale"] | {"reach": 0.0},
    "steps": 8,
    "batch": 4,
    "kernel_rate": 0.0,
    "samples_every": 8,
}
IMPORTED = ["hypothesis.strategies", "pytest", "submitit", _generator.__name__, transformer.__name__, launch.__name__]
"""Modules that take seconds to import and that the processes of a training need."""
TRAININGS = {
    "generator": ("backbones", GENERATOR, _generator.GeneratorTask),
    "fit": ("methods", FIT, transformer.TransformerTask),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve images of a bright disc on a dark ground, with masks, at 32 pixels."""
    folder = tmp_path_factory.mktemp("distributed")
    pictures, masks = kit.discs()
    rows = [{"group": "backbones" if number < 8 else ""} for number in range(12)]
    kit.archive(folder / "faces.zip", pictures, rows=rows, masks=10 * masks, size=32)
    (folder / "identity.safetensors").write_bytes(b"stands for the encoder's file")
    return folder


# The work of a process. A new process gets it by name.


def train(folder, name, label):
    """One whole training. Its log and its samples are written beside its checkpoint."""
    room, knobs, _ = TRAININGS[name]
    cls, curve, drawn = discovery.load(room, name), [], []
    job = kit.job(
        folder, label, ["identity"], log=lambda step, values: curve.append(dict(values)),
        picture=lambda name, pixels: drawn.append(name),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "LOG_EVERY", 1)
        kit.replace_backbones(patch, identity=kit.Identity())
        if room == "methods":
            cls.train(cls.Params(**knobs), job)
        else:
            cls(cls.Params(**knobs)).train(job)
    write(folder, label, {"curve": curve, "drawn": drawn})


def write(folder, label, content):
    (folder / f"{label}.{os.environ.get('RANK', 'alone')}.json").write_text(json.dumps(content))


def read(folder, label, rank):
    return json.loads((folder / f"{label}.{rank}.json").read_text())


def train_each(folder, label):
    for name in TRAININGS:
        train(folder, name, f"{name}_{label}")


def train_stopped(folder, label):
    """Trains, and sends SIGTERM to the second process only, in a step (of the generator: in its second phase)."""
    for name, rank, step in (("generator", "1", 6), ("fit", "0", 3)):
        task = TRAININGS[name][2]

        def stops(self, number, inner=task.step, rank=rank, step=step):
            if number == step and os.environ["RANK"] == rank:
                os.kill(os.getpid(), signal.SIGTERM)
            return inner(self, number)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(task, "step", stops)
            try:
                train(folder, name, f"{name}_{label}")
            except loop.Interrupted as error:
                write(folder, f"{name}_{label}_stopped", str(error))


def train_broken(folder, label):
    """The second process has an error in step 2 and ends at once."""

    def breaks(self, number, inner=transformer.TransformerTask.step):
        if number == 2 and os.environ["RANK"] == "1":
            raise RuntimeError("pulled the plug")
        return inner(self, number)

    transformer.TransformerTask.step = breaks
    try:
        train(folder, "fit", label)
    except (RuntimeError, MasqueradeError) as error:
        write(folder, label, f"{type(error).__name__}: {error}")
        os._exit(1)


def start_differently(folder, label):
    """Each process has different weights and later a different state, as on nodes without a shared file system."""
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    network = nn.BatchNorm1d(3)
    nn.init.normal_(network.weight)
    network.running_mean.fill_(rank + 1)
    distributed.start_together([network], 3, folder / "s.pt")
    weights = [network.weight.tolist(), network.running_mean.tolist()]
    try:
        distributed.start_together([network], 3 + rank, folder / "s.pt")
    except MasqueradeError as error:
        write(folder, label, {"weights": weights, "error": str(error)})


def in_process(work, folder, label, environment):
    torch.set_num_threads(1)
    os.environ.update(environment)
    with distributed.join_processes() as first:
        work(folder, label)
    assert first == (environment["RANK"] == "0")


def together(work, folder, label, count=2):
    """Runs ``work`` in processes that are started as torchrun starts them; returns their exit codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    environments = [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    context = multiprocessing.get_context("forkserver")  # of one new process, which imports once for all
    context.set_forkserver_preload(IMPORTED)
    started = [context.Process(target=in_process, args=(work, folder, label, of)) for of in environments]
    for child in started:
        child.start()
    for child in started:
        child.join(timeout=300)
        child.kill()
    return [child.exitcode for child in started]


@pytest.fixture(scope="module")
def trained(folder):
    """Both trainings in one process (label ``one``), and in two (``two``)."""
    train_each(folder, "one")
    assert together(train_each, folder, "two") == [0, 0]
    return folder


@pytest.fixture(scope="module")
def stopped(folder):
    """Both trainings stopped in the middle, by a signal to one of the two processes (label ``cut``)."""
    assert together(train_stopped, folder, "cut") == [0, 0]
    for name in TRAININGS:
        shutil.copy(folder / f"{name}_cut.state", folder / f"{name}_alone.state")
    return folder


def weights(path):
    modules, _ = checkpoints.load_checkpoint(path)
    return {f"{module}.{key}": value for module, part in modules.items() for key, value in part.items()}


# Sums in another order differ in the last bit. FIT rounds its images to 8 bits, so a last bit can change a pixel,
# and then the next losses differ by more. Adam takes a whole step even if a gradient is almost zero: a change of 2e-7
# of the images that the generator's critic sees changes its path length by 2e-4.
LOSSES = 5e-3  # relative
WEIGHTS = {"generator": sharpening.OTHERS_RATE, "fit": FIT["learning_rate"]}  # absolute: one step of Adam


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_have_the_loss_curve_of_one_with_the_same_batch(trained, name):
    alone, shared = read(trained, f"{name}_one", "alone")["curve"], read(trained, f"{name}_two", 0)["curve"]
    assert len(alone) == len(shared) >= 8
    for step, (expected, loss) in enumerate(zip(alone, shared, strict=True)):
        assert loss == pytest.approx(expected, rel=LOSSES if step > 1 else 2e-5, abs=1e-6), step


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_end_with_the_weights_of_one(trained, name):
    alone, shared = (weights(trained / f"{name}_{label}.safetensors") for label in ("one", "two"))
    for key, value in alone.items():
        torch.testing.assert_close(shared[key], value, rtol=1e-5, atol=WEIGHTS[name], msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_only_the_first_process_logs_and_draws_samples(trained, name):
    assert read(trained, f"{name}_two", 0)["drawn"] == read(trained, f"{name}_one", "alone")["drawn"] != []
    assert read(trained, f"{name}_two", 1) == {"curve": [], "drawn": []}


@pytest.mark.slow
def test_signal_to_one_process_stops_all_of_them_at_the_same_step(stopped):
    for rank in (0, 1):
        assert read(stopped, "generator_cut_stopped", rank).startswith("stopped at step 7 of 12; the same command")
        assert read(stopped, "fit_cut_stopped", rank).startswith("stopped at step 4 of 8; the same command")


@pytest.mark.slow
def test_stopped_training_of_two_processes_ends_bit_for_bit_like_an_uninterrupted_one(trained, stopped):
    assert together(train_each, stopped, "cut") == [0, 0]
    for name in TRAININGS:
        assert len(read(stopped, f"{name}_cut", 0)["curve"]) < len(read(trained, f"{name}_two", 0)["curve"])
        cut, whole = (stopped / f"{name}_{label}.safetensors" for label in ("cut", "two"))
        assert cut.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_stopped_training_resumes_with_another_number_of_processes(trained, stopped):
    train_each(stopped, "alone")
    for name in TRAININGS:
        after = read(stopped, f"{name}_alone", "alone")["curve"]
        whole = read(trained, f"{name}_one", "alone")["curve"]
        assert 0 < len(after) < len(whole)
        for loss, expected in zip(after[::-1], whole[::-1], strict=False):
            assert loss == pytest.approx(expected, rel=LOSSES, abs=1e-6)


@pytest.mark.slow
def test_process_ends_with_a_clear_error_if_another_process_is_lost(folder):
    assert together(train_broken, folder, "broken") == [1, 1]
    assert read(folder, "broken", 1) == "RuntimeError: pulled the plug"
    assert read(folder, "broken", 0).startswith("ProcessLost: another process of this training has ended")


@pytest.mark.slow
def test_all_processes_start_with_the_weights_of_the_first_and_different_states_are_refused(folder):
    assert together(start_differently, folder, "different", count=3) == [0, 0, 0]
    of = [read(folder, "different", rank) for rank in range(3)]
    assert of[0]["weights"] == of[1]["weights"] == of[2]["weights"]
    assert of[2]["weights"][1] == [1.0, 1.0, 1.0]
    assert {one["error"] for one in of} == {of[0]["error"]}
    assert "read different steps ([3, 4, 5]) from " in of[0]["error"]


@pytest.mark.slow
def test_job_of_two_tasks_is_requeued_and_resumes_exactly_and_is_judged_once(root, trained, tmp_path, monkeypatch):
    import submitit

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASQUERADE_SAVE_EVERY_SECONDS", "0")
    knobs = json.dumps({"data_seed": 0, "backbones.generator": GENERATOR})
    checkpoint, report, state = (tmp_path / name for name in ("generator.safetensors", "report.json", "generator.pt"))
    program = launch.Resumable(
        str(root / "workflow/scripts/backbone.py"),
        ("--params", knobs, "--outputs", str(checkpoint), str(report), "--faces", str(trained / "faces.zip"),
         "--state", str(state), "--name", "generator"),
        "a_run",
    )  # fmt: skip
    executor = submitit.AutoExecutor(tmp_path / "logs", cluster="local")
    executor.update_parameters(tasks_per_node=2, timeout_min=30)  # a busy machine
    job = executor.submit(program)
    while not state.is_file() and not job.done():
        time.sleep(0.01)
    controller = job._process.pid
    for task in Path(f"/proc/{controller}/task/{controller}/children").read_text().split():
        os.kill(int(task), signal.SIGUSR2)  # the signal of SLURM to the tasks of a job at its time limit
    assert job.results() == [None, None]
    logs = [job.task(rank).paths.stderr.read_text() + job.task(rank).paths.stdout.read_text() for rank in (0, 1)]
    assert "resumed from" in logs[0]
    assert "resumed from" in logs[1]
    assert checkpoint.read_bytes() == (trained / "generator_two.safetensors").read_bytes()
    assert json.loads(report.read_text())["quality"]["detection"] >= 0
    assert not state.exists()
    files = (tmp_path / ".masquerade/runs").glob("a_run.*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [line["event"] for line in lines].count("start") == 2  # once more when it was requeued
    assert [line["status"] for line in lines if line["event"] == "end"] == ["FINISHED"]
    logged = [name for line in lines if line["event"] == "metrics" for name in line["values"]]
    assert logged.count("pixels") == 1  # of step 0
    assert logged.count("quality/detection") == 1


# Tests that need no other process.


def pretend(patch, rank, count):
    patch.setattr(distributed.dist, "is_initialized", lambda: True)
    patch.setattr(distributed.dist, "get_rank", lambda: rank)
    patch.setattr(distributed.dist, "get_world_size", lambda: count)


@given(some.integers(1, 6), some.integers(1, 8))
def test_processes_share_a_batch_and_every_row_is_used_once(count, each):
    whole, parts = torch.arange(count * each), []
    for rank in range(count):
        with pytest.MonkeyPatch.context() as patch:
            pretend(patch, rank, count)
            parts.append(distributed.select_rows(whole))
    assert {len(part) for part in parts} == {each}
    assert sorted(torch.cat(parts).tolist()) == whole.tolist()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_noise_of_all_processes_equals_that_of_one_process(monkeypatch, count):
    like, parts = torch.zeros(1, dtype=torch.float32), []
    for rank in range(count):
        pretend(monkeypatch, rank, count)
        torch.manual_seed(3)
        parts.append(distributed.draw_normal(8 // count, 2, 5, like=like))
    torch.manual_seed(3)
    assert torch.equal(torch.stack(parts, dim=1).flatten(0, 1), torch.randn(8, 2, 5))


@hypothesis_settings(deadline=None)
@given(some.integers(1, 4), some.integers(1, 4), some.integers(1, 12))
def test_minibatch_deviation_of_a_share_equals_that_of_the_whole_batch(count, each, factor):
    """The condition of `check_batch` is sufficient: each group of the whole batch is in one process."""
    whole = torch.randn(count * each * factor, 3, 2, 2)
    if len(whole) % (count * choose_group_size(len(whole))):
        return
    for rank in range(count):
        torch.testing.assert_close(compute_deviation(whole[rank::count]), compute_deviation(whole)[rank::count])


@pytest.mark.parametrize(
    ("name", "phase", "batch", "count", "error"),
    [
        (
            "generator",
            "reconstruction",
            4,
            3,
            "reconstruction.batch is 4, which 3 processes cannot share equally",
        ),
        ("generator", "sharpening", 4, 3, "sharpening.batch is 4, which 3 processes cannot share equally"),
        ("generator", "adversarial", 4, 2, "adversarial.batch is 4.*equally, in groups of 4. Make it a multiple of 8"),
        ("generator", "adversarial", 9, 3, "the path length .half of .*adversarial.batch. is 4"),
        ("fit", None, 4, 8, "methods.fit.params.batch is 4.*Make it a multiple of 8, or set `tasks` lower"),
    ],
)
def test_batch_that_cannot_be_shared_equally_is_refused(folder, monkeypatch, name, phase, batch, count, error):
    room, knobs, task = TRAININGS[name]
    changed: dict = {"batch": batch}
    if phase == "adversarial":
        others = {"reconstruction": {"batch": count}, "sharpening": {"steps": 0}}
        changed = {phase: changed, "small_scale": others}
    elif phase:
        others = {"reconstruction": {"batch": count}} if phase == "sharpening" else {}
        changed = {"small_scale": {**others, phase: changed}}
    monkeypatch.setitem(TRAININGS, name, (room, overlays.overlay(knobs, changed), task))
    monkeypatch.setattr(distributed, "count_processes", lambda: count)
    with pytest.raises(ParameterError, match=error):
        train(folder, name, "refused")


def test_training_that_is_not_made_for_several_processes_is_refused(tmp_path, monkeypatch):
    class Alone:
        modules, optimizers = {}, {}

    pretend(monkeypatch, 0, 2)
    with pytest.raises(MasqueradeError, match=r"Alone trains in one process, not in 2\. Set `tasks` to 1"):
        loop.fit(Alone(), 1, loop.Unfinished(tmp_path / "s.pt", ""), print)


@pytest.fixture
def nowhere(monkeypatch):
    for name in ("SUBMITIT_EXECUTOR", "WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_tasks_of_an_interactive_session_do_not_form_one_training(nowhere):
    nowhere.setenv("SLURM_NTASKS", "4")
    nowhere.setenv("SLURM_PROCID", "0")
    assert process.find_current() == process.ALONE
    with distributed.join_processes() as first:
        assert (first, distributed.count_processes()) == (True, 1)


def test_rank_and_address_are_those_of_torchrun(nowhere):
    nowhere.setenv("WORLD_SIZE", "8")
    with pytest.raises(MasqueradeError, match="RANK, LOCAL_RANK, MASTER_PORT, MASTER_ADDR not"):
        process.find_current()
    for name, value in (("RANK", "5"), ("LOCAL_RANK", "1"), ("MASTER_ADDR", "node7"), ("MASTER_PORT", "29500")):
        nowhere.setenv(name, value)
    assert process.find_current() == process.Process(5, 8, 1, "node7", 29500)


def slurm(patch, **more):
    """The place of the last task in a job of two nodes with two tasks each, from submitit's variables."""
    variables = {
        "SUBMITIT_EXECUTOR": "slurm", "SLURM_JOB_ID": "77", "SLURM_NTASKS": "4", "SLURM_JOB_NUM_NODES": "2",
        "SLURM_NODEID": "1", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_JOB_NODELIST": "gpu[03-04]",
    }  # fmt: skip
    for name, value in {**variables, **more}.items():
        patch.setenv(name, value)
    return process.find_current()


@pytest.mark.parametrize(("more", "place"), [
    ({}, (3, 4, 1, "gpu03")),
    ({"SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_JOB_NODELIST": "gpu03"},
     (1, 2, 1, "127.0.0.1")),
])  # fmt: skip
def test_address_in_a_job_is_the_first_of_several_nodes_or_the_local_host(nowhere, more, place):
    of = slurm(nowhere, **more)
    assert (of.rank, of.count, of.local_rank, of.address) == place


def test_job_of_one_task_is_a_single_process(nowhere):
    assert slurm(nowhere, SLURM_NTASKS="1", SLURM_PROCID="0", SLURM_LOCALID="0") == process.ALONE
