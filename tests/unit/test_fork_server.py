"""The fork server: a forked job is what a process of its own would be, and no job outlives its build."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from masquerade.pipeline import fork_server, forked_job

GPU = """
import torch
torch.cuda.is_initialized = lambda: True  # a pretended GPU
torch.cuda.empty_cache = torch.cuda.reset_peak_memory_stats = lambda: None
import os, sys
"""

HOLDS = "import sys\nprint('masquerade.papers.tables' in sys.modules)\n"
"""Whether a job finds code of Masquerade imported."""
FIRST = "from masquerade.pipeline import forked_job\nforked_job.delegate()\n"


pytestmark = pytest.mark.usefixtures("signals_are_received")


@pytest.fixture(scope="module")
def server(root, tmp_path_factory, signals_are_received):
    """A running server that has imported everything; `address` is the path of its socket."""
    announced = []
    server = fork_server.ForkServer(announced.append)
    server.start(fork_server.WORTHWHILE)
    server.address = os.environ.pop(forked_job.ADDRESS)
    wait_until_imported(tmp_path_factory.mktemp("wait"), server.address, root / "src")
    yield server
    server.stop()
    assert announced == []


@pytest.fixture
def program(tmp_path, root):
    """Writes a program, and starts it with the server at ``address`` or without one."""

    def start(body: str, *arguments: str, address: str = "", **variables: str) -> subprocess.Popen:
        return started(tmp_path, body, *arguments, address=address, **{"PYTHONPATH": str(root / "src")} | variables)

    return start


def started(folder: Path, body: str, *arguments: str, address: str = "", **variables: str) -> subprocess.Popen:
    name = "gpu.py" if GPU in body else "program.py"  # a program that uses a GPU does so in each job
    (folder / name).write_text(FIRST + body)
    environment = os.environ | variables | ({forked_job.ADDRESS: address} if address else {})
    return subprocess.Popen(
        [sys.executable, name, *arguments], cwd=folder, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def wait_until_imported(folder: Path, address: str, sources: Path) -> None:
    until = time.monotonic() + 120
    while result(started(folder, HOLDS, address=address, PYTHONPATH=str(sources)))[1] != "True\n":
        assert time.monotonic() < until, "the server imports for ever"
        time.sleep(0.1)


def result(process: subprocess.Popen, given: str = "") -> tuple[int, str, str]:
    output, errors = process.communicate(given, timeout=120)
    return process.returncode, output, errors


def wait_for(path: Path) -> str:
    until = time.monotonic() + 120
    while not (path.is_file() and path.read_text().endswith("\n")):
        assert time.monotonic() < until, f"{path.name} was not written"
        time.sleep(0.01)
    return path.read_text().strip()


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != "zombie"
    except psutil.NoSuchProcess:
        return False


def ends(*processes: int) -> bool:
    """Whether these processes end within some seconds."""
    until = time.monotonic() + 60
    while any(is_running(pid) for pid in processes):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


ECHO = """
import json, os, signal, sys, threading
print(json.dumps({
    "argv": sys.argv, "directory": os.getcwd(), "path": sys.path, "name": __name__, "file": __file__,
    "environment": {key: value for key, value in sorted(os.environ.items()) if key not in ("LC_CTYPE",)},
    "input": sys.stdin.read(), "terminal": sys.stdout.line_buffering,
    "encoding": [sys.stdout.encoding, sys.stderr.errors],
    "signals": [str(signal.getsignal(number)) for number in (2, 15, 1, 10, 12, 13, 17)],
    "threads": threading.active_count(), "flags": list(sys.flags), "umask": os.umask(0),
    "modules": sorted(name for name in sys.modules if name.startswith("masquerade")),
}))
sys.stderr.write("to the log\\n")
"""


def test_a_job_gets_what_a_process_of_its_own_gets(server, program):
    arguments = ("--name", "with space", "", "ü")
    cold = result(program(ECHO, *arguments, ANSWER="42"), "text\n")
    warm = result(program(ECHO, *arguments, address=server.address, ANSWER="42"), "text\n")
    own, forked = (json.loads(output) for _, output, _ in (cold, warm))
    assert set(forked.pop("modules")) > set(own.pop("modules"))
    assert forked == own
    assert (warm[0], warm[2]) == (cold[0], cold[2]) == (0, "to the log\n")


def test_the_server_has_no_thread_beside_its_own_and_the_allocator_of_arrow(server, program):
    assert result(program("", address=server.address))[0] == 0  # the libraries are loaded
    tasks = Path(f"/proc/{server._process.pid}/task").iterdir()
    assert sorted((task / "comm").read_text().strip() for task in tasks)[:-1] in ([], ["jemalloc_bg_thd"])


def test_a_job_is_forked_from_the_server(server, program):
    body = "import os, sys\nprint(os.getppid(), 'torch' in sys.modules)"
    assert result(program(body, address=server.address))[1].split() == [str(server._process.pid), "True"]
    assert result(program(body))[1].split() == [str(os.getpid()), "False"]


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.exit(3)",
        "import sys; sys.exit('what was wrong')",
        "def fail():\n    raise ValueError('deep')\nfail()",
        "raise KeyboardInterrupt",
        "import os; os.abort()",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import atexit; atexit.register(print, 'last words')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()",
        "syntax error",
    ],
)
def test_a_job_ends_as_a_process_of_its_own_ends(server, program, body):
    assert result(program(body, address=server.address)) == result(program(body))


@pytest.mark.parametrize("number", [1, 2])
def test_a_job_computes_with_as_many_threads_as_a_process_of_its_own(server, program, number):
    body = f"""
from masquerade.core import process
process.limit_threads({number})
import numpy, scipy.linalg, threadpoolctl, torch
pools = sorted(set((pool["internal_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()))
print(torch.get_num_threads(), torch.get_num_interop_threads(), pools)
values = torch.randn(300, 300, generator=torch.Generator().manual_seed(0))
print((values @ values).sum().item().hex(), (values.numpy() @ values.numpy()).sum().item().hex())
print(torch.nn.functional.conv2d(values[None, None], values[None, None, :9, :9]).sum().item().hex())
"""
    cold, warm = result(program(body)), result(program(body, address=server.address))
    assert cold[0] == 0, cold
    assert warm == cold


def test_a_job_imports_the_sources_of_its_own_working_copy(server, program, tmp_path, root):
    shutil.copytree(root / "src/masquerade", tmp_path / "src/masquerade", ignore=shutil.ignore_patterns("*.npz"))
    body = "import masquerade\nfrom masquerade.core import errors\nfrom masquerade.networks import dlib_models, ir_se\n"
    body += "print(masquerade.__file__, errors.__file__, ir_se.__file__)\n"
    body += "print(dlib_models.load_landmark_predictor.cache_info())"
    status, output, _ = result(program(body, address=server.address, PYTHONPATH=str(tmp_path / "src")))
    own, cache = output.split()[:3], output.partition("CacheInfo")[2]
    assert status == 0
    assert all(Path(file).is_relative_to(tmp_path) for file in own)
    assert "currsize=1" in cache  # the model that the server loaded


@pytest.fixture
def own_server(tmp_path, root, monkeypatch):
    """Starts a server from sources of their own, which lie in ``tmp_path/src``, and returns its address."""
    sources = tmp_path / "src"
    shutil.copytree(root / "src/masquerade", sources / "masquerade", ignore=shutil.ignore_patterns("*.npz"))
    monkeypatch.setenv("PYTHONPATH", str(sources))
    server = fork_server.ForkServer(lambda sentence: None)

    def start() -> str:
        server.start(fork_server.WORTHWHILE)
        return os.environ.pop(forked_job.ADDRESS)

    yield start
    server.stop()


def test_jobs_that_come_while_the_server_imports_get_what_a_process_of_its_own_gets(own_server, tmp_path):
    address = own_server()
    body = "import torch\nfrom masquerade.params import slices\nprint(slices.__file__, torch.ones(2).sum())"
    early, own = (result(started(tmp_path, body, address=to)) for to in (address, ""))
    assert own[0] == 0, own
    assert early == own


def test_a_job_after_a_change_of_the_code_runs_the_changed_code(own_server, tmp_path):
    """First a module is added to a room, then one is changed."""
    address, sources = own_server(), tmp_path / "src/masquerade"
    wait_until_imported(tmp_path, address, tmp_path / "src")
    added = sources / "methods/added.py"
    added.touch()
    shows = HOLDS + "from masquerade.core import discovery; print('added' in discovery.list_names('methods'))"
    assert result(started(tmp_path, shows, address=address))[:2] == (0, "False\nTrue\n")
    added.unlink()
    with (sources / "core/errors.py").open("a") as file:
        file.write("\nCHANGED = True\n")
    shows = HOLDS + "from masquerade.core.errors import CHANGED; print(CHANGED)"
    assert result(started(tmp_path, shows, address=address))[:2] == (0, "False\nTrue\n")


def test_a_line_that_nothing_can_import_fails_only_the_jobs_that_need_it(own_server, tmp_path):
    (tmp_path / "src/masquerade/methods/half.py").write_text("def half(")
    address = own_server()
    for body, error in (("import masquerade.methods.half", "SyntaxError"), ("import torch._dynamo", "")):
        errors = result(started(tmp_path, body, address=address))[2]
        assert error in errors
        assert bool(errors) == bool(error)


def test_processor_time_and_memory_of_a_job_are_known_once_and_for_its_shell(server, program, monkeypatch):
    body = "import numpy as np, time\nnp.ones(2**25)\nwhile time.process_time() < 0.5: pass\n"
    monkeypatch.setenv(forked_job.ADDRESS, server.address)
    while fork_server.read_usage(os.getpid()):  # of earlier jobs
        pass
    for shell in (os.getpid(), None):  # the shell that started the program, or became the program
        process = program(body, address=server.address)
        assert result(process)[0] == 0
        used = fork_server.read_usage(shell or process.pid)
        assert 0.5 <= used["cpu_time"] < 30
        assert used["max_rss"] > 256
        assert fork_server.read_usage(shell or process.pid) == {}


def test_a_job_leaves_nothing_to_the_next_one(server, program):
    memory = psutil.Process(server._process.pid).memory_info().rss
    greedy = "import os, sys, numpy\nos.environ['LEFT'] = '1'; sys.left = numpy.ones(2**27); os.chdir('/')"
    assert result(program(greedy, address=server.address))[0] == 0
    body = "import os, sys\nprint('LEFT' in os.environ, hasattr(sys, 'left'))"
    assert result(program(body, address=server.address))[1].split() == ["False", "False"]
    assert psutil.Process(server._process.pid).memory_info().rss < memory + 2**26


def test_jobs_do_not_share_random_numbers(server, program):
    body = "import random, numpy, uuid\nprint(random.random(), numpy.random.random(), uuid.uuid4())"
    first, second = (result(program(body, address=server.address))[1].split() for _ in range(2))
    assert not set(first) & set(second)


WAITS = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: (print("saved", flush=True), sys.exit(7)))
open("pid", "w").write(f"{os.getpid()}\\n")
time.sleep(60)
"""


@pytest.mark.parametrize(("number", "status"), [("SIGTERM", -15), ("SIGINT", -2), ("SIGUSR1", 7), ("SIGHUP", -1)])
def test_a_signal_to_the_program_reaches_the_job(server, program, tmp_path, number, status):
    process = program(WAITS, address=server.address)
    job = int(wait_for(tmp_path / "pid"))
    process.send_signal(getattr(signal, number))
    code, output, _ = result(process)
    assert (code, output) == (status, "saved\n" if number == "SIGUSR1" else "")
    assert ends(job)


def test_a_killed_program_takes_its_job_and_what_the_job_started_along(server, program, tmp_path):
    body = "import os, subprocess\nchild = subprocess.Popen(['sleep', '60'])\n"
    process = program(
        body + "open('pid', 'w').write(f'{os.getpid()} {child.pid}\\n'); child.wait()", address=server.address
    )
    started = [int(pid) for pid in wait_for(tmp_path / "pid").split()]
    process.kill()
    process.communicate()
    assert ends(*started)
    assert result(program("print('next')", address=server.address))[1] == "next\n"


def test_a_crash_takes_no_other_job_along(server, program, tmp_path):
    process = program(WAITS, address=server.address)
    job = int(wait_for(tmp_path / "pid"))
    assert result(program("import os; os.abort()", address=server.address))[0] == -signal.SIGABRT
    assert is_running(job)
    process.send_signal(signal.SIGUSR1)
    assert result(process)[0] == 7


def test_another_python_runs_its_job_itself(server, program):
    body = "import os\nprint(os.getppid())"
    assert result(program(body, address=server.address, PYTHONOPTIMIZE="1"))[1] == f"{os.getpid()}\n"


def test_after_the_death_of_the_server_jobs_run_by_themselves_and_this_is_announced_once(program, tmp_path):
    announced, done = [], threading.Event()
    server = fork_server.ForkServer(lambda text: (announced.append(text), done.set()))
    server.start(fork_server.WORTHWHILE)
    address = os.environ.pop(forked_job.ADDRESS)
    body = "import os, time\nopen('pid', 'a').write(f'{os.getpid()} {os.getppid()}\\n')\n"
    process = program(body + "while not os.path.exists('go'): time.sleep(0.02)", address=address)
    wait_for(tmp_path / "pid")
    os.kill(server._process.pid, signal.SIGKILL)
    assert done.wait(120)
    until = time.monotonic() + 120
    while len((tmp_path / "pid").read_text().splitlines()) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    (tmp_path / "go").touch()
    assert result(process)[0] == 0
    first, second = (list(map(int, line.split())) for line in (tmp_path / "pid").read_text().splitlines())
    assert first[1] == server._process.pid
    assert second == [process.pid, os.getpid()]  # the same job again, in the process of its program
    assert ends(first[0])
    assert result(program("print('next')", address=address)) == (0, "next\n", "")
    assert len(announced) == 1
    assert "status -9" in announced[0]
    assert not Path(address).parent.exists()
    server.stop()
    assert len(announced) == 1


BUILD = """
import os, subprocess, sys, time
from masquerade.pipeline import fork_server
server = fork_server.ForkServer(print)
server.start(fork_server.WORTHWHILE)
subprocess.Popen([sys.executable, "job.py"])
open("server", "w").write(f"{server._process.pid} {os.environ['MASQUERADE_FORK_SERVER']}\\n")
time.sleep(60)
"""


def test_a_killed_build_leaves_no_process_behind(program, tmp_path):
    (tmp_path / "job.py").write_text(FIRST + WAITS)
    build = program(BUILD)
    server, address = wait_for(tmp_path / "server").split()
    job = int(wait_for(tmp_path / "pid"))
    waiting = [child.pid for child in psutil.Process(build.pid).children()]
    build.kill()
    assert ends(int(server), job, *waiting)
    assert not Path(address).parent.exists()
    build.communicate()


def test_few_jobs_start_by_themselves_and_a_stopped_server_is_not_found(server, monkeypatch):
    own = fork_server.ForkServer(print)
    own.start(fork_server.WORTHWHILE - 1)
    assert forked_job.ADDRESS not in os.environ
    own.stop()
    monkeypatch.delenv(forked_job.ADDRESS, raising=False)
    own.start(fork_server.WORTHWHILE)
    address = os.environ[forked_job.ADDRESS]
    assert address != server.address
    assert Path(address).stat().st_uid == os.getuid()
    assert Path(address).parent.stat().st_mode & 0o077 == 0
    own.stop()
    assert own._process.returncode == 0
    assert forked_job.ADDRESS not in os.environ


def test_a_build_uses_the_server_that_the_environment_names_and_leaves_it_running(server, program, monkeypatch):
    monkeypatch.setenv(forked_job.ADDRESS, server.address)
    build = fork_server.ForkServer(print)
    build.start(fork_server.WORTHWHILE)
    assert os.environ[forked_job.ADDRESS] == server.address
    build.stop()
    assert result(program("print(1)", address=server.address)) == (0, "1\n", "")


def test_jobs_that_use_a_gpu_share_a_process_and_others_do_not(server, program):
    pids = [result(program(GPU + "print(os.getpid())", address=server.address))[1] for _ in range(3)]
    other = result(program("import os\nprint(os.getpid())", address=server.address))[1]
    assert len({*pids}) == 1
    assert other not in pids


STATE = (
    GPU
    + """
import json, logging, random, signal, threading, numpy
from masquerade.core import process
process.limit_threads(1)
print(json.dumps({
    "argv": sys.argv, "directory": os.getcwd(), "path": sys.path, "left": [hasattr(sys.modules["__main__"], "left")],
    "environment": {key: value for key, value in sorted(os.environ.items())
                    if key not in ("LC_CTYPE", "KMP_DUPLICATE_LIB_OK")},
    "signals": [str(signal.getsignal(number)) for number in (2, 15, 1, 10, 12, 13, 17)],
    "torch": [torch.is_grad_enabled(), torch.get_num_threads(),
              torch.get_deterministic_debug_mode()],
    "own": sorted(name for name in sys.modules if name.startswith("masquerade.core")),
    "logging": [str(logging.root.handlers), logging.root.level], "input": sys.stdin.read(),
}))
left = torch.ones(2**20)
logging.basicConfig(level=logging.DEBUG)
random.seed(0), numpy.random.seed(0), torch.manual_seed(3), torch.set_grad_enabled(False)
torch.set_deterministic_debug_mode("error")
import masquerade.core.statistics
masquerade.core.process.limit_threads(2)
os.environ["LEFT"], sys.path[:] = "1", []
signal.signal(signal.SIGUSR1, lambda *_: None)
sys.stderr.write("to the log\\n")
os.chdir("/")
"""
)


def test_a_job_in_a_used_process_gets_what_a_process_of_its_own_gets(server, program):
    cold = result(program(STATE, "one", ANSWER="42"), "text")
    first, second = (result(program(STATE, "one", address=server.address, ANSWER="42"), "text") for _ in range(2))
    assert cold[0] == 0, cold
    for output in (first[1], second[1]):
        assert json.loads(output) == json.loads(cold[1])
    assert first[2] == second[2] == cold[2] == "to the log\n"


@pytest.mark.parametrize("ending", ["sys.exit('what was wrong')", "raise ValueError('deep')", "os.abort()"])
def test_a_failed_job_in_a_used_process_ends_as_its_own_and_spoils_no_other(server, program, ending):
    body = GPU + f"print(os.getpid(), flush=True)\nif sys.argv[1:]: {ending}"
    used = result(program(body, address=server.address))[1]
    status, output, errors = result(program(body, "fails", address=server.address))
    assert output == used
    assert (status, errors) == result(program(body, "fails"))[::2]
    status, output, _ = result(program(body, address=server.address))
    assert (status, output != used) == (0, True)


def test_an_interrupted_job_in_a_used_process_ends_with_its_process(server, program, tmp_path):
    waits = GPU + "open('pid', 'w').write(f'{os.getpid()}\\n')\nimport time\nif sys.argv[1:]: time.sleep(60)"
    assert result(program(waits, address=server.address))[0] == 0
    used = wait_for(tmp_path / "pid")
    (tmp_path / "pid").unlink()
    process = program(waits, "long", address=server.address)
    assert wait_for(tmp_path / "pid") == used
    process.send_signal(signal.SIGINT)
    assert result(process)[0] == -signal.SIGINT
    assert ends(int(used))


def test_a_used_process_gives_the_memory_of_a_job_back(server, program):
    body = GPU + "len([torch.ones(2**16) for _ in range(2**11)])  # 512 MB\nprint(os.getpid())"
    used = int(result(program(body, address=server.address))[1])
    assert psutil.Process(used).memory_info().rss < psutil.Process(server._process.pid).memory_info().rss + 2**27
