"""Jobs that share a submission: one request to SLURM, and each job ends as if it were alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from masquerade.pipeline import launch, shared_submission

SUBMISSION = {
    "name": "inference toy", "minutes": 5, "cpus": 1, "memory_gb": 1, "tasks": 1, "gpus": 0, "partition": "",
    "constraint": "", "account": "", "setup": [], "grace_seconds": 10, "requeues": 3, "resumable": False,
    "logs": "logs", "options": {}, "together": 8,
}  # fmt: skip
TOY = """
import os, sys, time
what, name = sys.argv[1:]
print(what, name, file=sys.stderr)
open("ran", "a").write(name + "\\n")
if what == "refuse":
    sys.exit("toy: the image is green. Paint it blue.")
if what == "crash":
    os.abort()
if what == "kill":  # the whole submission, as a time limit or a lack of memory does
    os.kill(os.getppid(), 9)
    time.sleep(1)
if what == "wait":
    time.sleep(60)
open(name, "w").write(os.environ["MASQUERADE_RUN"])
"""
STARTER = """
import json, sys
from masquerade.pipeline import launch, shared_submission
shared_submission.GATHERING_SECONDS = 4.0
try:
    shared_submission.run(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
except launch.LaunchError as error:
    sys.exit(str(error))
"""
SBATCH = """
until mkdir counting 2> /dev/null; do sleep 0.01; done  # one at a time, as SLURM counts
number=$(( $(cat submissions 2> /dev/null || echo 0) + 1 )); echo $number > submissions; rmdir counting
export SLURM_JOB_ID=$number SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0
cp "$1" script.$number  # as SLURM does: submitit renames its file
(bash script.$number > script.$number.log 2>&1; echo $? > ended.$number) < /dev/null > /dev/null 2>&1 &
echo Submitted batch job $number
"""
SACCT = """
echo "JobID|State"
for number in $(seq $(cat submissions)); do
    state=RUNNING
    [ -s ended.$number ] && state=COMPLETED && [ "$(cat ended.$number)" != 0 ] && state=OUT_OF_MEMORY
    echo "$number|$state"
done
"""
SRUN = 'while [[ $1 == -* ]]; do case $1 in --output|--error) shift 2;; *) shift;; esac; done; exec "$@"'


@pytest.fixture
def start(tmp_path, monkeypatch, root):
    """Starts the waiting process of a job, in a folder with programs that act as those of SLURM."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for name, text in {"sbatch": SBATCH, "sacct": SACCT, "srun": SRUN, "scancel": "touch cancelled"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(root / "src"))
    monkeypatch.setenv("MASQUERADE_BUILD", "one")
    (tmp_path / "toy.py").write_text(TOY)

    def started(what: str, name: str, **changes) -> subprocess.Popen:
        command = [sys.executable, "-c", STARTER, json.dumps(SUBMISSION | changes), "toy.py", what, name]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    return started


def ends(*processes: subprocess.Popen) -> list[tuple[int, str]]:
    return [(process.returncode, said) for process in processes if (said := process.communicate(timeout=120)[1])]


def submissions() -> int:
    return int(Path("submissions").read_text())


def test_jobs_share_a_submission_and_each_keeps_its_log_and_its_run(start):
    ended = ends(*[start("write", name) for name in "abc"])
    assert submissions() == 1
    assert [status for status, _ in ended] == [0, 0, 0]
    assert len({Path(name).read_text() for name in "abc"}) == 3
    for (_, said), name in zip(ended, "abc", strict=True):
        assert [line for line in said.splitlines() if line.startswith("write")] == [f"write {name}"]
        log = Path(said.split("its log: ")[-1].splitlines()[0])
        assert log.name == f"{Path(name).read_text()}_log.err"
        assert f"write {name}" in log.read_text()


def test_an_error_is_reported_by_its_own_job_and_spoils_no_other(start):
    ended = ends(start("write", "a"), start("refuse", "b"), start("crash", "c"), start("write", "d"))
    assert submissions() == 1
    assert [status for status, _ in ended] == [0, 1, 1, 0]
    assert "inference toy failed as job 1: toy: the image is green. Paint it blue. Its log is logs/" in ended[1][1]
    assert "inference toy failed as job 1: signal 6 ended it. Its log is logs/" in ended[2][1]
    assert Path("a").is_file()
    assert Path("d").is_file()


def test_a_submission_that_dies_fails_one_job_and_the_others_are_submitted_again(start):
    ended = ends(start("write", "a"), start("kill", "b"), start("write", "c"))
    assert [status for status, _ in ended] == [0, 1, 0]
    assert "without its outputs: OUT_OF_MEMORY. It needs more memory" in ended[1][1]
    assert sorted(Path("ran").read_text().split()).count("a") == 1  # what has ended is not run again


def test_a_submission_holds_no_more_jobs_than_together_and_none_of_other_resources(start):
    ended = ends(*[start("write", name, together=2) for name in "abc"], start("write", "d", memory_gb=2))
    assert [status for status, _ in ended] == [0] * 4
    assert submissions() == 3


def test_a_stopped_job_cancels_the_submission(start):
    process = start("wait", "a")
    until = time.monotonic() + 60
    while not Path("ran").exists() and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    ((status, said),) = ends(process)
    assert (status, "stopped; job 1 is cancelled" in said) == (1, True)
    assert Path("cancelled").exists()


def test_a_requeued_submission_runs_only_what_has_not_ended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.py").write_text(TOY)
    programs = tuple(launch.Program("toy.py", ("write", name), run=f"run-{name}") for name in "ab")
    Path("run-a.status").write_text("0")
    shared_submission.Programs(programs, tmp_path)()
    assert Path("ran").read_text().split() == ["b"]
    assert Path("run-b.status").read_text() == "0"


def test_programs_of_a_submission_ignore_the_warnings_of_slurm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.py").write_text("import signal\nprint(signal.getsignal(12), signal.getsignal(15))")
    shared_submission.Programs((launch.Program("toy.py", (), run="one"),), tmp_path)()
    assert Path("one_log.err").read_text() == f"{signal.SIG_IGN} {signal.SIG_IGN}\n"
