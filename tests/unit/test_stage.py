"""The command of a DVC stage: the first one makes everything, or starts a server for the others that ends with DVC."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from masquerade.lineage import provenance, snakemake_internals
from masquerade.pipeline import stage

SNAKEMAKE = """#!/usr/bin/env python
import os, subprocess, sys
print(*sys.argv[1:], flush=True)
print("torch" in sys.modules, flush=True)
sys.exit(subprocess.run(["python", "job.py"]).returncode)
"""
JOB = """
from masquerade.pipeline import forked_job
forked_job.delegate()
import sys
print("torch" in sys.modules, flush=True)
sys.exit(3)
"""
DVC = """
import os, subprocess, sys, time
for number in range(int(sys.argv[1])):
    done = subprocess.run("python stage.py table out # rule 1", shell=True, stdout=subprocess.PIPE, text=True)
    print(done.returncode, done.stdout.split("\\n")[:3], flush=True)
if len(sys.argv) > 2:
    time.sleep(60)
"""
TEMPORARY = "temporary" * 12
"""A name with which the path of a socket is longer than the kernel takes."""
EVERYTHING = "--quiet rules progress --cores all --rerun-incomplete"
WORDS = f"{EVERYTHING} --force --allowed-rules table -- out"
BUILDER = """#!/usr/bin/env python
import os, pathlib, sys, time
with open("calls", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
with open("given", "a") as file:
    file.write(os.environ.get("MASQUERADE_GIVEN_SERVER", "") + "\\n")
if pathlib.Path("endless").exists():
    time.sleep(600)
sys.exit(pathlib.Path("fails").exists())
"""
REPRO = """
import subprocess
for name in ("one", "two"):
    print(subprocess.run(f"python stage.py table {name} # rule 1", shell=True).returncode, flush=True)
"""


@pytest.fixture
def dvc(tmp_path, root):
    """Starts a program that runs stages as DVC does, with a Snakemake that only runs one job."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(Path(sys.executable).resolve())
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", tmp_path)
    (tmp_path / "lib").symlink_to(Path(sys.prefix) / "lib")
    for name, text in {"bin/snakemake": SNAKEMAKE, "job.py": JOB, "dvc.py": DVC, "dvc": REPRO}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin/snakemake").chmod(0o755)
    shutil.copy(root / "workflow/scripts/stage.py", tmp_path)
    (tmp_path / TEMPORARY).mkdir()

    def start(*arguments: str, program: str = "dvc.py", **variables: str) -> subprocess.Popen:
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "TMPDIR": str(tmp_path / TEMPORARY)} | variables
        environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            ["python", program, *arguments], cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE
        )

    return start


def servers(folder: Path) -> list[psutil.Process]:
    return [
        process for process in psutil.process_iter(["cmdline", "cwd"])
        if "masquerade.pipeline.fork_server" in (process.info["cmdline"] or ()) and process.info["cwd"] == str(folder)
    ]  # fmt: skip


def test_later_stages_and_their_jobs_are_forks_and_the_server_ends_with_dvc(dvc, tmp_path):
    process = dvc("3", DVC_STAGE="table")
    output, _ = process.communicate(timeout=120)
    own, *forked = output.splitlines()
    assert own == f"3 {[WORDS, 'False', 'False']}"
    assert forked == [f"3 {[WORDS, 'True', 'True']}"] * 2
    psutil.wait_procs(servers(tmp_path), timeout=60)
    assert servers(tmp_path) == []
    assert list((tmp_path / TEMPORARY).glob("masquerade-*/*")) == []


def test_stages_use_the_server_that_dvc_was_given(dvc, tmp_path):
    output = dvc("2", DVC_STAGE="table", MASQUERADE_GIVEN_SERVER=str(tmp_path / "ended")).communicate(timeout=120)[0]
    assert output.splitlines() == [f"3 {[WORDS, 'False', 'False']}"] * 2  # nothing listens there
    assert list((tmp_path / TEMPORARY).iterdir()) == []


def test_a_killed_dvc_leaves_no_server_behind(dvc, tmp_path):
    process = dvc("2", "wait", DVC_STAGE="table")
    assert process.stdout.readline()
    assert process.stdout.readline()
    assert len(servers(tmp_path)) == 1
    process.kill()
    process.communicate()
    psutil.wait_procs(servers(tmp_path), timeout=60)
    assert servers(tmp_path) == []


def test_by_hand_and_in_a_folder_of_others_a_stage_runs_by_itself(dvc, tmp_path):
    assert dvc("2").communicate(timeout=120)[0].splitlines() == [f"3 {[WORDS, 'False', 'False']}"] * 2
    folder = tmp_path / TEMPORARY / f"masquerade-{os.getuid()}"
    folder.mkdir(mode=0o755)
    output = dvc("2", DVC_STAGE="table").communicate(timeout=120)[0]
    assert output.splitlines() == [f"3 {[WORDS, 'False', 'False']}"] * 2
    assert list(folder.iterdir()) == []


@pytest.fixture
def repro(dvc, tmp_path):
    """Starts `dvc repro` of the stages `one` and `two`, with a Snakemake that only writes down its arguments."""
    (tmp_path / "bin/snakemake").write_text(BUILDER)
    (tmp_path / "input").write_text("input")
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        record = tmp_path / snakemake_internals.record_path(name)
        record.parent.mkdir(parents=True, exist_ok=True)
        checksum = f"sha256:{hashlib.sha256(b'input').hexdigest()}"
        record.write_text(json.dumps({"input_checksums": {"input": checksum}}))
        circumstances = tmp_path / provenance.path_of(name)
        circumstances.parent.mkdir(parents=True, exist_ok=True)
        circumstances.write_text(json.dumps({"outputs": {name: hashlib.md5(name.encode()).hexdigest()}}))

    def run() -> tuple[list[str], list[str]]:
        """The exit status of each stage, and the arguments of each Snakemake."""
        (tmp_path / "calls").unlink(missing_ok=True)
        process = dvc("repro", program="dvc", DVC_STAGE="table")
        statuses = process.communicate(timeout=120)[0].split()
        psutil.wait_procs(servers(tmp_path), timeout=60)
        return statuses, (tmp_path / "calls").read_text().splitlines()

    return run


def single(name: str, *force: str) -> str:
    return " ".join([EVERYTHING, *force, "--allowed-rules", "table", "--", name])


def test_repro_of_everything_starts_snakemake_once_and_each_repro_anew(repro, tmp_path):
    assert repro() == (["0", "0"], [EVERYTHING])
    assert repro() == (["0", "0"], [EVERYTHING])
    servers_of_dvc = (tmp_path / "given").read_text().splitlines()
    assert len(set(servers_of_dvc)) == 2
    assert all(Path(address).is_relative_to(tmp_path / TEMPORARY) for address in servers_of_dvc)


def test_file_that_is_not_what_its_job_wrote_is_made_again(repro, tmp_path):
    (tmp_path / "two").write_text("edited")
    assert repro() == (["0", "0"], [EVERYTHING, single("two", "--force")])


def test_files_of_an_input_that_changed_behind_snakemake_are_made_again(repro, tmp_path):
    (tmp_path / "input").write_text("another")
    assert repro() == (["0", "0"], [EVERYTHING, single("one", "--force"), single("two", "--force")])


def test_after_a_failure_finished_jobs_are_kept_and_the_others_fail(repro, tmp_path):
    (tmp_path / "fails").touch()
    (tmp_path / "two").unlink()
    assert repro() == (["1", "1"], [EVERYTHING, single("one")])


def test_a_killed_dvc_ends_the_build_of_everything(dvc, repro, tmp_path):
    (tmp_path / "endless").touch()
    process = dvc("repro", program="dvc", DVC_STAGE="table")
    while not (tmp_path / "calls").is_file():
        time.sleep(0.01)
    started = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    assert psutil.wait_procs(started, timeout=60)[1] == []


@pytest.mark.parametrize("options", ["repro", "exp run", "exp run -S a.b=1 --name louder"])
def test_commands_that_make_everything(options):
    assert stage.EVERYTHING.fullmatch(f"/bin/python /bin/dvc {options}")


@pytest.mark.parametrize("options", ["repro table", "repro --force", "repro -s", "exp run -S a=1 table", "commit"])
def test_commands_that_need_single_stages(options):
    assert not stage.EVERYTHING.fullmatch(f"/bin/python /bin/dvc {options}")
