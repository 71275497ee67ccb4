"""Tests of the training loop: a resumed training gives the same bits, and a wrong state or loss is reported."""

import logging
import os
import signal

import pytest
import torch
from torch import nn

from masquerade.core import fingerprints, seeding
from masquerade.core.errors import CheckpointError
from masquerade.core.settings import read_descriptions
from masquerade.training import checkpoints, loop
from masquerade.training.settings import Updates
from masquerade.training.training import Phases


class Line:
    """Fits a line with dropout and batch norm, so that random numbers and buffers matter."""

    def __init__(self):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        self.modules = {"network": self.network}
        self.optimizers = {"adam": torch.optim.Adam(self.network.parameters(), lr=0.01)}
        self.fail_at = None

    def step(self, step):
        draw = seeding.make_generator(0, "line", step)
        x = torch.from_numpy(draw.normal(size=(16, 3))).float()
        loss = (self.network(x) - x.sum(1, keepdim=True)).square().mean()
        self.optimizers["adam"].zero_grad()
        loss.backward()
        self.optimizers["adam"].step()
        return {"loss": float("nan") if step == self.fail_at else loss.item()}


def fit(task, state, steps=12, stop_after=None, fingerprint="a", averages=None, log=None):
    def after(step):
        if stop_after is not None and step + 1 == stop_after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "LOG_EVERY", 1)
        patch.setenv("MASQUERADE_SAVE_EVERY_SECONDS", "0")
        log = log or (lambda step, losses: None)
        loop.fit(task, steps, loop.Unfinished(state, fingerprint), log, averages=averages, after=after)


def weights(module):
    return {key: value.clone() for key, value in module.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def test_interrupted_training_ends_bit_for_bit_like_an_uninterrupted_one(tmp_path):
    whole = Line()
    mean = loop.Average(whole.network, 0.9)
    fit(whole, tmp_path / "whole.pt", averages={"mean": mean})
    first = Line()
    with pytest.raises(KeyboardInterrupt):  # killed after step 8; the last state is that of step 7
        fit(first, tmp_path / "cut.pt", stop_after=8, averages={"mean": loop.Average(first.network, 0.9)})
    torch.manual_seed(12345)
    second = Line()
    again = loop.Average(second.network, 0.9)
    torch.rand(7)
    logged_steps = []
    fit(second, tmp_path / "cut.pt", averages={"mean": again}, log=lambda step, losses: logged_steps.append(step))
    assert logged_steps[0] == 7
    assert same(weights(whole.network), weights(second.network))
    assert same(weights(mean.module), weights(again.module))


def test_interrupted_training_resumes_with_the_random_numbers_of_the_gpu(tmp_path, monkeypatch):
    gpu = torch.Generator()  # stands for the generator of a GPU
    for name, answer in (
        ("is_initialized", lambda: True), ("get_rng_state", gpu.get_state), ("set_rng_state", gpu.set_state)
    ):  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, answer)

    def task():
        line, seen = Line(), []
        line.step = lambda number, step=line.step: seen.append(torch.rand(1, generator=gpu).item()) or step(number)
        return line, seen

    gpu.manual_seed(3)
    line, whole = task()
    fit(line, tmp_path / "whole.pt")
    gpu.manual_seed(3)
    with pytest.raises(KeyboardInterrupt):
        fit(task()[0], tmp_path / "cut.pt", stop_after=8)
    gpu.manual_seed(12345)
    line, resumed = task()
    fit(line, tmp_path / "cut.pt")
    assert resumed == whole[7:]


def test_sigterm_saves_the_state_and_the_message_says_how_to_resume(tmp_path):
    task = Line()

    def step(number, inner=task.step):
        if number == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return inner(number)

    task.step = step
    with pytest.raises(loop.Interrupted, match="stopped at step 4 of 12; the same command resumes"):
        loop.fit(task, 12, loop.Unfinished(tmp_path / "s.pt", "a"), lambda step, losses: None)
    assert torch.load(tmp_path / "s.pt", weights_only=True)["step"] == 4


@pytest.mark.parametrize(
    ("state", "warning"),
    [("of other parameters", "is of other parameters"), ("of other code", "data or code"),
     ("without a fingerprint", "cannot be read"), ("cut", "cannot be read")],
)  # fmt: skip
def test_state_that_is_not_whole_or_of_another_training_is_not_used(tmp_path, caplog, monkeypatch, state, warning):
    path, logged_steps = tmp_path / "s.pt", []
    with pytest.raises(KeyboardInterrupt):
        fit(Line(), path, fingerprint="b" if state == "of other parameters" else "a", stop_after=8)
    if state == "of other code":
        monkeypatch.setattr(loop, "hash_code", lambda task: "edited since")
    elif state == "without a fingerprint":
        torch.save({"weight": torch.zeros(2)}, path)
    elif state == "cut":
        path.write_bytes(path.read_bytes()[:500])
    with caplog.at_level(logging.WARNING):
        fit(Line(), path, log=lambda step, losses: logged_steps.append(step))
    assert logged_steps[0] == 0
    assert warning in caplog.text


def test_code_fingerprint_of_a_training_covers_its_networks(monkeypatch):
    from masquerade.core import fingerprints
    from masquerade.networks.ir_se import IRSE

    task = Line()
    task.modules = {"network": IRSE(32, (4, 4, 4, 4, 4), (1, 1, 1, 1))}
    before, real = loop.hash_code(task), fingerprints.fingerprint
    monkeypatch.setattr(fingerprints, "fingerprint", lambda path: "edited" if path.name == "ir_se.py" else real(path))
    assert loop.hash_code(task) != before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_state_is_saved_before_another_handler_gets_the_signal(tmp_path, number):
    """submitit's handlers requeue a job. When they run, the step in which the signal came is saved."""
    saved_steps = []
    task = Line()

    def step(index, inner=task.step):
        if index == 3:
            os.kill(os.getpid(), number)
        return inner(index)

    task.step = step
    state = tmp_path / "s.pt"
    previous = signal.signal(number, lambda *_: saved_steps.append(torch.load(state, weights_only=True)["step"]))
    try:
        loop.fit(task, 6, loop.Unfinished(state, "a"), lambda step, losses: None)
    finally:
        signal.signal(number, previous)
    assert saved_steps == [4]


def test_loss_that_is_nan_stops_the_training_with_its_name_and_step(tmp_path):
    task = Line()
    task.fail_at = 5
    with pytest.raises(loop.Diverged, match="the loss loss is nan at step 5"):
        fit(task, tmp_path / "s.pt")


def test_average_is_that_of_its_formula():
    module = nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(1.0)
    mean = loop.Average(module, 0.75)
    for value in (2.0, 4.0):
        module.weight.data.fill_(value)
        mean.update()
    # 0.75 * 1 + 0.25 * 2 = 1.25; 0.75 * 1.25 + 0.25 * 4 = 1.9375
    assert mean.module.weight.item() == pytest.approx(1.9375)


def test_checkpoint_round_trip_and_equal_bytes(tmp_path):
    network = Line().network
    for name in ("a", "b"):
        checkpoints.save_checkpoint(tmp_path / name, {"network": network}, {"size": 3, "about": "x"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    tensors, metadata = checkpoints.load_checkpoint(tmp_path / "a")
    assert metadata == {"size": 3, "about": "x"}
    other = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
    checkpoints.load_into(other, tensors["network"], tmp_path / "a")
    assert same(weights(network), weights(other))


@pytest.mark.parametrize("damage", ["missing", "cut", "foreign"])
def test_checkpoint_that_is_not_whole_is_refused_with_its_name(tmp_path, damage):
    path = tmp_path / "c.safetensors"
    if damage == "cut":
        checkpoints.save_checkpoint(path, {"network": Line().network}, {})
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "foreign":
        path.write_text("not a checkpoint")
    with pytest.raises(CheckpointError, match=r"c.safetensors is (missing|damaged)"):
        checkpoints.load_checkpoint(path)


def test_error_for_a_checkpoint_of_another_network_names_its_keys(tmp_path):
    tensors = {"0.weight": torch.zeros(8, 4), "5.weight": torch.zeros(1)}
    with pytest.raises(CheckpointError, match=r"0.bias is missing; .*5.weight is left over; 0.weight is \(8, 4\)"):
        checkpoints.load_into(nn.Sequential(nn.Linear(3, 8)), tensors, tmp_path / "c.safetensors")


class Recorded(Line):
    """Records the steps that it takes, in a network that two phases may share."""

    def __init__(self, network):
        super().__init__()
        self.modules, self.steps = {"network": network}, []

    def step(self, step):
        self.steps.append(step)
        return {"loss": 0.0}


def test_the_steps_of_each_phase_start_at_0_and_a_shared_network_is_kept_once():
    network = nn.Linear(2, 2)
    first, second = Recorded(network), Recorded(network)
    phases = Phases({"first": (2, first), "second": (3, second)})
    for step in range(phases.steps):
        phases.step(step)
    assert (first.steps, second.steps) == ([0, 1], [0, 1, 2])
    assert list(phases.modules.values()) == [network]
    assert list(phases.optimizers) == ["first.adam", "second.adam"]
    with pytest.raises(IndexError, match="no phase is left"):
        phases.step(phases.steps)


def test_file_of_another_backbone_is_refused_and_a_fact_that_it_lacks_is_named(tmp_path):
    backbone, other, file = (tmp_path / name for name in ("backbone", "other", "file.safetensors"))
    backbone.write_bytes(b"one")
    other.write_bytes(b"another")
    checkpoints.save_checkpoint(file, {"network": nn.Linear(2, 2)}, {"identity": fingerprints.md5(backbone)})
    saved = checkpoints.Saved(file, {"identity": backbone}, ("identity",))
    assert not any(weight.requires_grad for weight in saved.frozen("network", nn.Linear(2, 2)).parameters())
    with pytest.raises(CheckpointError, match=r"does not state its widths"):
        saved.metadata["widths"]
    with pytest.raises(CheckpointError, match=r"another backbone 'identity' than .*other"):
        checkpoints.Saved(file, {"identity": other}, ("identity",))


def test_an_inherited_knob_is_described_with_its_value_in_the_paper():
    class Block(Updates):
        sources = {"batch": "4: section 4.1"}

    assert read_descriptions(Block) == {
        **read_descriptions(Updates),
        "batch": "Images in one update (4: section 4.1).",
    }
