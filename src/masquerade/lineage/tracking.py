"""Records every job, for one MLflow run per job. A job appends to a small file; `lineage.publishing` fills the store.

The import of MLflow takes seconds, and many processes that write to one new SQLite file lose runs. So a job records its
events in ``.masquerade/runs/<record>.<writer>.jsonl``, one a line::

    {"time": 1.0, "event": "start", "name": "train fit", "params": {...}, "tags": {...}, "build": "...", "host": "n1"}
    {"time": 2.0, "event": "metrics", "step": 0, "values": {"loss": 1.0}}
    {"time": 3.0, "event": "end", "status": "FINISHED"}

Each process has its own file, even if several continue one run, because two nodes that append to one file of a network
file system lose lines. The pipeline does not read MLflow. Only people do, and `publishing.find_runs` for `masquerade
lineage show`.
"""

import json
import logging
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masquerade.core import process
from masquerade.lineage import mlflow_internals

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

RECORDS = Path(".masquerade/runs")
BUILD = "MASQUERADE_BUILD"
RUN = "MASQUERADE_RUN"  # the run that a requeued job continues
LOG = "MASQUERADE_LOG"  # the log file of a submitted job; it is kept with the run
_LIVE_SECONDS = 120.0
"""Importing MLflow takes a job 4 to 6 seconds."""


class Run:
    """The record of one job. Each event is one line of JSON, which is appended and flushed.

    If several processes train together, only the first one writes.
    """

    def __init__(
        self,
        identifier: str | None = None,
        publish_live: Callable[[str], object] | None = None,
        shows_faces: bool = True,
    ):
        """``identifier``: continue this run, which another process may have started. None: begin a new run.

        ``publish_live``: sends the record while a training runs (`publishing.publish_live`); None: only the end of the
        build does. ``shows_faces``: whether sample images are kept; those of private datasets are not
        (`params.sharing`).
        """
        RECORDS.mkdir(parents=True, exist_ok=True)
        self.id = identifier or uuid.uuid4().hex
        self._path = RECORDS / f"{self.id}.{uuid.uuid4().hex[:12]}.jsonl"
        self._publish = publish_live
        self._due = time.monotonic() + _LIVE_SECONDS
        self._is_first = process.find_current().rank == 0
        self._shows_faces = shows_faces
        if identifier and _name_slurm_job():
            self.tag(_name_slurm_job())

    def start(self, name: str, params: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Record the start of the job in this process."""
        self._append(
            event="start", name=name, params=params, tags={**tags, **_name_slurm_job()},
            build=os.environ.get(BUILD, ""), host=socket.gethostname(),
        )  # fmt: skip

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record values at a step of a training: one curve each in MLflow, where a repeated step counts once.

        Publishes the run if the last time was at least `_LIVE_SECONDS` ago.
        """
        self._append(event="metrics", step=step, values={key: float(value) for key, value in values.items()})
        if self._publish and self._is_first and time.monotonic() >= self._due:
            self._publish_live(self._publish)

    def _publish_live(self, publish: Callable[[str], object]) -> None:
        """Publish. An unreachable store does not end a training, and takes at most a tenth of its time."""
        began = time.monotonic()
        try:
            publish(self.id)
        except Exception as error:  # noqa: BLE001 - a store and its network can raise anything
            place, reason = hide_credentials(find_store()), explain_failure(error)
            logger.warning("not published to %s now (%s); it will be when the build ends", place, reason)
        self._due = time.monotonic() + max(_LIVE_SECONDS, 10 * (time.monotonic() - began))

    def log_image(self, name: str, pixels: "np.ndarray") -> None:
        """Keep a sample image, uint8 (H, W, 3), as the artifact ``pictures/<name>.png``, if the run shows faces."""
        if not self._shows_faces:
            return
        from PIL import Image

        folder = RECORDS / self.id
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.png"
        Image.fromarray(pixels).save(file)
        self._append(event="artifact", path=str(file), folder="pictures")

    def log_artifact(self, path: Path) -> None:
        """Keep a copy of a file that the job wrote."""
        self._append(event="artifact", path=str(path), folder="")

    def tag(self, tags: Mapping[str, str]) -> None:
        """Add tags to the run."""
        self._append(event="tags", tags=dict(tags))

    def end(self, status: str) -> None:
        """Record the end of the job with MLflow's ``status``, such as FINISHED or FAILED."""
        self._append(event="end", status=status)

    def _append(self, **event: Any) -> None:
        if not self._is_first:
            return
        line = json.dumps({"time": time.time(), **event})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


@contextmanager
def run(
    name: str,
    params: Mapping[str, Any],
    tags: Mapping[str, str],
    publish_live: Callable[[str], object] | None = None,
    shows_faces: bool = True,
) -> Iterator[Run]:
    """Record the block as one run. It ends FINISHED, or FAILED with the text of the error as a tag.

    ``publish_live`` and ``shows_faces`` as in `Run`.
    """
    record = Run(os.environ.get(RUN), publish_live, shows_faces)
    record.start(name, params, tags)
    try:
        yield record
    except BaseException as error:
        if not process.find_requeue(error):  # else another process will continue this run
            record.tag({"error": f"{type(error).__name__}: {error}"[:5000]})
            _end(record, "FAILED")
        raise
    _end(record, "FINISHED")


def _end(record: Run, status: str) -> None:
    if LOG in os.environ:
        record.log_artifact(Path(os.environ[LOG]))
    record.end(status)


def find_store() -> str:
    """The address of the MLflow store: MLFLOW_TRACKING_URI, or a SQLite file in the repository."""
    return os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"


def hide_credentials(text: str) -> str:
    """The text without the user and password in its addresses."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)


def explain_failure(error: Exception) -> str:
    """Why the store could not be written to, without credentials, and what to do where that is known."""
    reason = hide_credentials(str(error))
    if mlflow_internals.REFUSED_HOST in reason:
        reason += ". The server does not allow this name: start it with `--allowed-hosts` (docs/cluster.md, MLflow)"
    return reason


def _name_slurm_job() -> dict[str, str]:
    job = os.environ.get("SLURM_JOB_ID")
    return {"slurm.job_id": job} if job else {}
