"""Writes the records of jobs (see `lineage.tracking`) to MLflow. One publisher works at a time, on all new events.

On a cluster the records lie on a network file system, and jobs and publishers can be killed at any time:

- A record is deleted when the store has all of it. Events may be sent twice: MLflow keeps a repeated point, parameter
  or tag once, and a run whose creation had begun is found by its tag ``record``.
- A process on another node cannot be seen. It counts as alive until the build is over. Then a record without an end
  becomes a KILLED run. If the job is still alive, its later events and its end go to the same run.
- The lock is `flock`. It ends with its process, also after kill -9. The file ``.lock`` stays and has no meaning. The
  lock holds for all nodes on NFS, GPFS, CephFS and Lustre (after a crash of its node, until the server drops the
  lease). It holds for one node on Lustre with ``localflock`` and BeeGFS without global locks: use an MLflow server
  there, not SQLite. On a file system without `flock`, filelock uses the existence of the file as the lock. A kill on
  another node then leaves a stale file. Until a person deletes it, `publish` gives up after ten minutes.
"""

import json
import logging
import os
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.core import files
from masquerade.lineage import mlflow_internals
from masquerade.lineage.tracking import RECORDS, cause, public_store, start_ticks, store

if TYPE_CHECKING:
    from mlflow.tracking.client import MlflowClient

logger = logging.getLogger(__name__)

_LOCK_SECONDS = 600.0
_REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST", "INVALID_STATE")


def publish(experiment: str = "masquerade", wait: bool = True, over: bool = False) -> int:
    """Send every new event to the store. Returns the number of runs that were updated. One publisher works at a time.

    ``wait=False``: return 0 at once if another publisher is at work. ``over=True``: the build has ended. Snakemake
    runs one build at a time in a working copy, so no job of another host is at work then. Raises filelock.Timeout after
    ten minutes of waiting, and MLflow's error if the store cannot be reached. Nothing is lost then: the next call
    continues.
    """
    from filelock import FileLock, Timeout

    if not any(RECORDS.glob("*.jsonl")):
        return 0
    try:
        with FileLock(RECORDS / ".lock", timeout=_LOCK_SECONDS if wait else 0):
            return _Publisher(experiment).publish_all(over)
    except Timeout:
        if wait:
            raise
        return 0


def find(records: Iterable[str]) -> dict[str, str]:
    """Record (`Run.id`) -> its MLflow run, for the records that the store has. Returns {} if no store answers."""
    file = store().removeprefix("sqlite:///")
    if file != store() and not Path(file).is_file():
        return {}  # a query would create the store
    client = _client()
    try:
        experiments = [experiment.experiment_id for experiment in client.search_experiments()]
        matches = {
            record: client.search_runs(experiments, f"tags.record = '{record}'", max_results=1)
            for record in set(records)
        }
    except Exception as error:  # noqa: BLE001 - a store and its network can raise anything
        logger.warning("%s does not answer (%s)", public_store(), type(error).__name__)
        return {}
    return {record: runs[0].info.run_id for record, runs in matches.items() if runs}


def _client() -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # the runs of a lab are private
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # MLflow's own retry creates a run twice if an answer is lost
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # saves two lines and one request per run
    from mlflow.tracking.client import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return MlflowClient(store())


class _Publisher:
    def __init__(self, experiment: str):
        self.client = _client()
        self.experiment = self._experiment(experiment)
        self.parents: dict[str, str] = {}

    def _experiment(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        experiment = self.client.get_experiment_by_name(name)
        database = Path(store().removeprefix("sqlite:///"))
        place = Path("mlruns").resolve().as_uri() if store().startswith("sqlite:") else None
        own = database.resolve().parent == Path.cwd()  # the store of this working copy, which may have been moved
        if experiment and place and own and experiment.artifact_location != place:
            mlflow_internals.move_artifacts(database, experiment.artifact_location, place)
        if experiment is None:
            try:
                return self.client.create_experiment(name, artifact_location=place)
            except MlflowException:  # another working copy created it in the meantime
                experiment = self.client.get_experiment_by_name(name)
                if experiment is None:
                    raise
        return experiment.experiment_id

    def publish_all(self, over: bool) -> int:
        """Publish every record, and return how many had new events.

        A record that the store refuses stays on disk and does not delay the others.
        """
        updated = 0
        files = sorted(RECORDS.glob("[!.]*.json*"), key=lambda path: path.stat().st_mtime)
        for record in dict.fromkeys(path.name.split(".")[0] for path in files):
            for pause in (1, 5, None):
                try:
                    updated += self._publish(record, over)
                    break
                except Exception as error:
                    if _refused(error):
                        reason = cause(error)
                        logger.warning("%s refuses %s/%s: %s", public_store(), RECORDS, record, reason)
                        break
                    if pause is None:
                        raise
                    time.sleep(pause)
        return updated

    def _publish(self, record: str, over: bool) -> bool:
        progress = RECORDS / f"{record}.json"
        begun = json.loads(progress.read_text()) if progress.is_file() else {}
        if begun.get("store") != public_store():  # another store: send everything that is still on disk
            begun = {}
        state = {"run": "", "start": None, "seen": 0.0, "last": {}, "offsets": {}, "ended": False}
        state |= {"store": public_store()} | begun
        events, sizes = _new(record, state["offsets"])
        start = state["start"] = _started(events, state["start"])
        dead = start is not None and not state["ended"] and not _alive(start, over)
        if not (events or dead or state["ended"]):
            return False
        if not state["run"]:
            known = begun or start is None or start.get("again")
            state["run"] = self._find("record", record) if known else ""
        if not state["run"]:
            if start is None:
                return False
            _write(progress, {"store": public_store()})  # from now on, the next publisher looks the run up
            state["run"] = self._create(record, start)
        state["seen"] = max((event["time"] for event in events), default=state["seen"])
        end = self._send(state["run"], events, state["last"]) or ("KILLED" if dead else None)
        if end:
            self.client.set_terminated(state["run"], end, int(state["seen"] * 1000))
        state["ended"] = bool(end or state["ended"] or start is None)  # no start: these events came after the end
        _write(progress, state)
        if state["ended"]:
            for path, size in sizes.items():
                if path.stat().st_size == size:  # else a job has just written more
                    path.unlink()
            if not any(path.exists() for path in sizes):
                shutil.rmtree(RECORDS / record, ignore_errors=True)
                progress.unlink()
        return True

    def _find(self, tag: str, value: str) -> str:
        runs = self.client.search_runs([self.experiment], f"tags.{tag} = '{value}'", max_results=1)
        return runs[0].info.run_id if runs else ""

    def _create(self, record: str, start: Mapping[str, Any]) -> str:
        tags = {**start["tags"], "record": record, "mlflow.runName": start["name"], "host": start["host"]}
        if start["build"]:
            tags["mlflow.parentRunId"] = self._parent(start["build"], start["time"])
        created = self.client.create_run(self.experiment, start_time=int(start["time"] * 1000), tags=tags)
        return created.info.run_id

    def _parent(self, build: str, began: float) -> str:
        """The run of the whole build. MLflow's page nests the runs of its jobs under it."""
        if build not in self.parents:
            run_id = self._find("build", build)
            if not run_id:
                tags = {"build": build, "mlflow.runName": f"build {build}"}
                run_id = self.client.create_run(self.experiment, int(began * 1000), tags).info.run_id
            self.client.set_terminated(run_id)
            self.parents[build] = run_id
        return self.parents[build]

    def _send(self, run_id: str, events: list[dict], last: dict[str, int]) -> str | None:
        """Send the events. Returns the status in the end event, or None. ``last``: curve -> its last step so far."""
        from mlflow.entities import Metric, Param, RunTag

        metrics, params, tags, status = [], {}, {}, None
        for event in events:
            if event["event"] == "start":
                params |= {key: str(value)[:6000] for key, value in _flat(event["params"])}  # several if requeued
            elif event["event"] == "metrics":
                metrics += [
                    Metric(key, value, int(event["time"] * 1000), event["step"])
                    for key, value in event["values"].items()
                ]
            elif event["event"] == "tags":
                tags |= event["tags"]
            elif event["event"] == "artifact" and Path(event["path"]).is_file():
                self.client.log_artifact(run_id, event["path"], event["folder"] or None)
            elif event["event"] == "end":
                status = event["status"]
        points = []
        for point in sorted(metrics, key=lambda metric: metric.step):  # a requeued job repeats steps
            if point.step > last.get(point.key, -1):
                last[point.key] = point.step
                points.append(point)
        all_params = [Param(key, value) for key, value in params.items()]
        self.client.log_batch(run_id, points, all_params, [RunTag(key, value) for key, value in tags.items()])
        return status


def _new(record: str, offsets: dict[str, int]) -> tuple[list[dict], dict[Path, int]]:
    """(the events of a record since ``offsets``, of all processes and in order of time; the length of each file)."""
    events, sizes = [], {}
    for path in sorted(RECORDS.glob(f"{record}*.jsonl")):
        offset = offsets.get(path.name, 0)
        with path.open("rb") as file:
            file.seek(offset)
            text = file.read()
        sizes[path] = offset + len(text)
        whole = text[: text.rfind(b"\n") + 1]  # the rest of an incomplete line is not written yet
        offsets[path.name] = offset + len(whole)
        for line in whole.splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:  # a full disk or a crashed node can cut a line
                logger.warning("%s has a damaged line, which is left out: %r", path, line[:80])
    return sorted(events, key=lambda event: event["time"]), sizes


def _started(events: list[dict], start: dict | None) -> dict | None:
    """The last start event of a record, ``start`` if none is new. It has no host after the job was requeued."""
    for event in events:
        if event["event"] == "start":
            start = event
        elif event["event"] == "requeued":
            start = {**(start or {}), "host": ""}
    return start


def _write(path: Path, tree: Any) -> None:
    files.write_text(path, json.dumps(tree))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _refused(error: Exception) -> bool:
    """Whether the store rejected this record (MLflow's error code) or a file of it (HTTP status)."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return getattr(error, "error_code", None) in _REFUSALS or status in (400, 404, 413)


def _alive(start: Mapping[str, Any], over: bool) -> bool:
    """Whether the job's process is alive. If it cannot be seen, it counts as alive until the build is over."""
    visible = start["host"] == socket.gethostname() and start.get("born")
    return start_ticks(start["pid"]) == start["born"] if visible else not over
