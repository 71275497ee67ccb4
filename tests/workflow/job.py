"""One job of `test_runs`: ``python job.py KIND NUMBER [RUN FIRST]``. It records as workflow/scripts do."""

import os
import signal
import socket
import subprocess
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
PUBLISHERS = 4
SAVED = 9  # a training that is killed at step 15 continues from this step


def points(run: tracking.Run, number: int, steps_: range) -> None:
    for step in steps_:
        run.log(step, {"loss": number + step, "identity/cosine": -step})
        time.sleep(0.05)


def live(run: tracking.Run, number: int, steps_: range) -> None:
    """Record the points and publish when the lock is free. In the middle, wait until PUBLISHERS jobs have published."""
    tracking._LIVE_SECONDS = run._due = 0.0
    run._publish = publishing.publish
    real = publishing._Publisher.publish_all

    def publish_all(*arguments):
        touched = real(*arguments)
        Path(f"published.{run.id}").touch()
        return touched

    publishing._Publisher.publish_all = publish_all
    half = len(steps_) // 2
    points(run, number, steps_[:half])
    until = time.monotonic() + 200
    while len(list(Path().glob("published.*"))) < PUBLISHERS and time.monotonic() < until:
        run._publish_live()
        time.sleep(0.2)
    points(run, number, steps_[half:])


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_self_publishing(run: tracking.Run) -> None:
    """kill -9 after some new events were sent and before the publisher has written that they were."""
    real = publishing._Publisher._send

    def send(*arguments):
        real(*arguments)
        kill_self()

    publishing._Publisher._send = send
    for word in range(1000):  # another publisher may be faster, so that nothing is left to send
        run.tag({"word": str(word)})
        publishing.publish()


def train(run: tracking.Run, number: int, first: int) -> None:
    """The job that submitit runs, see `masquerade.pipeline.launch`. It continues the run of the waiting process."""
    live(run, number, range(first, 15 if first == 0 else POINTS))
    if first == 0:
        kill_self()


def requeued(run: tracking.Run, number: int) -> None:
    for first in (0, SAVED):
        subprocess.run([sys.executable, __file__, "trains", str(number), run.id, str(first)], check=first > 0)


def work(kind: str, number: int, run: tracking.Run) -> None:
    Path(f"output{number}").write_text(kind)
    run.picture("sample", np.full((8, 8, 3), number, np.uint8))
    if kind == "requeued":
        requeued(run, number)
        return
    record = live if kind in ("finishes", "fails") else points
    record(run, number, range(POINTS))
    if kind == "fails":
        raise MasqueradeError(f"job {number} is to fail")
    if kind in ("is killed", "dies with its node"):
        kill_self()
    if kind == "is killed publishing":
        kill_self_publishing(run)


def main(kind: str, number: int) -> None:
    if kind == "dies with its node":
        socket.gethostname = lambda: "node7"
    given = Namespace(
        params=Slice({"methods.toy": {"rate": 0.1, "steps": POINTS}, "seed": number}),
        code=None,
        threads=1,
        inputs=[Path("faces")],
        outputs=[Path(f"output{number}")],
    )
    while not Path("go").exists():
        time.sleep(0.01)
    program.main(f"job {number} {kind}", given, lambda run: work(kind, number, run))


if __name__ == "__main__":
    if sys.argv[1] == "trains":
        train(tracking.Run(sys.argv[3]), int(sys.argv[2]), int(sys.argv[4]))
    else:
        main(sys.argv[1], int(sys.argv[2]))
