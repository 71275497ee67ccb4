"""Processes that work beside this one end with it, and freed memory stays with its process."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from masquerade.core import process
from masquerade.core.errors import MasqueradeError

PROGRAM = """
import os, signal, time
from masquerade.core import process
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background, which ignores it
with process.open_pool(1) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_ends_with_its_parent_and_says_nothing(number):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as parent:  # fmt: skip
        beside = psutil.Process(int(parent.stdout.readline()))
        if number == signal.SIGINT:
            os.killpg(parent.pid, number)  # as a terminal sends it
        else:
            parent.send_signal(number)
        try:
            printed = parent.communicate(timeout=60)[1]
        finally:
            parent.kill()
    psutil.wait_procs([beside], timeout=60)
    assert not beside.is_running()
    assert printed.count("Traceback") == (number == signal.SIGINT), "that of the parent"


def test_a_killed_process_is_explained():
    with pytest.raises(MasqueradeError, match="Is the memory full"), process.open_pool(2) as pool:
        os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
        pool.submit(os.getpid).result()


def test_a_process_has_one_thread():
    with process.open_pool(1) as pool:
        assert pool.submit(os.getenv, process.THREAD_VARIABLES[0]).result() == "1"


WASTEFUL = """
import resource
import numpy as np
from masquerade.core import process
{call}
def cleared():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for number in range(8):
    np.ones(1 << 23)
    if number == 1:
        before = cleared()
print(cleared() - before)
"""


def pages_cleared(call: str) -> int:
    """Pages that the kernel clears for six arrays of 64 MiB, after two others."""
    program = WASTEFUL.format(call=call)
    environment = {"PYTHONPATH": "src", "MALLOC_ARENA_MAX": "1"}
    return int(subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout)


def test_kernel_clears_no_new_pages_for_tensors_that_take_the_place_of_freed_ones():
    assert pages_cleared("") > 1000
    assert pages_cleared("process.keep_freed_memory()") < 100
