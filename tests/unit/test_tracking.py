"""Tests of runs: MLflow shows all that a job recorded, once, even if the job, the publisher or the store fails."""

import os
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from masquerade.lineage import mlflow_internals, publishing, tracking

pytestmark = pytest.mark.slow

UNREACHABLE = "http://someone:password@127.0.0.1:9"  # the port "discard": nothing listens there


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The file of a store without runs. It is copied, because MLflow takes seconds to make one."""
    from mlflow.tracking.client import MlflowClient

    file = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{file}").search_experiments()
    return file


@pytest.fixture
def client(empty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv(tracking.BUILD, "today")
    shutil.copy(empty, "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")  # MLflow resolves a relative one once
    from mlflow.tracking.client import MlflowClient

    return MlflowClient(tracking.find_store())


def started(name, parameters=()):
    run = tracking.Run()
    run.start(name, dict(parameters), {})
    return run


def runs(client):
    """Name -> run. Fails if two runs have the same name."""
    found = client.search_runs([client.get_experiment_by_name("masquerade").experiment_id])
    by_name = {run.info.run_name: run for run in found}
    assert len(by_name) == len(found)
    return by_name


def status(client, name):
    return runs(client)[name].info.status


def curve(client, name, key="loss"):
    history = client.get_metric_history(runs(client)[name].info.run_id, key)
    return [(point.step, point.value) for point in sorted(history, key=lambda point: point.step)]


def outcome(client, name):
    return status(client, name), curve(client, name)


def remaining_files():
    """The names of the files in the folder of records, without the lock."""
    return sorted(path.name for path in tracking.RECORDS.iterdir() if path.name != ".lock")


class Killed(BaseException):
    """Acts as kill -9: no code of the publisher runs after it."""


def publish_killed_in(monkeypatch, owner, method, after):
    """Publish, and kill the publisher in ``method`` of ``owner``: at its end if ``after``, else at its start."""
    real = getattr(owner, method)

    def die(*arguments, **options):
        if after:
            real(*arguments, **options)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(owner, method, die)
        publishing.publish()


def test_run_carries_parameters_curves_pictures_and_tags(client):
    with tracking.run("train toy", {"methods.toy": {"rate": 0.1}}, {"commit": "abc"}) as run:
        for step in range(3):
            run.log(step, {"loss": 3.0 - step})
        run.log_image("sample", np.zeros((4, 4, 3), np.uint8))
    publishing.publish()
    published = runs(client)["train toy"]
    assert published.info.status == "FINISHED"
    assert published.data.params == {"methods.toy.rate": "0.1"}
    assert published.data.tags["commit"] == "abc"
    assert "slurm.job_id" not in published.data.tags
    assert curve(client, "train toy") == [(0, 3.0), (1, 2.0), (2, 1.0)]
    assert [item.path for item in client.list_artifacts(published.info.run_id, "pictures")] == ["pictures/sample.png"]
    assert published.data.tags["mlflow.parentRunId"] == runs(client)["build today"].info.run_id
    assert remaining_files() == []


def test_failed_job_is_a_failed_run_with_its_error(client):
    with pytest.raises(ValueError, match="too small"), tracking.run("measure", {}, {}):
        raise ValueError("too small")
    publishing.publish()
    published = runs(client)["measure"]
    assert published.info.status == "FAILED"
    assert published.data.tags["error"] == "ValueError: too small"


def test_killed_job_is_a_killed_run_that_ends_at_its_last_event(client):
    program = (
        "from masquerade.lineage.tracking import Run\nimport os\n"
        "run = Run(); run.start('killed', {}, {}); run.log(0, {'loss': 1}); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    dead = time.time()
    time.sleep(0.1)
    publishing.publish()
    published = runs(client)["killed"]
    assert published.info.status == "KILLED"
    assert published.info.end_time <= dead * 1000


def test_job_that_outlives_its_build_continues_its_run(client):
    run = started("outlived")
    run.log(0, {"loss": 2})
    publishing.publish()
    assert status(client, "outlived") == "KILLED"
    run.log(1, {"loss": 1})
    run.end("FINISHED")
    publishing.publish()
    assert outcome(client, "outlived") == ("FINISHED", [(0, 2), (1, 1)])
    assert remaining_files() == []


def test_training_is_published_while_it_runs_and_again_at_the_end_without_repetition(client, monkeypatch):
    monkeypatch.setattr(tracking, "_LIVE_SECONDS", 0.0)
    with tracking.run("train", {"rate": 1}, {}, publishing.publish_live) as run:
        run.log(0, {"loss": 2})
        assert outcome(client, "train") == ("RUNNING", [(0, 2)])
        run.log(1, {"loss": 1})
    publishing.publish()
    assert outcome(client, "train") == ("FINISHED", [(0, 2), (1, 1)])


def test_requeued_job_continues_its_run_and_repeats_no_step(client):
    run = started("requeued")
    first = tracking.Run(run.id)
    for step in range(6):
        first.log(step, {"loss": step})
    first.log(6, {"loss": 6})
    second = tracking.Run(run.id)
    for step in range(4, 9):  # the training was saved after step 3
        second.log(step, {"loss": step})
    second.log(0, {"quality/auc": 0.9})
    assert len({path.name for path in tracking.RECORDS.glob("*.jsonl")}) == 3, "a file for each process"
    run.end("FINISHED")
    publishing.publish()
    assert curve(client, "requeued") == [(step, step) for step in range(9)]
    assert curve(client, "requeued", "quality/auc") == [(0, 0.9)]


def test_run_has_the_number_of_the_slurm_job_that_did_the_work(client, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "41")
    run = tracking.Run()
    run.start("train", {}, {"commit": "abc"})
    with tracking.run("measure", {}, {}):
        pass
    publishing.publish()
    assert runs(client)["train"].data.tags["slurm.job_id"] == "41"
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    tracking.Run(run.id).log(0, {"loss": 1})
    monkeypatch.setenv("SLURM_JOB_ID", "41")
    run.end("FINISHED")
    publishing.publish()
    assert runs(client)["train"].data.tags["slurm.job_id"] == "42"
    assert runs(client)["measure"].data.tags["slurm.job_id"] == "41"


def test_only_the_damaged_line_of_a_record_is_lost(client, caplog):
    with tracking.run("damaged", {}, {}) as run:
        (path,) = tracking.RECORDS.glob("*.jsonl")
        with path.open("ab") as file:
            file.write(b'{"time": 1.0, "event": "met\0\0\n')
        run.log(1, {"loss": 1})
    publishing.publish()
    assert outcome(client, "damaged") == ("FINISHED", [(1, 1)])
    assert "damaged line" in caplog.text


@pytest.mark.parametrize(("owner", "method", "after"), [
    ("_Publisher", "_create", False), ("_Publisher", "_create", True), ("_Publisher", "send", True),
    ("_Publisher", "_find_parent", True), ("shutil", "rmtree", False),
])  # fmt: skip
def test_killed_publisher_neither_loses_nor_repeats_events(client, monkeypatch, owner, method, after):
    with tracking.run("once", {"rate": 1}, {}) as run:
        for step in range(5):
            run.log(step, {"loss": step})
        run.log_image("sample", np.zeros((4, 4, 3), np.uint8))
    publish_killed_in(monkeypatch, getattr(publishing, owner), method, after)
    publishing.publish()
    assert publishing.publish() == 0, "publishing again adds nothing"
    assert outcome(client, "once") == ("FINISHED", [(step, step) for step in range(5)])
    assert status(client, "build today") == "FINISHED"
    assert [path for path in remaining_files() if path.endswith("jsonl")] == []


def test_refused_record_stays_on_disk_and_delays_no_other(client, caplog):
    ids = {}
    for name in ("a", "refused", "b"):
        with tracking.run(name, {}, {}) as run:
            run.tag({"x" * 300 if name == "refused" else "valid": "1"})  # a key has 250 characters at most
        ids[name] = run.id
    publishing.publish()
    assert {runs(client)[name].info.status for name in ("a", "b")} == {"FINISHED"}
    assert ids["refused"] in caplog.text
    assert {name.split(".")[0] for name in remaining_files()} == {ids["refused"]}


def test_unreachable_store_loses_no_event_and_delays_no_training(client, monkeypatch, caplog):
    run = tracking.Run(publish_live=publishing.publish_live)
    run.start("training", {}, {})
    before = sorted((path, path.read_bytes()) for path in tracking.RECORDS.glob("*.jsonl"))
    with monkeypatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", UNREACHABLE)
        with pytest.raises(Exception, match=r"127.0.0.1"):
            publishing.publish()
        assert sorted((path, path.read_bytes()) for path in tracking.RECORDS.glob("*.jsonl")) == before
        patch.setattr(tracking, "_LIVE_SECONDS", 0.0)
        run._due = 0.0
        began = time.monotonic()
        run.log(0, {"loss": 1})
        took = time.monotonic() - began
        assert took < 10
        assert run._due >= began + 9 * took, "the next attempt comes so late that it costs a tenth at most"
    assert "it will be when the build ends" in caplog.text
    assert "password" not in caplog.text
    run.end("FINISHED")
    publishing.publish()
    assert outcome(client, "training") == ("FINISHED", [(0, 1)])


def test_build_ends_without_error_and_with_a_warning_if_the_store_is_unreachable(client, root, monkeypatch):
    with tracking.run("job", {}, {}):
        pass
    environment = os.environ | {"MLFLOW_TRACKING_URI": UNREACHABLE, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(root / "workflow/scripts/finish.py"), "publish"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "not published to http://127.0.0.1:9" in done.stderr
    assert "next build publishes them" in done.stderr
    assert "password" not in done.stderr
    assert "Traceback" not in done.stderr


def test_live_publisher_does_not_wait_for_another(client):
    from filelock import FileLock

    run = started("waiting")
    with FileLock(tracking.RECORDS / ".lock"):
        began = time.monotonic()
        publishing.publish_live(run.id)
        assert time.monotonic() - began < 2
    publishing.publish_live(run.id)
    assert status(client, "waiting") == "RUNNING"


def test_requeued_job_is_one_run_that_continues(client, monkeypatch):
    """submitit's handler requeues the job and ends the process. Another process continues the same record."""
    monkeypatch.setenv(tracking.RUN, "f" * 32)
    with pytest.raises(SystemExit), tracking.run("train", {"rate": 0.1}, {}) as run:
        run.log(0, {"loss": 2.0})
        raise SystemExit(-1)
    publishing.publish_live("f" * 32)
    assert status(client, "train") == "RUNNING"
    with tracking.run("train", {"rate": 0.1}, {}) as run:
        run.log(1, {"loss": 1.0})
    publishing.publish()
    assert outcome(client, "train") == ("FINISHED", [(0, 2.0), (1, 1.0)])


def test_log_of_a_submitted_job_is_kept_with_its_run(client, monkeypatch, tmp_path):
    log = tmp_path / "7_0_log.err"
    log.write_text("said on the node")
    monkeypatch.setenv(tracking.LOG, str(log))
    with tracking.run("train", {}, {}):
        pass
    publishing.publish()
    kept = client.list_artifacts(runs(client)["train"].info.run_id)
    assert [file.path for file in kept] == ["7_0_log.err"]


def test_find_returns_the_run_of_a_record_and_creates_no_store(client, tmp_path):
    with tracking.run("measure", {}, {}) as run:
        pass
    publishing.publish()
    assert publishing.find_runs([run.id, "0" * 32]) == {run.id: runs(client)["measure"].info.run_id}
    (tmp_path / "mlflow.db").unlink()
    assert publishing.find_runs([run.id]) == {}
    assert not (tmp_path / "mlflow.db").exists()


def test_internals_are_written_for_the_installed_and_locked_mlflow(root):
    assert version("mlflow") == mlflow_internals.VERSION, "check each function of mlflow_internals.py"
    assert f"mlflow=={mlflow_internals.VERSION}\n" in (root / "requirements.lock").read_text()


def test_artifacts_of_a_moved_working_copy_are_found_and_its_old_place_is_not_made_again(client, tmp_path, monkeypatch):
    old, new = tmp_path / "old place", tmp_path / "new place"
    for place, name in ((old, "first"), (new, "second")):
        if place == old:
            old.mkdir()
            shutil.copy("mlflow.db", old)
        else:
            old.rename(new)
        monkeypatch.chdir(place)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{place}/mlflow.db")
        run = started(name)
        run.log_artifact(Path("mlflow.db"))
        run.end("FINISHED")
        publishing.publish()
    moved = type(client)(tracking.find_store())
    for run in runs(moved).values():
        if run.info.run_name in ("first", "second"):
            assert run.info.artifact_uri.startswith(f"{new.as_uri()}/mlruns/")
            assert [file.path for file in moved.list_artifacts(run.info.run_id)] == ["mlflow.db"]
    assert not old.exists()


def test_log_names_the_cause_if_a_server_does_not_allow_its_name():
    from mlflow.server.security_utils import INVALID_HOST_MSG

    said = tracking.explain_failure(
        ValueError(f"https://user:password@node7 error code 403. Response body: '{INVALID_HOST_MSG}'")
    )
    assert "start it with `--allowed-hosts`" in said
    assert "password" not in said
