"""Launching: a step runs as a submitted job and returns its outputs, or raises an error of one paragraph."""

import inspect
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from masquerade.core import process
from masquerade.params.compute import ComputeSettings
from masquerade.pipeline import launch, submission, submitit_internals

SUBMISSION = {
    "name": "training toy", "minutes": 5, "memory_gb": 1, "cpus": 1, "tasks": 1, "gpus": 0, "partition": "",
    "constraint": "", "account": "", "setup": [], "grace_seconds": 10, "requeues": 3, "resumable": True,
    "logs": "logs", "options": {},
}  # fmt: skip


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program in its own folder; its first argument selects what it does."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "toy.py"
    script.write_text(
        "import os, sys, time\n"
        "what, *rest = sys.argv[1:]\n"
        "if what == 'write':\n"
        "    print('said on the way', file=sys.stderr)\n"
        "    open('out.txt', 'w').write(' '.join(rest) + ' ' + os.environ.get('MASQUERADE_RUN', 'none'))\n"
        "elif what == 'refuse':\n"
        "    sys.exit('toy: the image is green. Paint it blue.')\n"
        "elif what == 'fall':\n"
        "    raise ZeroDivisionError('nothing to divide by')\n"
        "elif what == 'requeued':\n"
        "    raise ImportError('initialization failed') from SystemExit(144)\n"
        "elif what == 'wait':\n"
        "    open('began', 'w').close()\n"
        "    time.sleep(60)\n"
    )
    return str(script)


def run(program: str, *arguments: str, launcher: str = "local") -> None:
    launch.run(launcher, SUBMISSION, program, arguments)


def test_internals_are_written_for_the_installed_and_locked_submitit(root):
    assert version("submitit") == submitit_internals.VERSION, "check each function of submitit_internals.py"
    assert f"submitit=={submitit_internals.VERSION}\n" in (root / "requirements.lock").read_text()


def test_parts_of_submitit_that_are_used_have_not_changed(tmp_path):
    import submitit
    from submitit.core.core import InfoWatcher
    from submitit.core.utils import cloudpickle_dump

    assert list(inspect.signature(InfoWatcher.clear).parameters) == ["self"]
    assert list(inspect.signature(submitit.Job.get_info).parameters) == ["self", "mode"]
    assert list(inspect.signature(submitit.Job.done).parameters) == ["self", "force_check"]
    assert list(inspect.signature(submitit_internals.DelayedSubmission).parameters) == ["function", "args", "kwargs"]
    job = submitit.LocalJob(tmp_path, "7")
    assert submitit_internals.find_log(job) == tmp_path / "7_0_log.err"
    job.watcher._finished, job.watcher._info_dict = {"7"}, {"7": {"State": "NODE_FAIL"}}
    submitit_internals.forget_states(job)
    assert (job.watcher._finished, job.watcher._info_dict) == (set(), {})
    trace = "Traceback (most recent call last):\n  line 1\nKeyError: 'a'\n"
    cloudpickle_dump(("error", trace), job.paths.result_pickle)
    error = job.exception()
    assert isinstance(error, submitit_internals.FailedJobError)
    assert submitit_internals.read_last_line(error) == "KeyError: 'a'"


@pytest.mark.parametrize("launcher", ["in_process", "local"])
def test_program_gets_its_arguments_under_every_launcher(program, launcher, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    run(program, "write", "a b", "c", launcher=launcher)
    assert Path("out.txt").read_text().startswith("a b c ")


def test_requeued_program_that_has_ended_is_not_run_again(program):
    run(program, "write")
    Path("out.txt").unlink()
    (job,) = {path.name.split("_")[0] for path in Path("logs").glob("*_submitted.pkl")}
    again = {"SUBMITIT_EXECUTOR": "local", "SUBMITIT_LOCAL_JOB_ID": job, "SUBMITIT_LOCAL_NTASKS": "1",
             "SUBMITIT_LOCAL_GLOBALID": "0", "SUBMITIT_LOCAL_LOCALID": "0", "SUBMITIT_LOCAL_NODEID": "0"}  # fmt: skip
    subprocess.run([sys.executable, "-m", "submitit.core._submit", "logs"], env=os.environ | again, check=True)
    assert not Path("out.txt").exists()


def test_submitted_program_gets_a_run_id_and_its_log_is_printed(program, capfdbinary):
    run(program, "write")
    assert len(Path("out.txt").read_text().split()[-1]) == 32
    assert b"said on the way" in capfdbinary.readouterr().err


def test_error_text_of_a_program_becomes_one_paragraph(program):
    with pytest.raises(launch.LaunchError) as raised:
        run(program, "refuse")
    text = str(raised.value)
    assert text.startswith("training toy failed as job ")
    assert ": toy: the image is green. Paint it blue. Its log is " in text
    assert Path(text.split("Its log is ")[1].rstrip(".")).is_file()
    assert "\n" not in text


@pytest.mark.parametrize(
    ("last", "command", "ended"),
    [
        ("kill -TERM $$", "requeue", True),  # SLURM ends the job, and scontrol with it
        ("kill -KILL $$", "requeue", False),
        ("exit 1", "requeue", False),  # SLURM refused
        ("kill -TERM $$", "update", False),
    ],
)
def test_command_that_is_ended_by_the_requeue_it_asked_for_is_no_error(tmp_path, monkeypatch, last, command, ended):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\n{last}\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(subprocess.CalledProcessError) as raised:
        subprocess.check_call(["scontrol", command, "7"])
    assert bool(process.find_requeue(raised.value)) == ended


@pytest.mark.parametrize("cause", [SystemExit(-1), subprocess.CalledProcessError(-15, ["scontrol", "requeue", "7"])])
def test_compiled_code_that_is_imported_when_the_job_is_requeued_hides_the_reason_but_not_the_requeue(cause):
    """pybind11 turns what the handler of the signal raises into an ImportError."""
    with pytest.raises(RuntimeError) as raised:
        try:
            raise ImportError("initialization failed") from cause
        except ImportError:
            raise RuntimeError("the model cannot be loaded")  # noqa: B904 - a cause that Python keeps as the context
    assert process.find_requeue(raised.value)
    assert not process.find_requeue(ImportError("initialization failed"))


def test_requeued_program_ends_without_a_result(program, monkeypatch):
    monkeypatch.setattr(submitit_internals, "has_result", lambda: False)
    monkeypatch.setattr(submitit_internals, "find_own_log", lambda: Path("own.err"))
    monkeypatch.setattr(launch.sys, "argv", [])
    for name in (launch.RUN, launch.LOG):
        monkeypatch.setenv(name, "")
    with pytest.raises(SystemExit) as raised:
        launch.Program(program, ("requeued",), "f" * 32)()
    assert raised.value.code == 144


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stop_signal_cancels_the_job(program, number):
    def stop():
        while not Path("began").exists():
            threading.Event().wait(0.1)
        os.kill(os.getpid(), number)

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(launch.LaunchError, match=r"stopped; job .* is cancelled"):
        run(program, "wait")


def test_error_for_an_unknown_partition_lists_the_known_ones(monkeypatch):
    listed = subprocess.CompletedProcess([], 0, "main\nurgent\n")
    monkeypatch.setattr(launch.subprocess, "run", lambda *_, **__: listed)
    launch.check_partitions({"compute.light.partition": "", "compute.training.partition": "urgent"})
    with pytest.raises(
        launch.LaunchError, match=r"compute\.light\.partition is 'gpu'\. This cluster has: main, urgent"
    ):
        launch.check_partitions({"compute.light.partition": "gpu"})


def test_partition_check_without_slurm_is_an_error(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(launch.LaunchError, match=r"SLURM does not answer .* login node"):
        launch.check_partitions({})


def test_profile_sends_every_local_rule_through_submitit(root):
    """A local rule without a launcher would compute on the login node. `use rule` does not inherit ``localrule``."""
    profile = yaml.safe_load((root / "slurm/config.yaml").read_text())
    rules = "\n".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    launched = {
        block.split(":")[0].removesuffix(" with").rpartition(" as ")[2]
        for block in re.split(r"\n(?:use )?rule ", rules)[1:]
        if "localrule: True" in block
    }
    assert {name: {"launcher": "slurm"} for name in launched} == profile["set-resources"]


def test_profile_groups_rules_that_exist_and_gives_each_group_a_size(root):
    profile = yaml.safe_load((root / "slurm/config.yaml").read_text())
    rules = "\n".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    grouped = dict(entry.split("=") for entry in profile["groups"])
    assert {*grouped} <= {*re.findall(r"^(?:use rule \w+ as|rule) (\w+)", rules, re.MULTILINE)}
    assert {*grouped.values()} == {entry.rpartition("=")[0] for entry in profile["group-components"]}


@pytest.fixture
def fake_slurm(tmp_path, monkeypatch):
    """Gives PATH programs of SLURM, each a shell script; tests/slurm has the real ones."""
    folder = tmp_path / "slurm's & programs"

    def install(**scripts):
        folder.mkdir(exist_ok=True)
        for name, text in {"srun": "", **scripts}.items():
            (folder / name).write_text(f"#!/bin/bash\n{text}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return install


def test_submitted_job_runs_in_a_path_with_any_character_that_is_allowed(program, tmp_path, monkeypatch, fake_slurm):
    place = tmp_path / "it's a & (b) #c"
    (place / "bin").mkdir(parents=True)
    python = place / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "executable", str(python))
    fake_slurm(
        sbatch='export SLURM_JOB_ID=7 SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_PROCID=0 SLURM_LOCALID=0 '
        'SLURM_NODEID=0\n(sleep 2; bash "$1" > script.log 2>&1) < /dev/null > /dev/null 2>&1 &\n'
        'echo Submitted batch job 7',
        srun='while [[ $1 == -* ]]; do case $1 in --output|--error) shift 2;; *) shift;; esac; done; exec "$@"',
        sacct='echo "JobID|State"; echo "7|$([ -e out.txt ] && echo COMPLETED || echo RUNNING)"',
    )  # fmt: skip
    launch.run("slurm", SUBMISSION, program, ("write", "a b"))
    assert Path("out.txt").read_text().startswith("a b ")


def test_a_busy_controller_is_asked_again_after_growing_pauses(program, fake_slurm, monkeypatch, capfd):
    monkeypatch.setattr(launch, "_PAUSES", (0.1, 0.2, 0.4))
    fake_slurm(
        sbatch='echo x >> asked; case $(wc -l < asked) in\n'
        '1) echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation";;\n'
        '2) echo "sbatch: error: QOSMaxSubmitJobPerUserLimit";;\n'
        '*) echo "sbatch: error: invalid partition specified: gpuu";; esac >&2; exit 1',
    )  # fmt: skip
    with pytest.raises(launch.LaunchError, match=r"SLURM refused training toy: invalid partition specified: gpuu"):
        launch.run("slurm", SUBMISSION, program, ("write",))
    said = capfd.readouterr().err
    assert "Socket timed out on send/recv operation'. Next try in 0.1 s." in said
    assert "SLURM says 'QOSMaxSubmitJobPerUserLimit'. Next try in 0.2 s." in said
    assert len(Path("asked").read_text().split()) == 3


def test_a_wrong_request_fails_at_once(program, fake_slurm):
    fake_slurm(sbatch='echo x >> asked; echo "sbatch: error: Invalid qos specification" >&2; exit 1')
    with pytest.raises(launch.LaunchError, match="Invalid qos specification"):
        launch.run("slurm", SUBMISSION, program, ("write",))
    assert Path("asked").read_text() == "x\n"


def test_stop_signal_ends_the_waiting_for_a_busy_controller(program, fake_slurm):
    fake_slurm(sbatch='touch asked; echo "sbatch: error: Unable to contact slurm controller" >&2; exit 1')

    def stop():
        while not Path("asked").exists():
            threading.Event().wait(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(launch.LaunchError, match="stopped while training toy is not submitted yet"):
        launch.run("slurm", SUBMISSION, program, ("write",))


@pytest.fixture
def submitted(program, tmp_path, fake_slurm):
    """Submits a job with changes of its request: the script of submitit, and the environment of sbatch."""

    def submit(**changes) -> tuple[str, str]:
        fake_slurm(sbatch=f'cp "$1" {tmp_path}/job.sh; env > {tmp_path}/seen; echo "sbatch: error: no" >&2; exit 1')
        with pytest.raises(launch.LaunchError, match=r"SLURM refused training toy: no\. The job requests partition '"):
            launch.run("slurm", SUBMISSION | changes, program, ("write",))
        return (tmp_path / "job.sh").read_text(), (tmp_path / "seen").read_text()

    return submit


OPTIONS = {"qos": "long", "gres": "gpu:a100:2", "mem-per-cpu": "8G", "reservation": "our friday", "exclude": "n[1-3]",
           "comment": "falco", "exclusive": True, "hold": False}  # fmt: skip


def test_free_options_reach_the_script_of_a_submitted_job(submitted):
    script, _ = submitted(gpus=2, options=OPTIONS)
    for line in ("--qos=long", "--gres=gpu:a100:2", "--mem-per-cpu=8G", "--reservation='our friday'",
                 "--exclude='n[1-3]'", "--comment=falco", "--exclusive"):  # fmt: skip
        assert f"#SBATCH {line}\n" in script
    assert not re.search("--mem=|--gpus-per-node|--hold", script)


def test_the_script_of_a_submitted_job_holds_the_requested_resources(submitted):
    script, _ = submitted(gpus=2, tasks=2, constraint="a100", account="lab", setup=["module load cuda"])
    for line in (
        "--gpus-per-node=2", "--ntasks-per-node=2", "--constraint=a100", "--account=lab", "--time=5", "--mem=1GB",
        "--signal=USR2@10", "--requeue", "--open-mode=append",
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in script
    assert "\nmodule load cuda\n" in script
    assert "--partition" not in script


def test_parameters_come_before_the_sites_variables_which_set_what_is_left_open(submitted, monkeypatch):
    decided = ("TIMELIMIT", "MEM_PER_NODE", "MEM_PER_CPU", "GRES", "ARRAY_INX", "OUTPUT", "WAIT", "PARTITION", "QOS",
               "EXPORT")  # fmt: skip
    left_open = ("ACCOUNT", "CONSTRAINT", "RESERVATION")
    for name in (*decided, *left_open):
        monkeypatch.setenv(f"SBATCH_{name}", "NONE")
    monkeypatch.setenv("SRUN_EXPORT_ENV", "NONE")
    script, environment = submitted(partition="gpu", options={"qos": "long"})
    assert sorted(re.findall("^SBATCH_([A-Z_]+)=", environment, re.MULTILINE)) == sorted(left_open)
    assert "SRUN_EXPORT_ENV" not in environment
    assert "#SBATCH --export=ALL\n" in script
    assert re.search(r"\nsrun .*--export=ALL --cpus-per-task=1 ", script)


def test_free_options_reach_the_call_of_snakemakes_executor(tiny):
    from snakemake_executor_plugin_slurm.submit_string import get_submit_command
    from snakemake_executor_plugin_slurm.utils import set_gres_string
    from snakemake_executor_plugin_slurm.validation import validate_slurm_extra

    class Resources(SimpleNamespace):
        def get(self, name, default=None):
            return vars(self).get(name, default)

    block = tiny.compute.light.model_dump() | {"options": OPTIONS}
    requested = submission.make_light_resources(ComputeSettings(**tiny.compute.model_dump() | {"light": block}))
    job = SimpleNamespace(resources=Resources(**requested), threads=1)
    params = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), "x")
    validate_slurm_extra(job)
    call = shlex.split(get_submit_command(job, params) + set_gres_string(job))
    assert {"--qos=long", "--gres=gpu:a100:2", "--reservation=our friday", "--exclude=n[1-3]", "--exclusive"} <= {*call}
    assert call[call.index("--mem-per-cpu") + 1] == "8G"
    assert not {"--mem", "--hold"} & {*call}


def test_export_may_be_all_which_it_is_anyway_and_nothing_else(tiny):
    tree, block = tiny.compute.model_dump(), tiny.compute.light.model_dump()
    compute = ComputeSettings(**tree | {"light": block | {"options": {"export": "ALL"}}})
    # Snakemake's executor refuses it there, and exports all
    assert "slurm_extra" not in submission.make_light_resources(compute)
    with pytest.raises(ValueError, match=r"'export' is 'NONE', and only ALL is allowed: .*compute\.setup"):
        ComputeSettings(**tree | {"light": block | {"options": {"export": "NONE"}}})


def test_the_sites_defaults_reach_no_submission_of_snakemakes_executor(tiny, fake_slurm, monkeypatch):
    fake_slurm(sinfo="echo main")
    for name in ("SBATCH_EXPORT", "SBATCH_WAIT", "SBATCH_PARTITION", "SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"):
        monkeypatch.setenv(name, "NONE")
    submission.prepare_submission(tiny.compute, submits=True, kept={})
    assert {name for name in os.environ if re.match("SBATCH|SLURM|SRUN", name)} == {"SBATCH_PARTITION"}


def test_variables_of_an_outer_job_are_removed_and_the_configuration_of_slurm_stays(monkeypatch):
    monkeypatch.setenv("SLURM_CONF", "/etc/our/slurm.conf")
    kept = submission.read_slurm_settings()
    for name in ("SLURM_JOB_ID", "SLURM_MEM_PER_NODE", "SLURM_NTASKS"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("SBATCH_QOS", "long")
    submission.forget_outer_job(kept)
    assert {name for name in os.environ if name.startswith("SLURM")} == {"SLURM_CONF"}
    assert os.environ["SBATCH_QOS"] == "long"
