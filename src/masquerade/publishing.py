"""What jobs have recorded (see `masquerade.tracking`) becomes MLflow runs: by one publisher at a time, all that is new.

On a cluster the records lie on a network file system, and whoever writes or publishes them may die anywhere:

- A record is deleted once the store holds all of it. What is sent twice is there once: MLflow keeps a point, a
  parameter or a tag that repeats as one, and a run whose creation had begun is looked up by its tag ``record``.
- Nobody sees whether a process of another node lives. It is believed to, until the build is over: then a record
  without an end is a KILLED run. What a job that lived on still records goes to that same run, its end too.
- The lock is `flock`: it ends with its process, also by kill -9; ``.lock`` itself stays and means nothing. NFS, GPFS,
  CephFS and Lustre hold it for all nodes (that of a crashed node until the server drops its lease). Where a file
  system keeps it to one node (Lustre with ``localflock``, BeeGFS without global locks), log to a server, not to
  SQLite. Where there is none, filelock takes a file that exists for the lock: left by a process that was killed on
  another node, it is stale until somebody deletes it, and `publish` gives up after ten minutes.
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

from masquerade.tracking import RECORDS, born, public, shown, store

if TYPE_CHECKING:
    from mlflow.tracking.client import MlflowClient

logger = logging.getLogger(__name__)

_LOCK_SECONDS = 600.0
_REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST", "RESOURCE_DOES_NOT_EXIST", "INVALID_STATE")


def publish(experiment: str = "masquerade", wait: bool = True, over: bool = False) -> int:
    """Carry every new event to the store; returns how many runs were touched. One publisher at a time.

    ``wait=False`` gives up at once where another publisher is at work. ``over=True`` says that the build has ended:
    Snakemake lets one build at a time run in a working copy, so no job of another host is at work then. Raises
    filelock.Timeout after ten minutes of waiting, and what MLflow raises where the store cannot be reached; nothing
    is lost then, the next call goes on.
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
    """The MLflow run of each of these records (`Run.id`) that the store has; {} where no store can be asked."""
    file = store().removeprefix("sqlite:///")
    if file != store() and not Path(file).is_file():
        return {}  # asking would make it
    client = _client()
    try:
        places = [place.experiment_id for place in client.search_experiments()]
        found = {name: client.search_runs(places, f"tags.record = '{name}'", max_results=1) for name in set(records)}
    except Exception as error:  # noqa: BLE001 - whatever a store or its network may raise
        logger.warning("%s cannot be asked (%s)", shown(), type(error).__name__)
        return {}
    return {record: runs[0].info.run_id for record, runs in found.items() if runs}


def _client() -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # what a lab runs is nobody else's affair
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # its own would create a run twice if an answer is lost
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # two lines and one request a run
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

        found = self.client.get_experiment_by_name(name)
        if found is None:
            local = store().startswith("sqlite:")
            place = {"artifact_location": Path("mlruns").resolve().as_uri()} if local else {}
            try:
                return self.client.create_experiment(name, **place)
            except MlflowException:  # another working copy was quicker
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        return found.experiment_id

    def publish_all(self, over: bool) -> int:
        """A record that the store refuses stays, and holds up no other."""
        touched = 0
        files = sorted(RECORDS.glob("[!.]*.json*"), key=lambda path: path.stat().st_mtime)
        for record in dict.fromkeys(path.name.split(".")[0] for path in files):
            for pause in (1, 5, None):
                try:
                    touched += self._publish(record, over)
                    break
                except Exception as error:
                    if _refused(error):
                        logger.warning("%s refuses %s/%s: %s", shown(), RECORDS, record, public(str(error)))
                        break
                    if pause is None:
                        raise
                    time.sleep(pause)
        return touched

    def _publish(self, record: str, over: bool) -> bool:
        progress = RECORDS / f"{record}.json"
        begun = json.loads(progress.read_text()) if progress.is_file() else {}
        if begun.get("store") != shown():  # all that is still here goes to the new store
            begun = {}
        state = {"store": shown(), "run": "", "start": None, "seen": 0.0, "last": {}, "offsets": {}, "ended": False}
        state |= begun
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
            _write(progress, {"store": shown()})  # from here on, whoever comes next looks the run up
            state["run"] = self._create(record, start)
        state["seen"] = max((event["time"] for event in events), default=state["seen"])
        end = self._send(state["run"], events, state["last"]) or ("KILLED" if dead else None)
        if end:
            self.client.set_terminated(state["run"], end, int(state["seen"] * 1000))
        state["ended"] = bool(end or state["ended"] or start is None)  # without a start: what came after the end
        _write(progress, state)
        if state["ended"]:
            for path, size in sizes.items():
                if path.stat().st_size == size:  # else somebody has just gone on writing
                    path.unlink()
            if not any(path.exists() for path in sizes):
                shutil.rmtree(RECORDS / record, ignore_errors=True)
                progress.unlink()
        return True

    def _find(self, tag: str, value: str) -> str:
        found = self.client.search_runs([self.experiment], f"tags.{tag} = '{value}'", max_results=1)
        return found[0].info.run_id if found else ""

    def _create(self, record: str, start: Mapping[str, Any]) -> str:
        tags = {**start["tags"], "record": record, "mlflow.runName": start["name"], "host": start["host"]}
        if start["build"]:
            tags["mlflow.parentRunId"] = self._parent(start["build"], start["time"])
        created = self.client.create_run(self.experiment, start_time=int(start["time"] * 1000), tags=tags)
        return created.info.run_id

    def _parent(self, build: str, began: float) -> str:
        """The run of the whole build, under which MLflow's page nests its jobs."""
        if build not in self.parents:
            run_id = self._find("build", build)
            if not run_id:
                tags = {"build": build, "mlflow.runName": f"build {build}"}
                run_id = self.client.create_run(self.experiment, int(began * 1000), tags).info.run_id
            self.client.set_terminated(run_id)
            self.parents[build] = run_id
        return self.parents[build]

    def _send(self, run_id: str, events: list[dict], last: dict[str, int]) -> str | None:
        """Send the events; returns the status that they end with. ``last``: the last step of each curve so far."""
        from mlflow.entities import Metric, Param, RunTag

        metrics, params, tags, status = [], {}, {}, None
        for event in events:
            if event["event"] == "start":
                params |= {key: str(value)[:6000] for key, value in _flat(event["params"])}  # one may start again
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
        told = [Param(key, value) for key, value in params.items()], [RunTag(key, value) for key, value in tags.items()]
        self.client.log_batch(run_id, points, *told)
        return status


def _new(record: str, offsets: dict[str, int]) -> tuple[list[dict], dict[Path, int]]:
    """What every process has written to a record since ``offsets``, in order of time, and how long each file is."""
    events, sizes = [], {}
    for path in sorted(RECORDS.glob(f"{record}*.jsonl")):
        offset = offsets.get(path.name, 0)
        with path.open("rb") as file:
            file.seek(offset)
            text = file.read()
        sizes[path] = offset + len(text)
        whole = text[: text.rfind(b"\n") + 1]  # half a line waits for its other half
        offsets[path.name] = offset + len(whole)
        for line in whole.splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:  # a full disk or a crashed node can cut a line
                logger.warning("%s has a damaged line, left out: %r", path, line[:80])
    return sorted(events, key=lambda event: event["time"]), sizes


def _started(events: list[dict], start: dict | None) -> dict | None:
    """Which process is at work on a record: the one that started last, until that one was requeued."""
    for event in events:
        if event["event"] == "start":
            start = event
        elif event["event"] == "requeued":
            start = {**start, "host": ""}
    return start


def _write(path: Path, tree: Any) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(tree), encoding="utf-8")
    temporary.replace(path)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _refused(error: Exception) -> bool:
    """Whether the store answered, and said no to this very record or (an HTTP status) to a file of it."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return getattr(error, "error_code", None) in _REFUSALS or status in (400, 404, 413)


def _alive(start: Mapping[str, Any], over: bool) -> bool:
    """Whether the job's process is still there; where that cannot be seen, it is believed until the build is over."""
    seen = start["host"] == socket.gethostname() and start.get("born")
    return born(start["pid"]) == start["born"] if seen else not over
