"""The plan: its counts equal those by hand and those of PyTorch, need no files, and cover every step."""

import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import yaml
from torch import nn
from torch.utils import _python_dispatch
from torch.utils.flop_counter import FlopCounterMode

from masquerade.cli.main import main
from masquerade.core import discovery, execution, keys
from masquerade.core.errors import CheckpointError, MasqueradeError, ParameterError
from masquerade.methods import Capabilities
from masquerade.networks.ir_se import IRSE
from masquerade.params import loading
from masquerade.params.matrix import Cell
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import method_files
from masquerade.pipeline.attacker_inputs import AttackerInputs
from masquerade.pipeline.costs import anonymizations, measured, pictures, table, timed, trainings
from masquerade.pipeline.costs.estimate import Estimate
from masquerade.pipeline.costs.gpus import gpu
from masquerade.pipeline.costs.meta import MetaExecution
from masquerade.pipeline.costs.step import Step
from masquerade.pipeline.costs.timed import TimedExecution
from masquerade.pipeline.costs.workload import Workload
from masquerade.training import checkpoints, loop

AT = table.Throughput("a GPU", peak=100.0, share=0.5)


def spent(work, execution=MetaExecution):
    with execution() as meta, meta.counted() as cost:
        work()
    return cost


class Regression:
    """One linear layer, 3 numbers to 2, on batches of 5; every fourth step twice."""

    def __init__(self, width=3):
        self.layer = nn.Linear(width, 2)
        self.modules, self.width = {"layer": self.layer}, width
        self.optimizers = {"adam": torch.optim.Adam(self.layer.parameters())}

    def kind(self, step):
        return step % 4 == 0

    def step(self, step):
        loss = sum(self.layer(torch.ones(5, self.width)).square().mean() for _ in range(2 if step % 4 == 0 else 1))
        self.optimizers["adam"].zero_grad()
        loss.backward()
        self.optimizers["adam"].step()
        return {"loss": loss.item()}


def trained(tmp_path, steps, execution=MetaExecution, task=Regression, **more):
    def work():
        loop.fit(task(**more), steps=steps, state=tmp_path / "s", fingerprint="", log=lambda *_: None)

    return spent(work, execution)


def test_flops_of_a_small_network_equal_those_by_hand():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 10))
    cost = spent(lambda: network(torch.zeros(2, 3, 4, 4)))
    assert cost.flops == 2 * (2 * 8 * 4 * 4 * 3 * 9) + 2 * 2 * (8 * 16) * 10


def test_flops_of_a_step_are_forward_backward_and_repeated_by_kind(tmp_path):
    once = 2 * 5 * 3 * 2 * 2  # forwards, and the gradient of the weights; the input needs none
    assert trained(tmp_path, 8).repeated == (6 + 2 * 2) * once
    assert trained(tmp_path, 8).kinds == [(2, 2 * once), (6, once)]


@pytest.mark.parametrize("work", ["forward", "backward"])
def test_flops_equal_those_of_pytorchs_own_counter(work):
    network, images = IRSE(48, [8, 8, 16, 16, 32], [1, 1, 1, 1]), torch.zeros(2, 3, 48, 48)

    def run():
        made = network(images)
        if work == "backward":
            made.sum().backward()

    with FlopCounterMode(display=False) as counter:
        run()
    fresh = {}

    def build_and_run():
        nonlocal network, images
        network, images = IRSE(48, [8, 8, 16, 16, 32], [1, 1, 1, 1]), torch.zeros(2, 3, 48, 48)
        fresh["done"] = run()

    assert spent(build_and_run).flops == counter.get_total_flops() > 0


def test_plan_prints_no_training_progress(tmp_path, capfd):
    trained(tmp_path, 8)
    assert not capfd.readouterr().err


def test_twice_the_steps_cost_twice(tmp_path):
    assert trained(tmp_path, 800).flops == 2 * trained(tmp_path, 400).flops


def test_memory_is_the_peak_of_live_tensors():
    def work():
        for _ in range(5):
            torch.zeros(1000, 256)  # 1 MB, freed at once

    assert spent(work).peak == pytest.approx(1000 * 256 * 4, rel=0.05)


def test_memory_of_a_training_holds_weights_gradients_and_both_moments(tmp_path):
    wide = trained(tmp_path, 100, width=100_000).peak - trained(tmp_path, 100, width=50_000).peak
    assert wide >= 4 * (50_000 * 2) * 4


def test_planning_a_wide_network_allocates_no_memory():
    with MetaExecution() as meta, meta.counted() as cost:
        nn.Linear(200_000, 200_000, bias=False)
    assert cost.peak >= 200_000**2 * 4  # 149 GiB


def test_timed_steps_have_the_flops_of_the_plan_and_seconds(tmp_path):
    computed, counted = (trained(tmp_path, 800, execution) for execution in (TimedExecution, MetaExecution))
    assert (computed.repeated, computed.kinds, computed.rounds) == (counted.repeated, counted.kinds, 800)
    assert 1e-5 < computed.seconds / computed.rounds < 1
    assert not list(tmp_path.iterdir())


class Lost(Regression):
    def step(self, step):
        return {"loss": super().step(step)["loss"] * float("nan")}


def test_a_loss_of_random_networks_stops_no_timed_training(tmp_path):
    assert trained(tmp_path, 8, TimedExecution, Lost).rounds == 8
    with pytest.raises(loop.Diverged):
        loop.fit(Lost(), steps=8, state=tmp_path / "s", fingerprint="", log=lambda *_: None)


def test_a_timed_loop_within_a_step_runs_whole_and_parts_outside_of_steps_once():
    seen = []

    def work():
        execution.parts(lambda part: seen.append("part") or part, torch.zeros(70, 4), 32)
        for _ in execution.rounds(100):
            seen.extend(execution.rounds(3))

    assert spent(work, TimedExecution).rounds == 100
    assert seen == ["part", *[0, 1, 2] * (2 + timed.ROUNDS)]


def test_a_failing_timed_step_leaves_no_counter(tmp_path):
    def work():
        for _ in execution.rounds(5):
            raise MemoryError

    with pytest.raises(MemoryError):
        spent(work, TimedExecution)
    assert _python_dispatch._len_torch_dispatch_stack() == 0


def test_many_kinds_of_rounds_are_interpolated():
    def work():
        for number in execution.rounds(20, kind=lambda number: number // 2):
            torch.zeros(1 + number // 2, 7) @ torch.zeros(7, 1)

    assert spent(work).repeated == sum(2 * 7 * (1 + number // 2) for number in range(20))


def test_every_part_is_counted():
    results = {}

    def work():
        results["rows"] = execution.parts(lambda part: part @ torch.zeros(4, 6), torch.zeros(70, 4), 32)

    assert spent(work).repeated == 2 * 70 * 4 * 6
    assert results["rows"].shape == (70, 6)


def test_parts_outside_a_plan_equal_the_whole_batch():
    batch = torch.arange(14.0).reshape(7, 2)
    double, half = execution.parts(lambda part: (part * 2, part / 2), batch, 3)
    assert torch.equal(double, batch * 2)
    assert torch.equal(half, batch / 2)
    assert list(execution.rounds(5, 2)) == [2, 3, 4]


def test_comparisons_that_pytorch_makes_itself_are_counted():
    assert spent(lambda: torch.zeros(5, 3).cov()).flops == 2 * 5 * 3 * 5


def test_plan_reads_the_shapes_of_a_real_checkpoint(tmp_path):
    checkpoints.save_checkpoint(tmp_path / "a", {"layer": nn.Linear(3, 2)}, {"width": 3})
    with MetaExecution() as meta:
        tensors, facts = checkpoints.load_checkpoint(tmp_path / "a")
        assert tensors["layer"]["weight"].shape == (2, 3)
        assert facts == {"width": 3}
        assert meta.size(tmp_path / "a") == (3 * 2 + 2) * 4


def test_plan_writes_no_files_and_restores_pytorch(tmp_path):
    with MetaExecution() as meta:
        checkpoints.save_checkpoint(tmp_path / "a", {"layer": nn.Linear(3, 2)}, {"width": 3})
        tensors, facts = checkpoints.load_checkpoint(tmp_path / "a")
        assert tensors["layer"]["weight"].shape == (2, 3)
        assert facts == {"width": 3}
        assert meta.size(tmp_path / "a") == (3 * 2 + 2) * 4
    assert list(execution.rounds(3)) == [0, 1, 2]
    assert torch.ones(2).sum().item() == 2.0
    assert nn.Linear(1, 1).to("meta").weight.is_meta
    with pytest.raises(CheckpointError):  # the plan writes no checkpoint
        checkpoints.load_checkpoint(tmp_path / "a")


def test_bytes_of_a_small_matrix(tiny, tmp_path):
    steps = {step.name: step for step in Estimate(tiny, tmp_path, tmp_path).data()}
    each = pictures.png_bytes(tiny, "synthetic_hq", masks=True)
    assert steps["synthetic_hq"].units == (60 + 4 + 4) * 2
    assert steps["synthetic_hq"].disk == 136 * each
    assert 0 < pictures.png_bytes(tiny, "synthetic_hq") < each < 2 * 64 * 64 * 4


def test_hours_are_flops_over_peak_and_utilization():
    assert AT.hours(Step("method", "x", 1, 1, "steps", flops=round(100e12 * 0.5 * 3600))) == pytest.approx(1.0)


def test_a_step_of_a_set_precision_has_its_peak_and_a_remark_with_what_it_is_expected_to_give():
    card = gpu("h100")
    at = table.Throughput(card.title, card.tf32, share=0.5, peaks=card.peaks)
    steps = [Step("method", "x", 1, 1, "steps", 10**18, precision=name) for name in ("", *card.peaks)]
    usual, exact, tf32, bfloat16 = map(at.hours, steps)
    assert (usual / tf32, exact / tf32, tf32 / bfloat16) == pytest.approx((1, 494.7 / 66.9, 2))
    remarks = [row[-1] for row in table.rows(steps, at)]
    assert remarks[0] == ""
    assert remarks[2] == "tf32: 495 TFLOP/s at most, 7.4 times those of 32 bits"
    assert table.Throughput("another GPU", 100.0, 0.5).expected(steps[2]) == ""


PAGE = """# A card

Some words.

| step | what | TFLOP/s | share of the peak | remark |
|---|---|---:|---:|---|
| method | x | 20 | 0.2 | |
| method | y | 10 | 0.1 | |
| anonymize | falco | 40 | 0.4 | a face |
| method | z | | | not counted: out of memory |
| test | contract | | | 3 passed |
"""


@pytest.fixture
def measured_at(tmp_path):
    """A throughput with the shares of PAGE."""
    (tmp_path / measured.PAGE).parent.mkdir()
    (tmp_path / measured.PAGE).write_text(PAGE)
    return table.Throughput("a GPU", peak=100.0, measured=measured.read(tmp_path))


def test_a_step_takes_its_measured_share_and_others_the_median(measured_at):
    flops = round(100e12 * 3600)
    hours = {
        (rule, name): measured_at.hours(Step(rule, name, 1, 1, "steps", flops=flops))
        for rule, name in (("method", "x"), ("method", "y"), ("method", "z"), ("anonymize_train", "falco"))
    }
    assert list(hours.values()) == pytest.approx([1 / 0.2, 1 / 0.1, 1 / 0.2, 1 / 0.4])
    text = table.explanations(measured_at)[1]
    assert "Shares measured on A card (benchmarks/gpu.md): 3; every other step has their median, 0.2." in text


def test_total_hours_are_the_sum_of_hours_with_different_shares(measured_at):
    steps = [Step("method", name, 1, 1, "steps", flops=10**18) for name in "xy"]
    told = json.loads(table.as_json("s", steps, measured_at))
    assert told["all"]["gpu_hours"] == pytest.approx(sum(step["gpu_hours"] for step in told["steps"]))


def test_without_a_measured_page_the_share_is_assumed_and_a_given_one_comes_first(tmp_path, measured_at):
    assert measured.read(tmp_path / "elsewhere") is None
    assert "0.2, is an assumption" in table.Throughput("a GPU", 100.0).source
    given = replace(measured_at, share=0.5)
    assert given.hours(Step("method", "x", 1, 1, "steps", flops=10**15)) == AT.hours(
        Step("method", "x", 1, 1, "steps", flops=10**15)
    )


@pytest.mark.parametrize("row", ["| anonymize | falco |", "| anonymize | falco | fast |"])
def test_error_for_a_page_with_a_row_that_is_no_measurement(row, tmp_path):
    page = tmp_path / measured.PAGE
    page.parent.mkdir()
    page.write_text(f"# A card\n\n| step | what | share of the peak |\n|---|---|---:|\n{row}\n")
    with pytest.raises(ParameterError, match=r"gpu.md has a row that is no measurement.*benchmarks/gpu.sh"):
        measured.read(tmp_path)


def test_the_page_of_this_repository_can_be_read(root):
    page = measured.read(root)
    assert page is not None
    assert 0 < page.usual < 1


def test_error_for_an_unknown_gpu_names_the_known_ones():
    with pytest.raises(MasqueradeError, match="a100"):
        gpu("a1000")


def test_numbers_of_the_table_have_units():
    step = Step("method", "x", 2, 10, "steps", flops=1_500_000_000_000, peak=3 * 2**30, disk=2048)
    row, last = table.rows([step], AT)
    assert row == ("method", "x", "2", "10", "steps", "1.5 T", "< 0.001", "3 GiB", "2 KiB", "", "")
    assert last[0] == "all"
    assert last[5:9] == row[5:9]


@pytest.fixture(scope="module")
def planned(root, tmp_path_factory):
    """The plan of the tests' scale, from the JSON output of the command."""
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text), pytest.raises(SystemExit) as end:
        main(["plan", "--scale", "tiny", "--json", "--root", str(root)])
    assert end.value.code == 0
    return json.loads(text.getvalue())


def test_everything_that_trains_is_in_the_plan(planned, tiny):
    steps = {(step["rule"], step["name"]): step for step in planned["steps"]}
    for name in tiny.backbones:
        assert steps["backbone", name]["flops"] > 0
    trains = [name for name in tiny.methods if discovery.load("methods", name).capabilities.trains]
    assert trains
    for name in trains:
        assert steps["method", name]["units"] > 0
        assert steps["method", name]["flops"] > 0
    for name in tiny.methods:
        assert steps["anonymize", name]["jobs"] > 0


def test_every_step_of_the_plan_is_counted(planned):
    assert not [step for step in planned["steps"] if "not counted" in step["note"]]


def test_total_is_the_sum_of_the_steps(planned):
    for what in ("flops", "disk", "jobs"):
        assert planned["all"][what] == sum(step[what] for step in planned["steps"])
    assert planned["all"]["gpu_hours"] == pytest.approx(sum(step["gpu_hours"] for step in planned["steps"]))


def test_the_plan_has_as_many_jobs_as_the_matrix(planned, tiny):
    from masquerade.params import matrix

    runnable = [cell for cell in matrix.cells(tiny) if cell.runnable]
    jobs = {}
    for step in planned["steps"]:
        jobs[step["rule"]] = jobs.get(step["rule"], 0) + step["jobs"]
    assert jobs["anonymize"] == jobs["measure"] == jobs["metrics"] == len(runnable)
    assert jobs["backbone"] == len(tiny.backbones)
    assert jobs["recover"] == jobs["measure_attempts"] == len(matrix.matching(runnable, tiny.recovery.cells))
    attackers = AttackerInputs(tiny, runnable, Paths(tiny.scale))
    assert jobs["anonymize_attackers"] == len(attackers.archives())
    assert 2 * jobs["attacker"] == len(attackers.trainings())  # a checkpoint and its quality
    assert jobs["answers"] == jobs["twins"] == len(attackers.cells)


def test_every_rule_with_much_work_is_in_the_plan(planned, root):
    small = {"imported", "backbones_table", "features", "metrics", "scores", "report", "table", "curves", "clusters",
             "grid", "claims_table"}  # fmt: skip
    of_another_name = {"faces": "data", "invert": "latents"}
    shared = {"anonymize_neural"}  # only other rules use it
    text = "".join(path.read_text() for path in sorted((root / "workflow" / "rules").glob("*.smk")))
    rules = set(re.findall(r"^(?:use rule \w+ as|rule) (\w+)", text, re.MULTILINE)) - small - shared
    assert {of_another_name.get(rule, rule) for rule in rules} <= {step["rule"] for step in planned["steps"]}


def test_every_attacker_that_learns_is_counted(planned, tiny):
    steps = {step["name"]: step for step in planned["steps"] if step["rule"] == "attacker"}
    learning = [name for name in tiny.attackers if discovery.load("attackers", name).learns]
    assert sorted(steps) == sorted(learning)
    for step in steps.values():
        assert step["flops"] > 0
        assert step["disk"] > 0
    assert steps["adapted"]["jobs"] == 3 + 1, "one cell has two trials"
    assert steps["insider"]["jobs"] == 1, "one cell has a method with keys"


def test_pictures_under_one_key_include_the_tested_ones(planned, tiny, tmp_path):
    workload = Estimate(tiny, tmp_path, tmp_path).workload
    own, tested = workload.learned_by("attackers"), workload.test("synthetic_hq")
    units = {step["name"]: step["units"] for step in planned["steps"] if step["rule"] == "anonymize_attackers"}
    assert units == {"original": own, "cao21": own + own + tested, "fawkes": own}


@pytest.mark.parametrize(("people", "pictures", "count"), [(0, 0, 12), (3, 0, 6), (0, 1, 6), (3, 1, 3), (100, 100, 12)])
def test_attackers_anonymize_as_many_pictures_as_the_parameters_say(tiny, tmp_path, people, pictures, count):
    own = {"fawkes": {"default": {"people": people, "pictures": pictures}}}
    informed = tiny.informed.model_copy(update={"own": own})
    workload = Workload(Parameters(tiny.typed.model_copy(update={"informed": informed})), tmp_path)
    assert workload.learned_by("attackers") == 12  # a tenth of 60 people, two pictures each
    assert workload.attackers_pictures(Cell("synthetic_hq", "fawkes", "default", 0)) == count


def test_adopted_networks_are_read_and_never_trained(root, tmp_path, monkeypatch):
    mini = loading.load(root, "mini")
    estimate = Estimate(mini, tmp_path, root)
    pictures.write(estimate.builder.archive, mini.image.size, 2)
    for name in mini.backbones:
        monkeypatch.setattr(discovery.load("backbones", name), "train", lambda *_: pytest.fail("it was trained"))
    with estimate.meta:
        steps = list(trainings.backbones(estimate.workload, estimate.builder))
    assert {step.name for step in steps} == set(mini.backbones)
    for step in steps:
        file = root / "weights" / f"{step.name}.safetensors"
        assert (step.flops, step.note) == (0, f"published: {file.name}")
        assert step.disk > file.stat().st_size, "a checkpoint has 32 bits"


class Remembering:
    """A method that reads pictures by 100 multiply-adds a number, once, and recovers them by 3."""

    capabilities = Capabilities(keys=keys.Digits(6), invertible=True)

    def __init__(self):
        self.read = False

    def recover(self, images, keys):
        assert len(set(keys)) == 1
        for inner in [3] if self.read else [100, 3]:
            torch.ones(images.size, inner) @ torch.ones(inner, 1)
        self.read = True
        return images


def test_guessed_keys_share_what_is_read_off_the_pictures(tiny, tmp_path, monkeypatch):
    estimate = Estimate(tiny, tmp_path, tmp_path)
    pictures.write(estimate.builder.archive, 8, 2)
    monkeypatch.setattr(estimate.builder, "method", lambda name, variant: Remembering())
    monkeypatch.setattr(estimate.builder, "judge", lambda name: SimpleNamespace(measure=lambda images: {}))
    with estimate.meta:
        steps = list(anonymizations.attacked(estimate.workload, estimate.builder))
    assert steps
    for step in steps:
        attacked = step.units / tiny.attacks.guesses
        assert step.flops == attacked * 3 * 8 * 8 * 2 * (100 + 3 * tiny.attacks.guesses)


def evaluating(root, folder, scale, cells) -> Parameters:
    """The parameters of a scale whose matrix has these cells alone."""
    tree = loading.load(root, scale).tree
    tree["matrix"]["evaluate"] = cells
    (folder / "params.yaml").write_text(yaml.safe_dump(tree))
    (folder / "scales").mkdir()
    (folder / "scales" / f"{scale}.yaml").write_text("{}")
    return loading.load(folder, scale)


def test_inpainters_of_photographs_are_counted(root, tmp_path):
    estimate = Estimate(evaluating(root, tmp_path, "photo", {"generated_hq": ["ciagan/default"]}), tmp_path, tmp_path)
    resources = method_files.resources(root, loading.load(root, "photo"), "ciagan", "default")
    for name, path in resources.backbones.items():
        shutil.copy(path, estimate.builder.path(name))
    pictures.write(estimate.builder.archive, 256, 1)
    with estimate.meta:
        steps = {step.rule: step for step in anonymizations.anonymized(estimate.workload, estimate.builder)}
    assert steps["anonymize"].note == ""
    assert steps["anonymize"].flops > 18 * 1e10 * steps["anonymize"].units, "18 steps through generator and LPIPS"


def test_uncounted_step_has_a_reason(tiny, tmp_path):
    estimate = Estimate(tiny, tmp_path, tmp_path)
    with estimate.meta:
        cost, reason = estimate.builder.counted("x", lambda: estimate.builder.method("falco", "m_0"))
    assert cost.flops == 0
    assert reason.startswith("not counted: ")
    assert "is missing" in reason


def test_dataset_of_unknown_size_has_a_note(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(discovery.load("faces", "synthetic_wild"), "count", lambda *_: None)
    steps = {step.name: step for step in Estimate(tiny, tmp_path, tmp_path).data()}
    assert steps["synthetic_wild"].units == 0
    assert "nobody knows" in steps["synthetic_wild"].note


def test_dataset_with_missing_files_is_counted(root, tmp_path):
    from masquerade.params import matrix

    parameters = evaluating(root, tmp_path, "tiny", {"folder": ["fit/default"]})
    assert not any(cell.runnable for cell in matrix.cells(parameters))
    estimate = Estimate(parameters, tmp_path, tmp_path)
    assert [cell.method for cell in estimate.workload.cells] == ["fit"]


def test_the_size_of_an_archive_that_is_built_is_counted(tiny, tmp_path):
    pictures.write(tmp_path / "x.zip", 32, 6)
    counts = pictures.count(tiny, "synthetic_hq", tmp_path / "x.parquet")
    assert counts == {"train": 64, "validation": 8, "test": 6}
