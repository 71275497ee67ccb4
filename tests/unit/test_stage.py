"""The command of a DVC stage: the first one runs by itself, the later ones are forks of a server that ends with DVC."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

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
WORDS = "--quiet rules progress --cores all --force --rerun-incomplete --allowed-rules table -- out"


@pytest.fixture
def dvc(tmp_path, root):
    """Starts a program that runs stages as DVC does, with a Snakemake that only runs one job."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(Path(sys.executable).resolve())
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", tmp_path)
    (tmp_path / "lib").symlink_to(Path(sys.prefix) / "lib")
    for name, text in {"bin/snakemake": SNAKEMAKE, "job.py": JOB, "dvc.py": DVC}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin/snakemake").chmod(0o755)
    shutil.copy(root / "workflow/scripts/stage.py", tmp_path)
    (tmp_path / "tmp").mkdir()

    def start(*arguments: str, **variables: str) -> subprocess.Popen:
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "TMPDIR": str(tmp_path / "tmp"), **variables}
        environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            ["python", "dvc.py", *arguments], cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE
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
    assert list((tmp_path / "tmp").glob("masquerade-*/*")) == []


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
    folder = tmp_path / f"tmp/masquerade-{os.getuid()}"
    folder.mkdir(mode=0o755)
    output = dvc("2", DVC_STAGE="table").communicate(timeout=120)[0]
    assert output.splitlines() == [f"3 {[WORDS, 'False', 'False']}"] * 2
    assert list(folder.iterdir()) == []
