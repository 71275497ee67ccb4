"""Write the parameters that take effect; stop an experiment that would change a knob which the overlay hides."""

import os
import subprocess
import sys
from pathlib import Path

from masquerade import effective, params
from masquerade.errors import MasqueradeError

BASELINE = "DVC_EXP_BASELINE_REV"  # set by `dvc exp run`: the commit from which the experiment starts


def main() -> None:
    parameters = params.load()
    effective.write(parameters, effective.FILE)
    if BASELINE in os.environ:
        overlay = f"{params.SCALES}/{parameters.scale}.yaml"
        command = ["git", "show", f"{os.environ[BASELINE]}:./{params.PARAMS}"]
        before = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        effective.check(
            params.parse(before, params.PARAMS), params.read(Path(params.PARAMS)), params.read(Path(overlay)), overlay
        )


if __name__ == "__main__":
    try:
        main()
    except MasqueradeError as error:
        sys.exit(str(error))
