"""Every job is an MLflow run. Jobs only append to a small file each; one publisher writes them to the store.

Importing MLflow costs a process seconds, and many processes that write one fresh SQLite file lose runs. So a job
records what happened in ``.masquerade/runs/<id>.jsonl``, and `publish` (called by the Snakefile when a build ends, and
by a long training now and then) carries over whatever is new, under a lock. A record without an end whose process
is gone becomes a KILLED run. The pipeline never reads MLflow back; only people do, and `find` for them.
"""

import json
import logging
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

logger = logging.getLogger(__name__)

RECORDS = Path(".masquerade/runs")
BUILD = "MASQUERADE_BUILD"
_LIVE_SECONDS = 20.0


class Run:
    """The record of one job. Cheap to write: a line of JSON an event, appended and flushed."""

    def __init__(self, identifier: str | None = None):
        RECORDS.mkdir(parents=True, exist_ok=True)
        self.id = identifier or uuid.uuid4().hex
        self._path = RECORDS / f"{self.id}.jsonl"
        self._published = time.monotonic()

    def start(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        self._append(
            event="start", name=name, params=params, tags=tags, build=os.environ.get(BUILD, ""),
            pid=os.getpid(), host=socket.gethostname(),
        )  # fmt: skip

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at a step; a curve in MLflow. Published while the job runs."""
        self._append(event="metrics", step=step, values={key: float(value) for key, value in values.items()})
        if time.monotonic() - self._published > _LIVE_SECONDS:
            self._publish_live()

    def _publish_live(self) -> None:
        """A store that cannot be reached now must not end a training: the record stays and is published later."""
        try:
            publish(wait=False)
        except Exception as error:  # noqa: BLE001 - whatever a store or its network may raise
            logger.warning("not published to %s now (%s); it will be when the build ends", store(), error)
        self._published = time.monotonic()

    def picture(self, name: str, pixels: np.ndarray) -> None:
        """A sample picture, uint8 (H, W, 3), an artifact ``pictures/<name>.png``."""
        from PIL import Image

        folder = RECORDS / self.id
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.png"
        Image.fromarray(pixels).save(file)
        self._append(event="artifact", path=str(file), folder="pictures")

    def artifact(self, path: Path) -> None:
        """A file that the job wrote, copied into the run."""
        self._append(event="artifact", path=str(path), folder="")

    def tag(self, tags: Mapping[str, str]) -> None:
        self._append(event="tags", tags=dict(tags))

    def end(self, status: str) -> None:
        self._append(event="end", status=status)

    def _append(self, **event: Any) -> None:
        line = json.dumps({"time": time.time(), **event})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


@contextmanager
def run(name: str, params: Mapping[str, Any], tags: Mapping[str, str], identifier: str | None = None) -> Iterator[Run]:
    """Record the block as one run; it ends FINISHED, or FAILED with the error's text as a tag."""
    record = Run(identifier)
    record.start(name, params, tags)
    try:
        yield record
    except BaseException as error:
        record.tag({"error": f"{type(error).__name__}: {error}"[:5000]})
        record.end("FAILED")
        raise
    record.end("FINISHED")


def store() -> str:
    """Where runs go: MLFLOW_TRACKING_URI, or a SQLite file in the repository."""
    return os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"


def publish(experiment: str = "masquerade", wait: bool = True) -> int:
    """Carry every new event to the store; returns how many runs were touched. One publisher at a time.

    ``wait=False`` gives up at once where another publisher is at work.
    """
    from filelock import FileLock, Timeout

    if not any(RECORDS.glob("*.jsonl")):
        return 0
    try:
        with FileLock(RECORDS / ".lock", timeout=-1 if wait else 0):
            return _Publisher(experiment).publish_all()
    except Timeout:
        return 0


def find(records: Iterable[str]) -> dict[str, str]:
    """The MLflow run of each of these records (`Run.id`) that the store has; {} where no store can be asked."""
    file = store().removeprefix("sqlite:///")
    if file != store() and not Path(file).is_file():
        return {}  # asking would make it
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from mlflow.tracking.client import MlflowClient

    client = MlflowClient(store())
    try:
        places = [place.experiment_id for place in client.search_experiments()]
        found = {name: client.search_runs(places, f"tags.record = '{name}'", max_results=1) for name in set(records)}
    except Exception as error:  # noqa: BLE001 - whatever a store or its network may raise
        logger.warning("the MLflow store cannot be asked (%s)", type(error).__name__)
        return {}
    return {record: runs[0].info.run_id for record, runs in found.items() if runs}


class _Publisher:
    def __init__(self, experiment: str):
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow.tracking.client import MlflowClient

        self.client = MlflowClient(store())
        found = self.client.get_experiment_by_name(experiment)
        local = store().startswith("sqlite:")
        place = {"artifact_location": Path("mlruns").resolve().as_uri()} if local else {}
        self.experiment = found.experiment_id if found else self.client.create_experiment(experiment, **place)
        self.parents: dict[str, str] = {}

    def publish_all(self) -> int:
        return sum(
            self._publish(path) for path in sorted(RECORDS.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        )

    def _publish(self, path: Path) -> bool:
        progress = path.with_suffix(".json")
        state = json.loads(progress.read_text()) if progress.is_file() else {"offset": 0, "run": ""}
        with path.open("rb") as file:
            file.seek(state["offset"])
            lines = [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        events = [json.loads(line) for line in lines]
        state["offset"] += sum(map(len, lines))
        start = next((event for event in events if event["event"] == "start"), state.get("start"))
        if start is None:
            return False
        state["start"] = {key: start[key] for key in ("pid", "host", "event")}
        if not events and _alive(state["start"]):
            return False
        if not state["run"]:
            state["run"] = self._create(start, path.stem)
        ended = self._send(state["run"], events)
        if not ended and not _alive(state["start"]):
            self.client.set_terminated(state["run"], "KILLED")
            ended = True
        if ended:
            for leftover in (path, progress):
                leftover.unlink(missing_ok=True)
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)
        else:
            progress.write_text(json.dumps(state))
        return True

    def _create(self, start: Mapping[str, Any], record: str) -> str:
        tags = {**start["tags"], "mlflow.runName": start["name"], "host": start["host"], "record": record}
        if start["build"]:
            tags["mlflow.parentRunId"] = self._parent(start["build"], start["time"])
        created = self.client.create_run(self.experiment, start_time=int(start["time"] * 1000), tags=tags)
        return created.info.run_id

    def _parent(self, build: str, began: float) -> str:
        """The run of the whole build, under which MLflow's page nests its jobs."""
        if build not in self.parents:
            known = self.client.search_runs([self.experiment], f"tags.build = '{build}'", max_results=1)
            if known:
                self.parents[build] = known[0].info.run_id
            else:
                tags = {"build": build, "mlflow.runName": f"build {build}"}
                made = self.client.create_run(self.experiment, start_time=int(began * 1000), tags=tags)
                self.client.set_terminated(made.info.run_id)
                self.parents[build] = made.info.run_id
        return self.parents[build]

    def _send(self, run_id: str, events: list[dict]) -> bool:
        from mlflow.entities import Metric, Param, RunTag

        metrics, params, tags, end = [], [], [], None
        for event in events:
            stamp = int(event["time"] * 1000)
            if event["event"] == "start":
                params += [Param(key, str(value)[:6000]) for key, value in _flat(event["params"])]
            elif event["event"] == "metrics":
                metrics += [Metric(key, value, stamp, event["step"]) for key, value in event["values"].items()]
            elif event["event"] == "tags":
                tags += [RunTag(key, value) for key, value in event["tags"].items()]
            elif event["event"] == "artifact" and Path(event["path"]).is_file():
                self.client.log_artifact(run_id, event["path"], event["folder"] or None)
            elif event["event"] == "end":
                end = (event["status"], stamp)
        for first in range(0, max(len(metrics), 1), 900):  # the store takes at most 1000 metrics, 100 params at a time
            self.client.log_batch(run_id, metrics[first : first + 900])
        for first in range(0, len(params), 90):
            self.client.log_batch(run_id, params=params[first : first + 90])
        self.client.log_batch(run_id, tags=tags)
        if end:
            self.client.set_terminated(run_id, *end)
        return end is not None


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _alive(start: Mapping[str, Any]) -> bool:
    """Whether the job's process is still there; one on another machine is believed to be."""
    return start["host"] != socket.gethostname() or Path(f"/proc/{start['pid']}").exists()
