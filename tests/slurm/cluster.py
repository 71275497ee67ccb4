"""A real, private SLURM on this machine from Debian's packages, without systemd, with its own daemons and ports.

One host has several logical nodes. Their processors, memory and GPUs are declared and need not exist: the GPUs are
harmless device files. The accounting is in a private MariaDB, so that ``sacct`` works as on a real cluster. Only files
in the folder of the cluster are written, and `stop` ends exactly the processes that `start` began.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmdbd", "mariadbd", "sbatch", "sacct")
NODES = ("n1", "n2", "n3", "n4", "n5", "n6")

_CONFIGURATION = """
ClusterName=masquerade
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/pid/slurmctld
SlurmdPidFile={folder}/pid/slurmd.%n
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1,preempt_send_user_signal
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
OverTimeLimit=1
EnforcePartLimits=ALL
KillWait=5
SlurmctldTimeout=30
SlurmdTimeout=20
ReturnToService=1
GresTypes=gpu
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={database_port}
AccountingStoragePass={folder}/munge/socket
AccountingStorageTRES=gres/gpu
PartitionName=main Nodes=n1,n2 Default=YES DefaultTime=10 MaxTime=240 PriorityTier=1 GraceTime=30
PartitionName=accidents Nodes=n3,n4 DefaultTime=10 MaxTime=240 PriorityTier=1 GraceTime=30
PartitionName=failing Nodes=n5,n6 DefaultTime=10 MaxTime=240 PriorityTier=1 GraceTime=30
PartitionName=urgent Nodes=n5,n6 DefaultTime=10 MaxTime=240 PriorityTier=10 PreemptMode=OFF
"""
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=20000 Gres=gpu:2\n"
_GPUS = "AutoDetect=off\nName=gpu File=/dev/null\nName=gpu File=/dev/zero\n"
_DATABASE = """
DbdHost=localhost
DbdPort={database_port}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
LogFile={folder}/log/slurmdbd
PidFile={folder}/pid/slurmdbd
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm
"""


def missing_programs() -> list[str]:
    """The programs of a SLURM that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]


def _path() -> str:
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


def _free_ports(count: int) -> list[int]:
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


class Cluster:
    """A private SLURM in ``folder``, with ``cpus`` processors in each node: two groups of short jobs, and trainings.

    Jobs in the partitions `main`, `accidents` and `failing` share no node. A job in `urgent` preempts those in
    `failing`.
    """

    def __init__(self, folder: Path, cpus: int = 20):
        self.folder = folder
        ports = _free_ports(2 + len(NODES))
        self._names = {
            "folder": folder, "host": socket.gethostname().split(".")[0], "user": "root", "port": ports[0],
            "database_port": ports[1], "password": secrets.token_hex(16),
        }  # fmt: skip
        self._node_ports = dict(zip(NODES, ports[2:], strict=True))
        self._cpus = cpus
        self.environment = os.environ | {
            "PATH": f"{folder}/bin{os.pathsep}{_path()}",
            "SLURM_CONF": str(folder / "etc/slurm.conf"),
            "MYSQL_UNIX_PORT": str(folder / "database/socket"),
        }

    def start(self) -> None:
        for name in ("bin", "etc", "log", "pid", "controller", "munge", "database"):
            (self.folder / name).mkdir(parents=True, mode=0o755)
        self._configure()
        self._run(
            "munged", "--key-file", self.folder / "munge/key", "--socket", self.folder / "munge/socket",
            "--pid-file", self.folder / "pid/munged", "--log-file", self.folder / "log/munged",
            "--seed-file", self.folder / "munge/seed",
        )  # fmt: skip
        self._start_database()
        self._run("slurmdbd")
        wait("slurmdbd", lambda: self._succeeds("sacctmgr", "-n", "list", "cluster"))
        self._run("sacctmgr", "-i", "add", "cluster", "masquerade", check=False)
        self._run("sacctmgr", "-i", "add", "account", "lab", check=False)
        self._run("sacctmgr", "-i", "add", "user", self._names["user"], "account=lab", check=False)
        self._run("slurmctld")
        for node in NODES:
            self._run("slurmd", "-N", node)
        wait("the nodes", lambda: len(self.nodes("idle,mixed,allocated")) == len(NODES))

    def stop(self) -> None:
        """Cancel every job, then end the daemons. Those that depend on others end first."""
        self._run("scancel", "--user", self._names["user"], check=False)
        wait("the jobs' end", lambda: not self.run("squeue", "-h").strip(), seconds=30, raises=False)
        for name in [f"slurmd.{node}" for node in NODES] + ["slurmctld", "slurmdbd", "mariadbd", "munged"]:
            self._end(self.folder / "pid" / name)

    @contextmanager
    def holds_lifted(self) -> Iterator[None]:
        """Within the block, shorten slurmctld's hold of a requeued job from two minutes, fixed in its source, to 3 s.

        With a shorter time, slurmd refuses the job because of credentials that it has revoked.
        """
        stopped = threading.Event()
        thread = threading.Thread(target=self._lift_holds, args=(stopped,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def set_node(self, name: str, state: str) -> None:
        """``down``: the jobs of the node are killed and requeued, as when a node fails. ``resume``: it is back."""
        self.run("scontrol", "update", f"nodename={name}", f"state={state}", "reason=test")

    def nodes(self, states: str) -> list[str]:
        listed = self.run("sinfo", "-h", "-N", "-t", states, "-o", "%N")
        return sorted(set(listed.split()))

    def run(self, *command: str) -> str:
        """The output of a client command (``squeue``, ``scancel``, ...)."""
        return self._run(*command).stdout

    def queue(self) -> list[dict[str, str | int]]:
        """Waiting and running jobs: `id`, `state`, `node`, start time `began`, `folder` of the submission, `name`."""
        lines = self.run("squeue", "-h", "-o", "%i|%T|%N|%S|%Z|%j").splitlines()
        names = ("id", "state", "node", "began", "folder", "name")
        return [dict(zip(names, line.split("|", 5), strict=True)) for line in lines]

    def jobs_of(self, folder: Path) -> list[dict[str, str]]:
        """Every job that was submitted in ``folder``, from the accounting: field of ``sacct`` -> value."""
        fields = "JobIDRaw,JobName%200,State%30,NodeList,ReqTRES%200,WorkDir%500"
        lines = self.run("sacct", "-X", "-P", "--starttime", "now-1day", "-o", fields).splitlines()
        names = lines[0].split("|")
        jobs = [dict(zip(names, line.split("|"), strict=True)) for line in lines[1:]]
        return [job for job in jobs if job["WorkDir"] == str(folder)]

    def _lift_holds(self, stopped: threading.Event) -> None:
        while not stopped.wait(1.0):
            for line in self._run("squeue", "-h", "-t", "PD", "-o", "%i|%r|%S", check=False).stdout.splitlines():
                job, reason, when = line.split("|")
                if reason != "BeginTime" or when == "N/A":
                    continue
                if datetime.fromisoformat(when) - datetime.now() > timedelta(seconds=10):
                    self._run("scontrol", "update", f"jobid={job}", "StartTime=now+3", check=False)

    def _configure(self) -> None:
        key = self.folder / "munge/key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        (self.folder / "munge").chmod(0o711)
        nodes = "".join(
            _NODE.format(name=name, port=port, cpus=self._cpus, host=self._names["host"])
            for name, port in self._node_ports.items()
        )
        etc = self.folder / "etc"
        (etc / "slurm.conf").write_text(_CONFIGURATION.format(**self._names) + nodes)
        (etc / "gres.conf").write_text(_GPUS)
        (etc / "slurmdbd.conf").write_text(_DATABASE.format(**self._names))
        (etc / "slurmdbd.conf").chmod(0o600)
        # Snakemake's job step clears SLURM_CONF (0.6.1); on clusters the file is at SLURM's default path
        srun = self.folder / "bin/srun"
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={etc}/slurm.conf exec {shutil.which("srun")} "$@"\n')
        srun.chmod(0o755)

    def _start_database(self) -> None:
        folder = self.folder / "database"
        shutil.chown(folder, "mysql", "mysql")
        self._run(
            "mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={folder}/data", "--skip-test-db",
            "--auth-root-authentication-method=socket",
        )  # fmt: skip
        log = (self.folder / "log/mariadbd").open("w")
        process = subprocess.Popen(
            ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={folder}/data", f"--socket={folder}/socket",
             "--skip-networking", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0",
             "--innodb-flush-method=nosync", f"--pid-file={folder}/pid"],
            env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        (self.folder / "pid/mariadbd").write_text(str(process.pid))
        client = ("mariadb", "--no-defaults", f"--socket={folder}/socket")
        wait("mariadbd", lambda: self._succeeds(*client, "-e", "SELECT 1"))
        self._run(
            *client, "-e",
            "CREATE DATABASE slurm; "
            f"CREATE USER slurm@localhost IDENTIFIED BY '{self._names['password']}'; "
            "GRANT ALL ON slurm.* TO slurm@localhost;",
        )  # fmt: skip

    def _run(self, *command: object, check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [str(word) for word in command], env=self.environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, cwd=self.folder,
        )  # fmt: skip
        assert done.returncode == 0 or not check, f"{command[0]} -> {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def _succeeds(self, *command: object) -> bool:
        return self._run(*command, check=False).returncode == 0

    @staticmethod
    def _end(pid_file: Path, how: int = signal.SIGTERM) -> None:
        if not pid_file.is_file() or not (pid := pid_file.read_text().strip()):
            return
        try:
            os.kill(int(pid), how)
        except ProcessLookupError:
            return
        wait(pid_file.name, lambda: not _running(int(pid)), seconds=15, raises=False)
        if _running(int(pid)):
            os.kill(int(pid), signal.SIGKILL)


def _running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait(what: str, ready: Callable[[], bool], seconds: float = 60, raises: bool = True) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return
        time.sleep(0.5)  # each look starts a program of SLURM
    assert not raises, f"{what} did not come within {seconds:.0f} s"
