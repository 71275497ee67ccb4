"""Freed memory stays with the process."""

import subprocess
import sys

PROGRAM = """
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
    program = PROGRAM.format(call=call)
    environment = {"PYTHONPATH": "src", "MALLOC_ARENA_MAX": "1"}
    return int(subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout)


def test_kernel_clears_no_new_pages_for_tensors_that_take_the_place_of_freed_ones():
    assert pages_cleared("") > 1000
    assert pages_cleared("memory.keep_freed()") < 100
