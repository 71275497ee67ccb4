"""Every job is an MLflow run. A job only appends to a small file; `masquerade.publishing` writes these to the store.

Importing MLflow costs a process seconds, and many processes that write one fresh SQLite file lose runs. So a job
records what happened in ``.masquerade/runs/<run>.<writer>.jsonl``. Each process has a file of its own, also where
several go on with one run: two nodes that append to one file of a network file system lose lines. The pipeline never
reads MLflow back; only people do, and `publishing.find` for them.
"""

import json
import logging
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from masquerade import place

logger = logging.getLogger(__name__)

RECORDS = Path(".masquerade/runs")
BUILD = "MASQUERADE_BUILD"
RUN = "MASQUERADE_RUN"  # the run that a requeued job goes on with
LOG = "MASQUERADE_LOG"  # the file that a submitted job writes to; kept with its run
_LIVE_SECONDS = 20.0


class Run:
    """The record of one job. Cheap to write: a line of JSON an event, appended and flushed.

    With an ``identifier`` this process goes on with a run that another one may have started. Of several processes
    that train together the first writes; the others' records go nowhere.
    """

    def __init__(self, identifier: str | None = None):
        RECORDS.mkdir(parents=True, exist_ok=True)
        self.id = identifier or uuid.uuid4().hex
        self._path = RECORDS / f"{self.id}.{uuid.uuid4().hex[:12]}.jsonl"
        self._due = time.monotonic() + _LIVE_SECONDS
        self._again = identifier is not None
        self._kept = place.here().rank == 0
        if identifier and _slurm():
            self.tag(_slurm())

    def start(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        self._append(
            event="start", name=name, params=params, tags={**tags, **_slurm()}, build=os.environ.get(BUILD, ""),
            pid=os.getpid(), born=born(os.getpid()), host=socket.gethostname(),
            again=self._again,
        )  # fmt: skip

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at a step; a curve in MLflow, where a step that repeats counts once. Published while the job runs."""
        self._append(event="metrics", step=step, values={key: float(value) for key, value in values.items()})
        if time.monotonic() >= self._due:
            self._publish_live()

    def _publish_live(self) -> None:
        """A store that cannot be reached must not end a training, nor take more than a tenth of its time."""
        from masquerade import publishing

        began = time.monotonic()
        try:
            publishing.publish(wait=False)
        except Exception as error:  # noqa: BLE001 - whatever a store or its network may raise
            logger.warning("not published to %s now (%s); it will be when the build ends", shown(), public(str(error)))
        self._due = time.monotonic() + max(_LIVE_SECONDS, 10 * (time.monotonic() - began))

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

    def requeued(self) -> None:
        """The job waits for its turn, to go on with this run in another process."""
        self._append(event="requeued")

    def end(self, status: str) -> None:
        self._append(event="end", status=status)

    def _append(self, **event: Any) -> None:
        if not self._kept:
            return
        line = json.dumps({"time": time.time(), **event})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


@contextmanager
def run(name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> Iterator[Run]:
    """Record the block as one run; it ends FINISHED, or FAILED with the error's text as a tag."""
    record = Run(os.environ.get(RUN))
    record.start(name, params, tags)
    try:
        yield record
    except SystemExit:  # submitit has requeued the job, which goes on with this run
        record.requeued()
        raise
    except BaseException as error:
        record.tag({"error": f"{type(error).__name__}: {error}"[:5000]})
        _end(record, "FAILED")
        raise
    _end(record, "FINISHED")


def _end(record: Run, status: str) -> None:
    if LOG in os.environ:
        record.artifact(Path(os.environ[LOG]))
    record.end(status)


def store() -> str:
    """Where runs go: MLFLOW_TRACKING_URI, or a SQLite file in the repository."""
    return os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"


def shown() -> str:
    """The `store` as it may be shown."""
    return public(store())


def public(text: str) -> str:
    """The text without the user and password of the addresses in it."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)


def _slurm() -> dict[str, str]:
    job = os.environ.get("SLURM_JOB_ID")
    return {"slurm.job_id": job} if job else {}


def born(pid: int) -> str | None:
    """When a process of this host began, in ticks since boot (proc(5)): a number that is given again is told apart."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None
