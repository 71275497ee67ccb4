"""Eight jobs record and publish their runs at the same time. No run is lost, and none appears twice."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import programs
from masquerade.core import fingerprints

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

KINDS = {  # the fate of a job -> (number of such jobs, status of their runs)
    "finishes": (2, "FINISHED"),
    "requeued": (2, "FINISHED"),
    "fails": (1, "FAILED"),
    "is killed": (3, "KILLED"),
}
JOBS = dict(enumerate(kind for kind, (count, _) in KINDS.items() for _ in range(count)))
STEPS = list(range(24))


@pytest.fixture(params=["SQLite from nothing", "server"])
def place(request, tmp_path, monkeypatch):
    """(working copy, environment, address of its store)."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    work = tmp_path / "work"
    work.mkdir()
    (work / "faces").write_text("faces")
    removed = ("MLFLOW_TRACKING_URI", "SLURM_JOB_ID", "PYTHONDONTWRITEBYTECODE")
    environment = {key: value for key, value in os.environ.items() if key not in removed}
    environment |= {"PYTHONPATH": str(fingerprints.SOURCE), "MASQUERADE_BUILD": "today", "SLURM_JOB_ID": "4711"}
    if request.param == "server":
        address = request.getfixturevalue("server")
        yield work, environment | {"MLFLOW_TRACKING_URI": address}, address
    else:
        yield work, environment, f"sqlite:///{work}/mlflow.db"


@pytest.fixture
def server(tmp_path):
    """The address, by the name of this host, of a private `mlflow server` that is started as docs/cluster.md says.

    It has one worker. Only its processes are stopped at the end.
    """
    folder = tmp_path / "server"
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "0.0.0.0", "--port", str(port), "--workers", "1"]
    name = socket.gethostname()
    command += ["--allowed-hosts", f"{name.split('.')[0]}*,localhost*"]
    command += ["--backend-store-uri", "sqlite:///server.db", "--artifacts-destination", str(folder / "artifacts")]
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    address = f"http://{name}:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            with suppress(OSError), urllib.request.urlopen(f"{address}/health", timeout=5):
                break
            time.sleep(0.2)
        else:
            pytest.fail((folder / "log").read_text()[-3000:])
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # a session of its own: the server and its worker
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_eight_jobs_at_once_lose_no_run_and_repeat_none(root, place):
    work, environment, address = place
    assert len(JOBS) == 8
    jobs = {}
    for number, kind in JOBS.items():
        command, log = ["python", str(root / "tests/workflow/job.py"), kind, str(number)], work / f"log{number}"
        jobs[number] = programs.start(command, work, environment, log, log)
    (work / "go").touch()
    try:
        for job in jobs.values():
            job.join(500)
        codes = {number: job.exitcode for number, job in jobs.items()}
    finally:
        for job in jobs.values():
            job.kill()
    logs = {number: (work / f"log{number}").read_text() for number in jobs}
    expected = {"FINISHED": 0, "FAILED": 1, "KILLED": -signal.SIGKILL}
    assert codes == {number: expected[KINDS[kind][1]] for number, kind in JOBS.items()}, logs

    from mlflow.tracking.client import MlflowClient

    client = MlflowClient(address)
    code, output = programs.run(["python", str(root / "workflow/scripts/finish.py"), "publish"], work, environment)
    assert code == 0, output
    assert "runs published" in output
    assert [path.name for path in (work / ".masquerade/runs").iterdir()] == [".lock"]

    runs = client.search_runs([client.get_experiment_by_name("masquerade").experiment_id])
    names = sorted(run.info.run_name for run in runs)
    assert names == sorted(["build today", *(f"job {number} {kind}" for number, kind in JOBS.items())])
    parent = next(run.info.run_id for run in runs if run.info.run_name == "build today")
    for run in runs:
        if run.info.run_id != parent:
            check(client, run, parent, work)


def check(client, run, parent: str, work: Path) -> None:
    """Check that the run has everything that its job recorded."""
    _, number, kind = run.info.run_name.split(" ", 2)
    assert run.info.status == KINDS[kind][1], run.info.run_name
    assert run.data.params == {"methods.toy.rate": "0.1", "methods.toy.steps": "24", "seed": number}
    tags = run.data.tags
    assert tags["mlflow.parentRunId"] == parent
    assert tags["slurm.job_id"] == "4711"
    assert tags["input.faces"] == fingerprints.md5(work / "faces")
    assert (tags.get(f"output.output{number}") is not None) == (run.info.status == "FINISHED")
    assert tags.get("error") == (f"MasqueradeError: job {number} is to fail" if kind == "fails" else None)
    for key, value in {"loss": lambda step: int(number) + step, "identity/cosine": lambda step: -step}.items():
        curve = client.get_metric_history(run.info.run_id, key)
        assert sorted((point.step, point.value) for point in curve) == [(step, value(step)) for step in STEPS], run
    folder = work / "fetched" / number
    folder.mkdir(parents=True)
    picture = client.download_artifacts(run.info.run_id, "pictures/sample.png", str(folder))
    assert (np.asarray(Image.open(picture)) == int(number)).all()
    shutil.rmtree(folder)
