"""Sends the records of jobs (see `lineage.tracking`) to MLflow: all at the end of a build, a training's while it runs.

Snakemake runs one build at a time in a working copy, so a record without an end belongs to a job that was killed. A
record is deleted when the store has all of it. Everything may be sent twice: MLflow keeps a repeated point, parameter
or tag once, and a run that was created before is found by its tag ``record``. One process at a time writes to the
store: the lock ``.lock`` is a `flock`, which ends with its process.
"""

import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.lineage import mlflow_internals
from masquerade.lineage.tracking import RECORDS, explain_failure, find_store, hide_credentials

if TYPE_CHECKING:
    from mlflow.tracking.client import MlflowClient

logger = logging.getLogger(__name__)

EXPERIMENT = "masquerade"
_LOCK_SECONDS = 600.0
_REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST", "INVALID_STATE")


def publish() -> int:
    """Send every record to the store when a build has ended, and delete it. Returns the number of runs.

    A record that the store refuses stays on disk and does not delay the others. Raises filelock.Timeout after ten
    minutes of waiting for another publisher, and MLflow's error if the store cannot be reached. Nothing is lost then:
    the next call continues.
    """
    from filelock import FileLock

    records = sorted({path.name.split(".")[0] for path in RECORDS.glob("[!.]*.jsonl")})
    if not records:
        return 0
    with FileLock(RECORDS / ".lock", timeout=_LOCK_SECONDS):
        publisher = _Publisher()
        for record in records:
            try:
                publisher.send(record, over=True)
            except Exception as error:
                if not _is_refusal(error):
                    raise
                reason = explain_failure(error)
                logger.warning("%s refuses %s/%s: %s", hide_credentials(find_store()), RECORDS, record, reason)
                continue
            for path in RECORDS.glob(f"{record}*.jsonl"):
                path.unlink()
            shutil.rmtree(RECORDS / record, ignore_errors=True)
    return len(records)


def publish_live(record: str) -> None:
    """Send what the job of this record has recorded so far. Does nothing if another publisher is at work."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(RECORDS / ".lock", timeout=0):
            _Publisher().send(record, over=False)
    except Timeout:
        logger.info("another job publishes its run")


def find_runs(records: Iterable[str]) -> dict[str, str]:
    """Record (`Run.id`) -> its MLflow run, for the records that the store has. Returns {} if no store answers."""
    file = find_store().removeprefix("sqlite:///")
    if file != find_store() and not Path(file).is_file():
        return {}  # a query would create the store
    client = _connect()
    try:
        experiments = [experiment.experiment_id for experiment in client.search_experiments()]
        matches = {
            record: client.search_runs(experiments, f"tags.record = '{record}'", max_results=1)
            for record in set(records)
        }
    except Exception as error:  # noqa: BLE001 - a store and its network can raise anything
        logger.warning("%s does not answer (%s)", hide_credentials(find_store()), type(error).__name__)
        return {}
    return {record: runs[0].info.run_id for record, runs in matches.items() if runs}


def _connect() -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # the runs of a lab are private
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # MLflow's own retry creates a run twice if an answer is lost
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # saves two lines and one request per run
    from mlflow.tracking.client import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return MlflowClient(find_store())


class _Publisher:
    def __init__(self) -> None:
        self.client = _connect()
        self.parents: dict[str, str] = {}

    @cached_property
    def experiment(self) -> str:
        """The id of the experiment, which is created if the store has none."""
        from mlflow.exceptions import MlflowException

        database = Path(find_store().removeprefix("sqlite:///"))
        place = Path("mlruns").resolve().as_uri() if find_store().startswith("sqlite:") else None
        try:
            return self.client.create_experiment(EXPERIMENT, artifact_location=place)
        except MlflowException:
            experiment = self.client.get_experiment_by_name(EXPERIMENT)
            if experiment is None:
                raise
        # the store of this working copy, which may have been moved
        if place and database.resolve().parent == Path.cwd() and experiment.artifact_location != place:
            mlflow_internals.move_artifacts(database, experiment.artifact_location, place)
        return experiment.experiment_id

    def send(self, record: str, over: bool) -> None:
        """Send all events of a record to its run. ``over``: no job of this record is at work any more."""
        from mlflow.entities import Metric, Param, RunTag

        events = _read_events(record)
        if not events:  # a job that was killed before its first line
            return
        start = next((event for event in events if event["event"] == "start"), None)
        run_id = self._find("record", record)
        if not run_id and start:
            run_id = self._create(record, start)
        if not run_id:
            return
        points: dict[tuple[str, int], Metric] = {}
        params, tags = {}, {}
        for event in events:
            milliseconds = int(event["time"] * 1000)
            if event["event"] == "start":  # several if the job was requeued
                params |= {key: str(value)[:6000] for key, value in _flatten(event["params"])}
            elif event["event"] == "metrics":
                for key, value in event["values"].items():  # the first one of a step that a requeued job repeats
                    points.setdefault((key, event["step"]), Metric(key, value, milliseconds, event["step"]))
            elif event["event"] == "tags":
                tags |= event["tags"]
            elif event["event"] == "artifact" and Path(event["path"]).is_file():
                self.client.log_artifact(run_id, event["path"], event["folder"] or None)
        self.client.log_batch(
            run_id, list(points.values()), [Param(*item) for item in params.items()],
            [RunTag(*item) for item in tags.items()],
        )  # fmt: skip
        status = next((event["status"] for event in reversed(events) if event["event"] == "end"), "KILLED")
        if over:
            self.client.set_terminated(run_id, status, int(events[-1]["time"] * 1000))

    def _find(self, tag: str, value: str) -> str:
        runs = self.client.search_runs([self.experiment], f"tags.{tag} = '{value}'", max_results=1)
        return runs[0].info.run_id if runs else ""

    def _create(self, record: str, start: Mapping[str, Any]) -> str:
        tags = {**start["tags"], "record": record, "mlflow.runName": start["name"], "host": start["host"]}
        if start["build"]:
            tags["mlflow.parentRunId"] = self._find_parent(start["build"], start["time"])
        created = self.client.create_run(self.experiment, start_time=int(start["time"] * 1000), tags=tags)
        return created.info.run_id

    def _find_parent(self, build: str, start_time: float) -> str:
        """The run of the whole build. MLflow's page nests the runs of its jobs under it."""
        if build not in self.parents:
            run_id = self._find("build", build)
            if not run_id:
                tags = {"build": build, "mlflow.runName": f"build {build}"}
                run_id = self.client.create_run(self.experiment, int(start_time * 1000), tags).info.run_id
            self.client.set_terminated(run_id)
            self.parents[build] = run_id
        return self.parents[build]


def _read_events(record: str) -> list[dict[str, Any]]:
    """The events of a record, of all processes and in order of time."""
    events = []
    for path in sorted(RECORDS.glob(f"{record}*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:  # a full disk, a crashed node or a killed job can cut a line
                logger.warning("%s has a damaged line, which is left out: %r", path, line[:80])
    return sorted(events, key=lambda event: event["time"])


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _is_refusal(error: Exception) -> bool:
    """Whether the store rejected this record (MLflow's error code) or a file of it (HTTP status)."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return getattr(error, "error_code", None) in _REFUSALS or status in (400, 404, 413)
