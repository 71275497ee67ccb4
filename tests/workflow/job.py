"""One job of `test_runs`: ``python job.py KIND NUMBER``. It records as workflow/scripts do."""

import multiprocessing
import os
import signal
import sys
import time
from argparse import Namespace
from pathlib import Path

import numpy as np

from masquerade.core.errors import MasqueradeError
from masquerade.lineage import publishing, tracking
from masquerade.params.slices import Slice
from masquerade.pipeline import program

POINTS = 24
SAVED = 9  # a training that is killed at step 15 continues from this step


def points(run: tracking.Run, number: int, steps_: range) -> None:
    for step in steps_:
        run.log(step, {"loss": number + step, "identity/cosine": -step})
        time.sleep(0.05)


def live(run: tracking.Run, number: int, steps_: range) -> None:
    """Record the points, and publish after each of them if no other job publishes."""
    tracking._LIVE_SECONDS = run._due = 0.0
    run._publish = publishing.publish_live
    points(run, number, steps_)


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train(run_id: str, number: int, first: int) -> None:
    """The job that submitit runs, see `masquerade.pipeline.launch`. It continues the run of the waiting process."""
    live(tracking.Run(run_id), number, range(first, 15 if first == 0 else POINTS))
    if first == 0:
        kill_self()


def requeue(run: tracking.Run, number: int) -> None:
    for first, status in ((0, -signal.SIGKILL), (SAVED, 0)):
        process = multiprocessing.get_context("fork").Process(target=train, args=(run.id, number, first))
        process.start()
        process.join()
        assert process.exitcode == status


def work(kind: str, number: int, run: tracking.Run) -> None:
    Path(f"output{number}").write_text(kind)
    run.log_image("sample", np.full((8, 8, 3), number, np.uint8))
    if kind == "requeued":
        requeue(run, number)
        return
    record = live if kind in ("finishes", "fails") else points
    record(run, number, range(POINTS))
    if kind == "fails":
        raise MasqueradeError(f"job {number} is to fail")
    if kind == "is killed":
        kill_self()


def main(kind: str, number: int) -> None:
    arguments = Namespace(
        params=Slice({"methods.toy": {"rate": 0.1, "steps": POINTS}, "seed": number}),
        code=None,
        threads=1,
        inputs=[Path("faces")],
        outputs=[Path(f"output{number}")],
    )
    while not Path("go").exists():
        time.sleep(0.01)
    program.main(f"job {number} {kind}", arguments, lambda run: work(kind, number, run))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
