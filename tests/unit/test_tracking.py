"""Runs: what a job recorded is what MLflow shows, also when many end at once or one was killed."""

import json
import subprocess
import sys

import numpy as np
import pytest

from masquerade import tracking

pytestmark = pytest.mark.slow


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv(tracking.BUILD, "today")
    from mlflow.tracking.client import MlflowClient

    return lambda: MlflowClient(tracking.store())


def runs(client):
    found = client().search_runs([client().get_experiment_by_name("masquerade").experiment_id])
    return {run.info.run_name: run for run in found}


def test_run_carries_parameters_curves_pictures_and_tags(client):
    with tracking.run("train toy", {"methods.toy": {"rate": 0.1}}, {"commit": "abc"}) as run:
        for step in range(3):
            run.log(step, {"loss": 3.0 - step})
        run.picture("sample", np.zeros((4, 4, 3), np.uint8))
    tracking.publish()
    shown = runs(client)["train toy"]
    assert shown.info.status == "FINISHED"
    assert shown.data.params == {"methods.toy.rate": "0.1"}
    assert shown.data.tags["commit"] == "abc"
    assert [point.value for point in client().get_metric_history(shown.info.run_id, "loss")] == [
        3.0,
        2.0,
        1.0,
    ]
    assert [item.path for item in client().list_artifacts(shown.info.run_id, "pictures")] == ["pictures/sample.png"]
    assert shown.data.tags["mlflow.parentRunId"] == runs(client)["build today"].info.run_id


def test_failed_job_is_a_failed_run_with_its_error(client):
    with pytest.raises(ValueError, match="too small"), tracking.run("measure", {}, {}):
        raise ValueError("too small")
    tracking.publish()
    shown = runs(client)["measure"]
    assert shown.info.status == "FAILED"
    assert shown.data.tags["error"] == "ValueError: too small"


def test_killed_job_is_a_killed_run(client):
    program = (
        "from masquerade.tracking import Run\nimport os\n"
        "run = Run(); run.start('killed', {}, {}); run.log(0, {'loss': 1}); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    tracking.publish()
    assert runs(client)["killed"].info.status == "KILLED"


def test_running_job_is_published_bit_by_bit(client):
    run = tracking.Run()
    run.start("long", {}, {})
    run.log(0, {"loss": 2})
    tracking.publish()
    assert runs(client)["long"].info.status == "RUNNING"
    run.log(1, {"loss": 1})
    run.end("FINISHED")
    tracking.publish()
    shown = runs(client)["long"]
    assert shown.info.status == "FINISHED"
    assert len(client().get_metric_history(shown.info.run_id, "loss")) == 2
    assert not list(tracking.RECORDS.glob("*.jsonl"))


def test_half_a_line_waits_for_its_other_half(client):
    run = tracking.Run()
    run.start("torn", {}, {})
    line = json.dumps({"time": 1.0, "event": "metrics", "step": 0, "values": {"loss": 1.0}}) + "\n"
    path = tracking.RECORDS / f"{run.id}.jsonl"
    with path.open("a") as file:
        file.write(line[:20])
    tracking.publish()
    with path.open("a") as file:
        file.write(line[20:])
    run.end("FINISHED")
    tracking.publish()
    assert runs(client)["torn"].data.metrics == {"loss": 1.0}


def test_publishing_twice_adds_nothing(client):
    with tracking.run("once", {}, {}) as run:
        run.log(0, {"loss": 1})
    assert tracking.publish() == 1
    assert tracking.publish() == 0


def test_run_is_found_by_its_record_and_asking_makes_no_store(client, tmp_path):
    with tracking.run("measure", {}, {}) as run:
        pass
    assert tracking.find([run.id]) == {}
    assert not (tmp_path / "mlflow.db").exists()
    tracking.publish()
    assert tracking.find([run.id, "0" * 32]) == {run.id: runs(client)["measure"].info.run_id}
