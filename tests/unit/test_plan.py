"""The plan: it counts what the graph has, and its hours are measurements alone."""

import json
from importlib import import_module
from types import SimpleNamespace

import pytest

from masquerade.cli.main import main
from masquerade.core.discovery import IMPORTED
from masquerade.core.settings import NoParameters
from masquerade.params import matrix
from masquerade.params.blocks import ImportedImages
from masquerade.params.paths import Paths
from masquerade.pipeline import plan
from masquerade.pipeline.rule_inputs import AttackerInputs

PAGE = """# A card

Some words.

| step | what | scale | mode | seconds | remark |
|---|---|---|---|---:|---|
| anonymize | falco | tiny | deterministic | 2 | a face |
| anonymize | falco | tiny | fast | 1 | a face |
| anonymize | falco | paper | deterministic | 9 | another scale |
| anonymize | falco, the steps alone |  |  | 7 | no row of the plan |

| step | what |
|---|---|
| another | table |
"""


def planned(tiny, root):
    _, measurements = plan.read_measurements(root)
    return {(row.rule, row.name): row for row in plan.Plan(tiny, measurements).work()}


def test_only_measured_work_has_hours(tiny, tmp_path):
    (tmp_path / plan.PAGE).parent.mkdir()
    (tmp_path / plan.PAGE).write_text(PAGE)
    rows = planned(tiny, tmp_path)
    measured = {name: row for name, row in rows.items() if row.hours is not None}
    assert {what for _, what in measured} == {"falco"}
    row = measured["anonymize", "falco"]
    assert (row.seconds, row.hours) == (2.0, row.units * 2.0 / 3600)
    assert plan.read_measurements(tmp_path)[0] == "A card"
    assert not any(row.hours for row in planned(tiny, tmp_path / "elsewhere").values())


def test_every_measurement_of_this_repository_is_of_a_row_of_a_plan(root):
    from masquerade.params import loading

    _, measurements = plan.read_measurements(root)
    for rule, name, scale, mode in measurements:
        assert mode in plan.MODES.values()
        assert (rule, name) in planned(loading.load(root, scale), root)


def test_the_plan_has_as_many_jobs_as_the_matrix(tiny, root):
    runnable = [cell for cell in matrix.plan_cells(tiny) if cell.runnable]
    jobs = {}
    for row in planned(tiny, root).values():
        jobs[row.rule] = jobs.get(row.rule, 0) + row.jobs
    assert jobs["anonymize"] == jobs["measure"] == jobs["evaluate"] == len(runnable)
    assert jobs["backbone"] == len(tiny.backbones)
    assert jobs["recover"] == len(matrix.select_matching(runnable, tiny.recovery.cells))
    attackers = AttackerInputs(tiny, runnable, Paths(tiny.scale))
    assert jobs["anonymize_attackers"] == len(attackers.archives())
    assert 2 * jobs["attacker"] == len(attackers.trainings())  # a checkpoint and its quality
    assert jobs["attack_results"] == jobs["downstream_utility"] == len(attackers.cells)


def test_the_plan_has_the_jobs_of_what_another_program_made(tiny, root, monkeypatch):
    before = planned(tiny, root)
    about = {"title": "Theirs", "source": "They 2020", "near": 2.0, "recovers": True}
    theirs = ImportedImages(**about, images={"synthetic_hq": "a" * 64})
    monkeypatch.setitem(tiny.methods, IMPORTED, SimpleNamespace(variants={"theirs": theirs}, params=NoParameters()))
    after = planned(tiny, root)
    for rule in ("anonymize", "anonymize_train", "anonymize_attackers"):
        assert after[rule, IMPORTED].jobs == 1
    assert after["recover", ""].jobs == before["recover", ""].jobs + 1


def test_steps_and_images_are_those_of_the_parameters(tiny, tmp_path):
    rows = planned(tiny, tmp_path)
    assert rows["backbone", "identity"].units == tiny.backbones["identity"].recognition.steps
    assert rows["faces", "synthetic_hq"].units == (60 + 4 + 4) * 2
    assert rows["method", "cao21"].units == plan.count_steps(tiny.training_params("cao21")) > 0


def test_pretrained_weights_take_no_steps(root):
    from masquerade.params import loading

    rows = planned(loading.load(root, "mini"), root)
    assert rows["backbone", "generator"].units == rows["method", "riddle"].units == 0
    assert rows["method", "riddle"].note == "pretrained: riddle"


def test_the_command_prints_the_table_and_plain_numbers(root, capsys):
    with pytest.raises(SystemExit) as end:
        main(["plan", "--scale", "tiny", "--json", "--root", str(root)])
    assert end.value.code == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["scale"] == "tiny"
    with pytest.raises(SystemExit):
        main(["plan", "--scale", "tiny", "--root", str(root)])
    text = capsys.readouterr().out
    assert "never measured" in text
    assert all(f"{row['rule']} {row['name']}".strip() in text for row in printed["work"])


def test_the_plan_reads_the_page_that_the_benchmark_writes(root, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(root / "benchmarks")
    gpu, pages = import_module("gpu"), import_module("pages")
    row = {"step": "anonymize", "what": "falco", "scale": "paper_1024", "mode": "fast", "seconds": 2.0, "memory": 2**31}
    other = {"step": "anonymize", "what": "falco, 1 side by side", "seconds": 3.0}
    (tmp_path / gpu.ROWS).write_text("".join(f"{json.dumps(measured)}\n" for measured in (row, other)))
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu.torch.cuda, "get_device_name", lambda: "NVIDIA H100 80GB HBM3")
    gpu.page(tmp_path)
    expected = {("anonymize", "falco", "paper_1024", "fast"): 2.0}
    assert plan.read_measurements(tmp_path) == ("NVIDIA H100 80GB HBM3", expected)
    assert "| anonymize | falco | paper_1024 | fast | 2 | 2 |  |" in (tmp_path / plan.PAGE).read_text()
